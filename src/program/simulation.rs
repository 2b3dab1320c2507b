//! Runs the controller in the simulation (`test/simulation`). A test API server replaces the network, and a seed
//! determines clock and randomness. Only built with the feature `simulation`.

use std::future::{Future, ready};
use std::sync::Arc;

use axum::body::{Bytes, HttpBody};
use axum::http::{Request, Response};
use clap::{ArgMatches, Parser};
use jiff::Timestamp;
use kube::client::Body;
use tower::{BoxError, Service};

use controllers::controller::ControllerArguments;
use controllers::controller::report::metrics::Metrics;
use controllers::controller::run::start::{Parts, access_through, control};
use decisions::provider::Providers;
use runtime::cloud::{CloudArguments, CloudFactory};
use runtime::process::clock::Clock;
use runtime::process::jitter;
use runtime::process::readiness::{Need, Readiness};

/// The command line of the controller.
#[derive(Parser)]
struct CommandLine {
    #[command(flatten)]
    controller: ControllerArguments,
}

/// Seeds all randomness of controllers on this thread.
pub fn seed(seed: u64) {
    jitter::seed(seed);
}

/// Runs a controller until it fails or `stopped` completes. `connect` opens connections to its API server, and `now`
/// returns the time of day. Pools depend only on resources of the given clouds.
///
/// # Errors
/// The reason why it ended, such as a lost lease or invalid arguments.
pub async fn run<S, B>(
    arguments: &[&str],
    clouds: &'static [&'static dyn CloudFactory],
    connect: impl Fn() -> S,
    now: impl Fn() -> Timestamp + Send + Sync + 'static,
    stopped: impl Future<Output = ()>,
) -> anyhow::Result<()>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError> + Send + 'static,
    S::Future: Send + 'static,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let CommandLine { controller } = CommandLine::try_parse_from([&["controller"], arguments].concat())?;
    let metrics = Arc::new(Metrics::default());
    let parts = Parts {
        arguments: &controller,
        scope: controller.scope(Providers::SHIPPED)?,
        providers: Providers::SHIPPED,
        clouds: &CloudArguments::new(clouds, ArgMatches::default()),
        clock: Clock::of(now),
        readiness: Readiness::waiting_for([Need::Kinds, Need::Caches]),
        metrics: Arc::clone(&metrics),
    };
    let connected = |fence| Ok(access_through(connect(), "default".to_owned(), &metrics, fence));
    let ended = async {
        stopped.await;
        Ok(())
    };
    control(&parts, connected, ended, ready(())).await
}
