//! The process of the controller from its start to its end: what it serves, who leads, and how it stops.
//!
//! It stops within a second: no reconcile is begun any more, those under way get a moment, then writes are shut off and the
//! lease is given away, so that a successor begins at once. What was cut off goes on there: every reconcile can be the last one.

use std::future::pending;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use kube::client::{ClientBuilder, ConfigExt};
use kube::{Client, Config};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tower::{BoxError, ServiceBuilder};
use tracing::{info, warn};

use crate::cloud::{CloudArguments, Clouds, TaskEnded, WorkerName};
use crate::cluster::answers::Answers;
use crate::cluster::cache::SeedCache;
use crate::cluster::connection::{Access, connection};
use crate::cluster::events::EventRecorder;
use crate::cluster::request_metrics::RequestCount;
use crate::cluster::retry_layer::RetryLayer;
use crate::cluster::served_kinds;
use crate::cluster::write_fence::WriteFence;
use crate::controller;
use crate::controller::arguments::ControllerArguments;
use crate::controller::arguments::Part;
use crate::controller::context::ControllerContext;
use crate::controller::handover::until_given_up;
use crate::controller::memory::Memory;
use crate::controller::metrics::Metrics;
use crate::controller::node_counts::NodeCounts;
use crate::controller::run::Requests;
use crate::controller::served::Served;
use crate::image_controller;
use crate::process::election::Candidate;
use crate::process::endpoints::{self, Operations};
use crate::process::heartbeat;
use crate::process::leadership::Leadership;
use crate::process::lease::ElectionTimes;
use crate::process::logs::{self, LogSwitch};
use crate::process::output::complain;
use crate::process::readiness::{Need, Readiness};
use crate::process::signals::stop_signal;
use crate::process::threads;
use crate::process::traces::Traces;
use crate::provider::Providers;
use crate::worker::every_node_ready::HealthCheck;

/// Time for in-flight reconciles to end when the process is stopped.
const GRACE: Duration = Duration::from_millis(600);
/// What giving the lease away may take.
const RELEASE: Duration = Duration::from_millis(300);

/// Runs the controller for Workers of these providers until it is told to stop.
#[must_use]
pub(crate) fn run(arguments: ControllerArguments, providers: Providers, clouds: CloudArguments) -> ExitCode {
    match start(&arguments, providers, &clouds) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Logs may not be there yet.
            complain(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn start(arguments: &ControllerArguments, providers: Providers, clouds: &CloudArguments) -> anyhow::Result<()> {
    let runtime = threads::start().context("no threads")?;
    let result = runtime.block_on(async {
        let traces = Traces::begin(arguments.otlp_endpoint.as_deref().filter(|endpoint| !endpoint.is_empty()))?;
        let logs = logs::begin_beside(
            arguments.log_level,
            arguments.log_format,
            traces.as_ref().map(|traces| traces.layer()),
        )?;
        traces.iter().for_each(Traces::tell);
        serve(arguments, providers, clouds, logs, traces).await
    });
    // Nothing that is still under way may hold up the end.
    runtime.shutdown_background();
    result
}

/// Who stands for election. A dry run changes nothing at all, not even a lease: it needs none, because it can't collide with
/// anybody.
fn candidate(arguments: &ControllerArguments, client: &Client, leadership: &Leadership) -> Option<Candidate> {
    let namespace = arguments.leader_election_namespace.as_deref().filter(|_| !arguments.shadow)?;
    let times = ElectionTimes::of_lease(Duration::from_secs(arguments.leader_election_lease_seconds.into()));
    Some(Candidate::new(client.clone(), namespace, &arguments.leader_election_id, times, leadership.clone()))
}

/// Runs until the process is told to stop.
async fn serve(
    arguments: &ControllerArguments,
    providers: Providers,
    clouds: &CloudArguments,
    logs: LogSwitch,
    traces: Option<Traces>,
) -> anyhow::Result<()> {
    let mut stop = pin!(stop_signal()?);
    let metrics = Arc::new(Metrics::default());
    let readiness = Readiness::waiting_for([Need::Kinds, Need::Caches]);
    let operations = Operations { readiness: readiness.clone(), metrics: metrics.clone(), logs };
    let servers = endpoints::serve(arguments.health_port, arguments.metrics_port, operations);
    let mut servers = pin!(servers?);
    let (files, config) = (arguments.seed.files(), arguments.seed.config().await?);
    let leadership = Leadership::default();
    let fence = match (arguments.shadow, &arguments.leader_election_namespace) {
        (true, _) => WriteFence::Shut,
        (false, Some(_)) => WriteFence::Leader(leadership.clone()),
        (false, None) => WriteFence::Open,
    };
    let access = access(&config, &metrics, fence)?;
    // It has a connection of its own, and whether leases are answered says nothing about the work.
    let unfenced = self::access(&config, &metrics, WriteFence::Open)?.client;
    let mut candidate = candidate(arguments, &unfenced, &leadership);
    let elected = candidate.is_some().then_some(&leadership);
    let (stopping, stopped) = watch::channel(false);
    let result = {
        let mut election = pin!(election(candidate.as_mut(), &metrics));
        let mut heartbeat = pin!(beat(arguments, &unfenced));
        let mut unanswered = pin!(until_given_up(&access, &readiness, elected));
        let mut images = pin!(image_controller::run(&arguments.images, &access, &metrics.images));
        let mut work = pin!(work(arguments, (providers, clouds), access.clone(), &readiness, &metrics, stopped));
        let result = tokio::select! {
            result = &mut work => result,
            error = &mut election => Err(error),
            error = &mut unanswered => Err(error),
            error = files.until_changed() => Err(error),
            error = &mut servers => Err(error),
            never = &mut images => match never {},
            () = &mut heartbeat => Ok(()),
            signal = &mut stop => {
                info!(signal, "stopping");
                Ok(())
            }
        };
        stopping.send_replace(true);
        if result.is_ok() && timeout(GRACE, work).await.is_err() {
            info!("in-flight reconciles resume on the next leader");
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

/// A client whose requests are tried again when they fail, go through the fence each time they write, and are counted.
fn access(config: &Config, metrics: &Arc<Metrics>, fence: WriteFence) -> anyhow::Result<Access> {
    let answers = Answers::default();
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer().context("no credentials for the seed")?)
        .layer(config.extra_headers_layer().context("no headers for the seed")?)
        .map_err(BoxError::from)
        .service(connection(config)?);
    let builder = ClientBuilder::new(service, config.default_namespace.clone());
    let builder = builder.with_layer(&RequestCount(metrics.request_observer())).with_layer(&fence);
    Ok(Access { client: builder.with_layer(&RetryLayer::new(answers.clone())).build(), fence, answers })
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
    (providers, clouds): (Providers, &CloudArguments),
    access: Access,
    readiness: &Readiness,
    metrics: &Arc<Metrics>,
    stopped: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let mut stop = stopped.clone();
    let ready = async {
        if arguments.disable_controllers.contains(&Part::Worker) {
            // A cluster whose images alone are followed need not know Workers.
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
        () = ready => {}
        // The sender lives as long as this future.
        _ = stop.wait_for(|stopped| *stopped) => return Ok(()),
    }
    let served = Served::new(providers, &arguments.worker_types, &arguments.extension_classes)?;
    info!(worker_types = served.types(), classes = served.classes(), "starting");
    let Access { client, fence, answers } = access;
    let (requests, queued) = mpsc::unbounded_channel();
    let counts_nodes = arguments.health_check && !arguments.shadow;
    let context = Arc::new(ControllerContext {
        events: EventRecorder::new(client.clone()),
        garden: arguments.garden(),
        clouds: Clouds::open(clouds, &fence.before_clouds(), &asking_for(requests.clone()))?,
        node_counts: counts_nodes.then(|| NodeCounts::new(client.clone(), asking_for(requests.clone()))),
        client,
        answers,
        served,
        metrics: Arc::clone(metrics),
        memory: Memory::default(),
        cache: Arc::new(SeedCache::new(providers, arguments.version_forecast)),
        ignores_operation_annotation: arguments.ignore_operation_annotation,
        health_check: if arguments.health_check { HealthCheck::Ours } else { HealthCheck::OfWriter },
        image_policy: arguments.image_policy(),
        is_dry_run: arguments.shadow,
    });
    let slots = arguments.worker_max_concurrent_reconciles.into();
    controller::run::run(context, (requests, queued), slots, readiness, stopped).await;
    Ok(())
}

/// Requeues the Worker for which a background task has ended.
fn asking_for(requests: Requests) -> TaskEnded {
    // Without a receiver the process is about to end.
    Arc::new(move |worker: WorkerName| drop(requests.send(worker)))
}
