//! The process of the controller from its start to its end: what it serves, who leads, and how it stops.
//!
//! It stops within a second: no look is begun any more, those under way get a moment, then writes are shut off and the
//! lease is given away, so that a successor begins at once. What was cut off goes on there: every look can be the last one.

use std::future::{Future, pending};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use kube::client::{ClientBuilder, ConfigExt};
use kube::{Client, Config};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::timeout;
use tower::{BoxError, ServiceBuilder};
use tracing::{info, warn};

use super::connection::connection;
use super::election::Candidate;
use super::leadership::Leadership;
use super::lease::ElectionTimes;
use super::logs::LogSwitch;
use super::metrics::Metrics;
use super::operations_server::{self, Operations};
use super::readiness::{Need, Readiness};
use super::request_count::RequestCount;
use super::traces::Traces;
use super::tries::Tries;
use super::write_gate::WriteGate;
use super::{ControllerArguments, Part, controller, heartbeat, kinds};
use crate::provider::Providers;

/// What looks under way get to end when the process is told to stop.
const GRACE: Duration = Duration::from_millis(600);
/// What giving the lease away may take.
const RELEASE: Duration = Duration::from_millis(300);

/// Runs until the process is told to stop.
pub(super) async fn run(
    arguments: &ControllerArguments,
    providers: Providers,
    logs: LogSwitch,
    traces: Option<Traces>,
) -> anyhow::Result<()> {
    let mut stop = pin!(stop_signal()?);
    let metrics = Arc::new(Metrics::default());
    let readiness = Readiness::waiting_for([Need::Kinds, Need::Caches]);
    let operations = Operations { readiness: readiness.clone(), metrics: metrics.clone(), logs };
    let servers = operations_server::serve(arguments.health_port, arguments.metrics_port, operations);
    let mut servers = pin!(servers.await?);
    let config = arguments.seed.config().await?;
    let leadership = Leadership::default();
    let gate = match (arguments.shadow, &arguments.leader_election_namespace) {
        (true, _) => WriteGate::Shut,
        (false, Some(_)) => WriteGate::Leader(leadership.clone()),
        (false, None) => WriteGate::Open,
    };
    let client = gated(&config, &metrics, &gate)?;
    let ungated = gated(&config, &metrics, &WriteGate::Open)?;
    // A shadow changes nothing at all, not even a lease: it needs none, because it can't collide with anybody.
    let mut candidate = arguments.leader_election_namespace.as_deref().filter(|_| !arguments.shadow).map(|namespace| {
        let times = ElectionTimes::of_lease(Duration::from_secs(arguments.leader_election_lease_seconds.into()));
        Candidate::new(ungated.clone(), namespace, &arguments.leader_election_id, times, leadership.clone())
    });
    let (stopping, stopped) = watch::channel(false);
    let result = {
        let mut election = pin!(election(candidate.as_mut(), &metrics));
        let mut heartbeat = pin!(beat(arguments, &ungated));
        let mut work = pin!(work(arguments, providers, client, &gate, &readiness, &metrics, stopped));
        let result = tokio::select! {
            result = &mut work => result,
            error = &mut election => Err(error),
            error = &mut servers => Err(error),
            () = &mut heartbeat => Ok(()),
            signal = &mut stop => {
                info!(signal, "stopping");
                Ok(())
            }
        };
        stopping.send_replace(true);
        if result.is_ok() && timeout(GRACE, work).await.is_err() {
            info!("looks under way are left to the successor");
        }
        result
    };
    let last_spans = async {
        if let Some(traces) = traces {
            traces.end().await;
        }
    };
    tokio::join!(release(candidate.as_ref(), &metrics), last_spans);
    info!("stopped");
    result
}

/// Gives the lease away, so that a successor need not wait until it has run out.
async fn release(candidate: Option<&Candidate>, metrics: &Metrics) {
    let Some(candidate) = candidate else { return };
    match timeout(RELEASE, candidate.release()).await {
        Ok(Ok(())) => metrics.leads(false),
        Ok(Err(error)) => warn!(error = format!("{error:#}"), "the lease runs out by itself"),
        Err(_) => warn!("the lease runs out by itself: no answer"),
    }
}

/// Resolves with the name of the signal.
///
/// # Errors
/// When the system lets no signals be received.
pub(crate) fn stop_signal() -> anyhow::Result<impl Future<Output = &'static str>> {
    let mut terminate = signal(SignalKind::terminate()).context("signals can't be received")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("signals can't be received")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        }
    })
}

/// A client whose requests are tried again when they fail, go through the gate each time they write, and are counted.
fn gated(config: &Config, metrics: &Arc<Metrics>, gate: &WriteGate) -> anyhow::Result<Client> {
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer().context("no credentials for the seed")?)
        .layer(config.extra_headers_layer().context("no headers for the seed")?)
        .map_err(BoxError::from)
        .service(connection(config)?);
    let builder = ClientBuilder::new(service, config.default_namespace.clone());
    Ok(builder.with_layer(&RequestCount(Arc::clone(metrics))).with_layer(gate).with_layer(&Tries::default()).build())
}

/// Ends when leadership is lost; never without an election.
async fn election(candidate: Option<&mut Candidate>, metrics: &Metrics) -> anyhow::Error {
    let Some(candidate) = candidate else { return pending().await };
    let lost = candidate.lead(|| metrics.leads(true)).await;
    metrics.leads(false);
    lost
}

async fn beat(arguments: &ControllerArguments, client: &Client) {
    let is_wanted = !arguments.shadow && !arguments.disable_controllers.contains(&Part::Heartbeat);
    let Some(namespace) = arguments.heartbeat_namespace.clone().filter(|_| is_wanted) else { return pending().await };
    let period = Duration::from_secs(arguments.heartbeat_renew_interval_seconds.into());
    heartbeat::beat(client.clone(), namespace, period).await;
}

/// Waits for what the controller needs, then runs it.
async fn work(
    arguments: &ControllerArguments,
    providers: Providers,
    client: Client,
    gate: &WriteGate,
    readiness: &Readiness,
    metrics: &Arc<Metrics>,
    stopped: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let mut told = stopped.clone();
    let ready = async {
        kinds::wait_until_served(&client, readiness).await;
        if let WriteGate::Leader(leadership) = gate {
            readiness.set_standing_by(true);
            leadership.wait().await;
            readiness.set_standing_by(false);
        }
        if arguments.disable_controllers.contains(&Part::Worker) {
            pending::<()>().await;
        }
    };
    tokio::select! {
        () = ready => {}
        // The sender lives as long as this future.
        _ = told.wait_for(|stopped| *stopped) => return Ok(()),
    }
    controller::run(client.clone(), gate, arguments, providers, readiness, metrics, stopped).await
}
