//! The controller process from start to end: what it serves, who leads, and how it stops.
//!
//! It stops within a second. It starts no more reconciles, gives running ones a moment, then blocks writes and
//! releases the lease, so that a successor starts immediately. A reconcile may be interrupted anywhere, and the
//! successor resumes its operation.

use std::future::{Future, pending};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::body::{Bytes, HttpBody};
use axum::http::{Request, Response};
use kube::client::{Body, ClientBuilder, ConfigExt};
use kube::{Client, Config};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tower::{BoxError, Service, ServiceBuilder};
use tracing::{info, warn};

use crate::controller;
use crate::controller::report::metrics::Metrics;
use crate::controller::report::node_counts::NodeCounts;
use crate::controller::run::Requests;
use crate::controller::run::arguments::{ControllerArguments, Part, Scope};
use crate::controller::run::context::ControllerContext;
use crate::controller::run::handover::until_unreachable;
use crate::controller::run::memory::Memory;
use crate::controller::run::roll_slots::RollSlots;
use crate::image_controller;
use decisions::provider::Providers;
use decisions::worker::status::every_node_ready::HealthCheck;
use runtime::cloud::{CloudArguments, Clouds, TaskEnded, WorkerName};
use runtime::cluster::cache::SeedCache;
use runtime::cluster::connection::{Access, connection};
use runtime::cluster::events::EventRecorder;
use runtime::cluster::request_metrics::RequestCount;
use runtime::cluster::responses::Responses;
use runtime::cluster::retry_layer::RetryLayer;
use runtime::cluster::served_kinds;
use runtime::cluster::write_fence::WriteFence;
use runtime::process::clock::Clock;
use runtime::process::election::Candidate;
use runtime::process::endpoints::{self, Operations};
use runtime::process::failure_reason::reason;
use runtime::process::heartbeat;
use runtime::process::leadership::Leadership;
use runtime::process::lease::LeaseTimes;
use runtime::process::logs::{self, LogSwitch};
use runtime::process::output::complain;
use runtime::process::readiness::{Need, Readiness};
use runtime::process::signals::stop_signal;
use runtime::process::threads;
use runtime::process::traces::Traces;

/// Time for running reconciles to end when the process is stopped.
const SHUTDOWN_GRACE_PERIOD: Duration = Duration::from_millis(600);
/// Time limit for releasing the lease.
const RELEASE_TIMEOUT: Duration = Duration::from_millis(300);

/// Runs the controller for these Workers until it is stopped.
#[must_use]
pub fn run(arguments: ControllerArguments, scope: Scope, providers: Providers, clouds: CloudArguments) -> ExitCode {
    match start(&arguments, scope, providers, &clouds) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Logging may not be set up yet.
            complain(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn start(
    arguments: &ControllerArguments,
    scope: Scope,
    providers: Providers,
    clouds: &CloudArguments,
) -> anyhow::Result<()> {
    let runtime = threads::one().context("no threads")?;
    let result = runtime.block_on(async {
        let traces = Traces::begin(arguments.otlp_endpoint.as_deref().filter(|endpoint| !endpoint.is_empty()))?;
        let logs = logs::begin_beside(
            arguments.log_level,
            arguments.log_format,
            traces.as_ref().map(|traces| traces.layer()),
        )?;
        traces.iter().for_each(Traces::report);
        let parts = Parts {
            arguments,
            scope,
            providers,
            clouds,
            clock: Clock::default(),
            readiness: Readiness::waiting_for([Need::Kinds, Need::Caches]),
            metrics: Arc::new(Metrics::default()),
        };
        serve(&parts, logs, traces).await
    });
    // Tasks that still run must not delay the exit.
    runtime.shutdown_background();
    result
}

/// The parts of a controller process that do not depend on its connection to the API server.
pub struct Parts<'a> {
    pub arguments: &'a ControllerArguments,
    pub scope: Scope,
    pub providers: Providers,
    pub clouds: &'a CloudArguments,
    pub clock: Clock,
    pub readiness: Readiness,
    pub metrics: Arc<Metrics>,
}

impl Parts<'_> {
    /// The write fence that these arguments require.
    fn fence(&self, leadership: &Leadership) -> WriteFence {
        match (self.arguments.shadow, &self.arguments.leader_election_namespace) {
            (true, _) => WriteFence::Shut,
            (false, Some(_)) => WriteFence::Leader(leadership.clone()),
            (false, None) => WriteFence::Open,
        }
    }

    /// The candidate for leadership or for the lease of its shard. A dry run must not write even a lease. It needs
    /// none, because it can't conflict with another process.
    fn candidate(&self, client: &Client, leadership: &Leadership) -> Option<Candidate> {
        let arguments = self.arguments;
        if arguments.shadow {
            return None;
        }
        let namespace = arguments.leader_election_namespace.as_deref()?;
        let times = LeaseTimes::of_lease(Duration::from_secs(arguments.leader_election_lease_seconds.into()));
        let leadership = (leadership.clone(), self.clock.clone());
        let candidate = Candidate::new(client.clone(), namespace, &arguments.leader_election_id, times, leadership);
        Some(match &self.scope.shard {
            None => candidate,
            Some(shard) => candidate.of_shard(shard),
        })
    }
}

/// Runs until the process is stopped.
async fn serve(parts: &Parts<'_>, logs: LogSwitch, traces: Option<Traces>) -> anyhow::Result<()> {
    let Parts { arguments, readiness, metrics, .. } = parts;
    let mut stop = pin!(stop_signal()?);
    let operations = Operations { readiness: readiness.clone(), metrics: metrics.clone(), logs };
    let servers = endpoints::serve(arguments.health_port, arguments.metrics_port, operations);
    let mut servers = pin!(servers?);
    let files = arguments.seed.files();
    let config = arguments.seed.config().await?;
    let ended = async {
        tokio::select! {
            error = files.until_changed() => Err(error),
            error = &mut servers => Err(error),
            signal = &mut stop => {
                info!(signal, "stopping");
                Ok(())
            }
        }
    };
    let last_spans = async {
        if let Some(traces) = traces {
            traces.end().await;
        }
    };
    let result = control(parts, |fence| access(&config, metrics, fence), ended, last_spans).await;
    info!("stopped");
    result
}

/// Runs for election and works, until `ended` completes or something required is lost. Then running reconciles get a
/// moment, and the lease is released while `at_last` runs.
///
/// # Errors
/// If there is no connection to the API server. Otherwise the reason why it ended.
pub async fn control(
    parts: &Parts<'_>,
    connect: impl Fn(WriteFence) -> anyhow::Result<Access>,
    ended: impl Future<Output = anyhow::Result<()>>,
    at_last: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let Parts { arguments, metrics, readiness, .. } = parts;
    let leadership = Leadership::default();
    let access = connect(parts.fence(&leadership))?;
    // A separate connection, because answers about leases say nothing about the other requests.
    let unfenced = connect(WriteFence::Open)?.client;
    let mut candidate = parts.candidate(&unfenced, &leadership);
    let elected = candidate.is_some().then_some(&leadership);
    let (stopping, stopped) = watch::channel(false);
    let result = {
        let mut election = pin!(election(candidate.as_mut(), metrics));
        let mut heartbeat = pin!(beat(arguments, &unfenced));
        let mut unanswered = pin!(until_unreachable(&access, readiness, elected));
        let mut images = pin!(image_controller::run(&arguments.images, &access, &metrics.images));
        let mut work = pin!(work(parts, access.clone(), stopped));
        let result = tokio::select! {
            biased;
            result = &mut work => result,
            error = &mut election => Err(error),
            error = &mut unanswered => Err(error),
            never = &mut images => match never {},
            () = &mut heartbeat => Ok(()),
            ended = ended => ended,
        };
        stopping.send_replace(true);
        if result.is_ok() && timeout(SHUTDOWN_GRACE_PERIOD, work).await.is_err() {
            info!("in-flight reconciles resume on the next leader");
        }
        result
    };
    tokio::join!(release(candidate.as_ref(), metrics), at_last);
    result
}

/// Releases the lease, so that a successor need not wait until it expires.
async fn release(candidate: Option<&Candidate>, metrics: &Metrics) {
    let Some(candidate) = candidate else { return };
    match timeout(RELEASE_TIMEOUT, candidate.release()).await {
        Ok(Ok(())) => metrics.leads(false, candidate.is_shard()),
        Ok(Err(error)) => warn!(error = reason(error.as_ref()), "the lease runs out by itself"),
        Err(_) => warn!("the lease runs out by itself: no answer"),
    }
}

/// Connects to the API server of a configuration.
fn access(config: &Config, metrics: &Arc<Metrics>, fence: WriteFence) -> anyhow::Result<Access> {
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer().context("no credentials for the seed")?)
        .layer(config.extra_headers_layer().context("no headers for the seed")?)
        .map_err(BoxError::from)
        .service(connection(config)?);
    Ok(access_through(service, config.default_namespace.clone(), metrics, fence))
}

/// A client that retries failed requests, sends writes through the fence, and counts requests.
pub fn access_through<S, B>(service: S, namespace: String, metrics: &Arc<Metrics>, fence: WriteFence) -> Access
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError> + Send + 'static,
    S::Future: Send + 'static,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let responses = Responses::default();
    let builder = ClientBuilder::new(service, namespace);
    let builder = builder.with_layer(&RequestCount(metrics.request_observer())).with_layer(&fence);
    Access { client: builder.with_layer(&RetryLayer::new(responses.clone())).build(), fence, responses }
}

/// Returns when leadership is lost. Without an election it never returns.
async fn election(candidate: Option<&mut Candidate>, metrics: &Metrics) -> anyhow::Error {
    let Some(candidate) = candidate else { return pending().await };
    let is_shard = candidate.is_shard();
    let lost = candidate.lead(|| metrics.leads(true, is_shard)).await;
    metrics.leads(false, is_shard);
    lost
}

async fn beat(arguments: &ControllerArguments, client: &Client) {
    let Some((namespace, period)) = arguments.heartbeat() else { return pending().await };
    heartbeat::beat(client.clone(), namespace, period).await;
}

/// Waits for the prerequisites of the controller, then runs it.
async fn work(parts: &Parts<'_>, access: Access, stopped: watch::Receiver<bool>) -> anyhow::Result<()> {
    let Parts { arguments, scope: Scope { served, shard }, providers, clouds, clock, readiness, metrics } = parts;
    let mut stop = stopped.clone();
    let ready = async {
        if arguments.disable_controllers.contains(&Part::Worker) {
            // A cluster that is only used for images need not have the kind Worker.
            readiness.has(Need::Kinds);
            readiness.has(Need::Caches);
            pending::<()>().await;
        }
        served_kinds::wait_until_served(&access.client, readiness).await;
        if let WriteFence::Leader(leadership) = &access.fence {
            readiness.set_standing_by(true);
            leadership.wait().await;
            readiness.set_standing_by(false);
        }
    };
    tokio::select! {
        biased;
        () = ready => {}
        // The sender lives as long as this future.
        _ = stop.wait_for(|stopped| *stopped) => return Ok(()),
    }
    info!(worker_types = served.types(), classes = served.classes(), "starting");
    let Access { client, fence, responses } = access;
    let (requests, queued) = mpsc::unbounded_channel();
    let counts_nodes = arguments.health_check && !arguments.shadow;
    let cache = Arc::new(SeedCache::new(*providers, arguments.version_forecast));
    let roll_slots = roll_slots(arguments, shard.is_some());
    if let Some(slots) = roll_slots.clone() {
        let cache = Arc::clone(&cache);
        metrics.report_slots(move || slots.numbers(&cache));
    }
    let context = Arc::new(ControllerContext {
        events: EventRecorder::new(client.clone(), clock.clone()),
        garden: arguments.garden(),
        clouds: Clouds::open(clouds, &fence.before_clouds(), &asking_for(requests.clone()))?,
        node_counts: counts_nodes.then(|| NodeCounts::new(client.clone(), asking_for(requests.clone()))),
        client,
        responses,
        clock: clock.clone(),
        served: served.clone(),
        metrics: Arc::clone(metrics),
        memory: Memory::default(),
        cache,
        ignores_operation_annotation: arguments.ignore_operation_annotation,
        health_check: if arguments.health_check { HealthCheck::Ours } else { HealthCheck::OfWriter },
        image_policy: arguments.image_policy(),
        roll_slots,
        is_dry_run: arguments.shadow,
        shard: shard.clone(),
    });
    let slots = arguments.worker_max_concurrent_reconciles.into();
    controller::run::run(context, (requests, queued), slots, readiness, stopped).await
}

fn roll_slots(arguments: &ControllerArguments, is_shard: bool) -> Option<Arc<RollSlots>> {
    let limit = usize::try_from(arguments.roll_budget?).unwrap_or(usize::MAX);
    Some(Arc::new(RollSlots::new(limit, is_shard)))
}

/// Requeues the Worker whose background task has ended.
fn asking_for(requests: Requests) -> TaskEnded {
    // Without a receiver the process is about to end.
    Arc::new(move |worker: WorkerName| drop(requests.send(worker)))
}
