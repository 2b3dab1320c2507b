//! Which Worker is looked at when: the watches bring news, and kube's scheduler sees to it that each Worker has one look at
//! a time. Clouds ring a bell when something that a Worker waits for has come to an end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::channel::mpsc;
use futures::{FutureExt, StreamExt, stream};
use kube::runtime::Controller;
use kube::runtime::controller::{Action, Config};
use kube::runtime::reflector::store::store;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Client, Resource, ResourceExt};
use tokio::sync::watch;
use tracing::{Instrument, debug, info, info_span, warn};

use super::ControllerArguments;
use super::decode_guard::Guarded;
use super::look::{LookError, look_at_worker};
use super::metrics::Metrics;
use super::newest::Newest;
use super::news::WorkerRef;
use super::pace::Pace;
use super::readiness::{Need, Readiness};
use super::rest::Untold;
use super::retry::Retries;
use super::served::Served;
use super::shadow::{self, Shadow, Standing};
use super::unasked::Compared;
use super::undecodable::{latest_if_served, tell_undecodable};
use super::watches::Watches;
use super::worker_events::Recorder;
use super::write_gate::WriteGate;
use crate::api::gardener::Worker;
use crate::cloud::{Bell, Clouds, WorkerName};
use crate::provider::Providers;
use crate::worker::garden::Garden;
use crate::worker::place::{Knowledge, Place};

/// How long the first look waits for all watches. Looks that come before ask for themselves.
const PATIENCE_WITH_WATCHES: Duration = Duration::from_secs(3);

/// What every look needs.
pub(super) struct Shared {
    pub(super) client: Client,
    pub(super) garden: Garden,
    pub(super) clouds: Clouds,
    pub(super) recorder: Recorder,
    pub(super) served: Served,
    pub(super) metrics: Arc<Metrics>,
    pub(super) retries: Retries,
    pub(super) pace: Pace,
    /// Whether operations begin also without an annotation.
    pub(super) begins_unasked: bool,
    pub(super) compared: Compared,
    pub(super) newest: Newest,
    /// Workers as the watch shows them.
    pub(super) workers: Store<Guarded<Worker>>,
    pub(super) untold: Untold,
    pub(super) knowledge: Arc<Knowledge>,
    /// Only compares.
    pub(super) shadow: Option<Shadow>,
}

impl Shared {
    /// The Worker is gone.
    pub(super) fn forget(&self, worker: &Guarded<Worker>) {
        let uid = worker.meta().uid.as_deref().unwrap_or_default();
        self.newest.forget(uid);
        self.compared.forget(uid);
        self.untold.forget(uid);
        self.pace.forget(uid);
        self.retries.forget(uid);
        if let Some(shadow) = &self.shadow {
            shadow.forget(uid, &self.metrics);
        }
        if let Ok(worker) = &worker.object {
            if let Some(cloud) = self.clouds.for_worker_type(&worker.spec.worker_type) {
                cloud.forget(uid);
            }
            self.knowledge.clusters.forget(&worker.namespace().unwrap_or_default());
            self.knowledge.secrets.forget_all(worker);
        }
    }

    /// Where the passes of a Worker read and write.
    pub(super) fn place(&self, worker: &Worker) -> Place {
        Place::new(self.client.clone(), Arc::clone(&self.knowledge), worker.namespace().unwrap_or_default())
    }
}

/// Runs until it is told to stop.
pub(super) async fn run(
    client: Client,
    gate: &WriteGate,
    arguments: &ControllerArguments,
    providers: Providers,
    readiness: &Readiness,
    metrics: &Arc<Metrics>,
    mut stopped: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let served = Served::new(providers, &arguments.worker_types, &arguments.extension_classes)?;
    info!(worker_types = served.types(), classes = served.classes(), "starting");
    let (bell, rings) = mpsc::unbounded();
    let (workers, writer) = store();
    let clouds = Clouds::new(arguments.azure(), gate.before_clouds(), ringing(bell));
    let shared = Arc::new(Shared {
        recorder: Recorder::new(client.clone()),
        client: client.clone(),
        garden: arguments.garden(),
        clouds,
        served,
        metrics: Arc::clone(metrics),
        retries: Retries::default(),
        pace: Pace::default(),
        begins_unasked: arguments.ignore_operation_annotation,
        compared: Compared::default(),
        newest: Newest::default(),
        workers: workers.clone(),
        untold: Untold::default(),
        knowledge: Arc::default(),
        shadow: arguments.shadow.then(Shadow::default),
    });
    readiness.misses(Need::Caches, "the watches have not shown everything yet");
    let Watches { news, filled, tasks } = Watches::start(&shared, writer);
    tokio::select! {
        () = filled.clone() => readiness.has(Need::Caches),
        () = tokio::time::sleep(PATIENCE_WITH_WATCHES) => warn!("not all watches have begun"),
        _ = stopped.wait_for(|stopped| *stopped) => return Ok(()),
    }
    let news = stream::unfold(news, async |mut news| Some((news.recv().await?, news)));
    let run = Controller::for_stream(stream::pending(), workers)
        .with_config(Config::default().concurrency(arguments.worker_max_concurrent_reconciles))
        .reconcile_on(news)
        .reconcile_on(rings)
        .graceful_shutdown_on(async move {
            // Without a sender there is nobody left to run for.
            let _ = stopped.wait_for(|stopped| *stopped).await;
        })
        .run(look_at, on_error, shared)
        .for_each(|result| async {
            if let Err(error) = result {
                debug!(%error, "watch");
            }
        });
    futures::join!(run, filled.map(|()| readiness.has(Need::Caches)));
    drop(tasks);
    Ok(())
}

/// A bell that leads to a look at the Worker for which something has come to an end at a cloud.
fn ringing(rings: mpsc::UnboundedSender<WorkerRef>) -> Bell {
    Arc::new(move |worker: WorkerName| {
        // Without a receiver the process is about to end.
        let _ = rings.unbounded_send(ObjectRef::new(&worker.name).within(&worker.namespace));
    })
}

async fn look_at(guarded: Arc<Guarded<Worker>>, shared: Arc<Shared>) -> Result<Action, LookError> {
    let namespace = guarded.namespace().unwrap_or_default();
    let span = info_span!("worker", namespace, name = guarded.name_any());
    async {
        match (&guarded.object, &shared.shadow) {
            (Ok(worker), None) => look_at_worker(worker, &shared).await,
            (Ok(worker), Some(shadow)) => shadow::look_at_worker(worker, shadow, &shared).await,
            (Err(reason), Some(shadow)) => {
                if latest_if_served(&guarded, &shared).await?.is_some() {
                    let uid = guarded.meta().uid.as_deref().unwrap_or_default();
                    shadow.tell(uid, Standing::Unplanned(format!("can't be decoded: {reason}")), &shared.metrics);
                }
                Ok(Action::await_change())
            }
            (Err(reason), None) => tell_undecodable(&guarded, reason, &shared).await,
        }
    }
    .instrument(span)
    .await
}

fn on_error(guarded: Arc<Guarded<Worker>>, error: &LookError, shared: Arc<Shared>) -> Action {
    let (uid, now) = (guarded.meta().uid.as_deref().unwrap_or_default(), Instant::now());
    let delay = match error.says_that_nobody_answers() {
        true => shared.retries.alone(uid, now),
        false => shared.retries.failed(uid, false, now).delay,
    };
    warn!(namespace = guarded.namespace(), name = guarded.name_any(), %error, ?delay, "trying again");
    Action::requeue(delay)
}
