//! The controller at work: changes that watches show lead to requests of the queue, and the queue reconciles Workers. Clouds
//! ask for a Worker when something that it waits for has ended.

use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{Instrument, info_span, warn};

use crate::api::gardener::Worker;
use crate::cloud::WorkerName;
use crate::cluster::decode_guard::Guarded;
use crate::cluster::identity::Identity;
use crate::cluster::watches::{Change, Watches};
use crate::controller::context::ControllerContext;
use crate::controller::dry_run;
use crate::controller::error::ReconcileError;
use crate::controller::queue::{self, Requeue};
use crate::controller::reconcile::reconcile;
use crate::controller::steady::awaits_watches;
use crate::controller::undecodable::{latest_if_served, report_undecodable};
use crate::preview::dry_run::Comparison;
use crate::process::readiness::{Need, Readiness};

/// How long the first reconcile waits for all watches. Reconciles that come before read for themselves.
const WATCHES_DEADLINE: Duration = Duration::from_secs(3);

/// Who asks for Workers from outside of the watches.
pub(crate) type Requests = UnboundedSender<WorkerName>;

/// Follows the Workers of a seed until it is told to stop.
pub(crate) async fn run(
    context: Arc<ControllerContext>,
    (requests, queued): (Requests, UnboundedReceiver<WorkerName>),
    slots: usize,
    readiness: &Readiness,
    mut stopped: watch::Receiver<bool>,
) {
    readiness.misses(Need::Caches, "the caches are not synced yet");
    let Watches { changes, filled, missing, tasks } = Watches::start(&context.client, &context.cache);
    tokio::select! {
        biased;
        () = filled.clone() => readiness.has(Need::Caches),
        () = tokio::time::sleep(WATCHES_DEADLINE) => {
            warn!(%missing, "not all watches are synced yet");
            readiness.misses(Need::Caches, format!("the caches are not synced yet: {missing}"));
        }
        _ = stopped.wait_for(|stopped| *stopped) => return,
    }
    let until_stopped = async move {
        // Without a sender there is nobody left to run for.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    let weighed = Arc::clone(&context);
    let weight = move |worker: &WorkerName| machine_deployments(worker, &weighed);
    let work = queue::run(queued, slots, weight, until_stopped, |worker| reconcile_named(worker, Arc::clone(&context)));
    let watched = async {
        filled.await;
        readiness.has(Need::Caches);
    };
    tokio::select! {
        biased;
        () = work => {}
        () = async { tokio::join!(pass_on(changes, &context, requests), watched); } => {}
        () = dry_run::log_summaries(&context), if context.is_dry_run => {}
    }
    drop(tasks);
}

/// Asks for the Workers that changes are about.
async fn pass_on(mut changes: UnboundedReceiver<Change>, context: &ControllerContext, requests: Requests) {
    // Without a receiver the process is about to end.
    let request = |namespace: String, name: String| drop(requests.send(WorkerName { namespace, name }));
    while let Some(change) = changes.recv().await {
        match change {
            Change::Worker(worker) => request(worker.namespace, worker.name),
            Change::Namespace(namespace) => {
                let names = context.cache.workers.0.names(&namespace);
                names.into_iter().for_each(|name| request(namespace.clone(), name));
            }
            Change::DeletionUndone(namespace) => {
                for name in context.cache.workers.0.names(&namespace) {
                    if let Some(worker) = context.cache.workers.get(&namespace, &name) {
                        context.memory.of(worker.uid(), |memory| memory.deletion_undone = true);
                    }
                    request(namespace.clone(), name);
                }
            }
            Change::WorkerGone(worker) => forget(&worker, context),
        }
    }
}

fn forget(worker: &Guarded<Worker>, context: &ControllerContext) {
    context.forget(worker);
    if context.is_dry_run {
        dry_run::update_metrics(context);
    }
}

/// How many machine deployments a Worker has at most: one for each pool and zone.
fn machine_deployments(worker: &WorkerName, context: &ControllerContext) -> usize {
    let worker = context.cache.workers.get(&worker.namespace, &worker.name);
    let Some(Ok(worker)) = worker.map(|guarded| guarded.object()) else { return 1 };
    worker.spec.pools.iter().map(|pool| pool.zones.len().max(1)).sum::<usize>().max(1)
}

/// Reconciles the Worker of that name in its newest version, if there is one.
async fn reconcile_named(name: WorkerName, context: Arc<ControllerContext>) -> Requeue {
    let Some(worker) = context.cache.workers.get(&name.namespace, &name.name) else { return Requeue::OnEvent };
    let requeue = match awaits_watches(&worker, &context) {
        Some(requeue) => Ok(requeue),
        None => {
            let span = info_span!("worker", namespace = name.namespace, name = name.name);
            reconcile_guarded(&worker, &context).instrument(span).await
        }
    };
    let is_gone = || context.cache.workers.get(&name.namespace, &name.name).is_none();
    let requeue = requeue.unwrap_or_else(|error| on_error(&worker, &error, &context));
    if is_gone() {
        // It went while it was reconciled.
        forget(&worker, &context);
        return Requeue::OnEvent;
    }
    requeue
}

async fn reconcile_guarded(guarded: &Guarded<Worker>, context: &ControllerContext) -> Result<Requeue, ReconcileError> {
    match (&guarded.object(), context.is_dry_run) {
        (Ok(worker), false) => match Identity::of(guarded) {
            Some(identity) => reconcile(identity, worker, context).await,
            // No API server has sent it.
            None => Ok(Requeue::OnEvent),
        },
        (Ok(worker), true) => dry_run::compare_worker(worker, context).await,
        (Err(reason), true) => {
            if latest_if_served(guarded, context).await?.is_some() {
                let comparison = Comparison::Unplanned(format!("can't be decoded: {reason}"));
                dry_run::record(guarded.uid(), comparison, context);
            }
            Ok(Requeue::OnEvent)
        }
        (Err(reason), false) => report_undecodable(guarded, reason, context).await,
    }
}

fn on_error(guarded: &Guarded<Worker>, error: &ReconcileError, context: &ControllerContext) -> Requeue {
    // Where others are answered meanwhile, it is this Worker's own request that nobody answers: it held a slot for long.
    let is_its_own = error.is_unanswered() && context.answers.missing_for(Instant::now()).is_none();
    let delay = context.memory.of(guarded.uid(), |memory| match error.is_unreachable() && !is_its_own {
        true => memory.backoff.unreachable(),
        false => memory.backoff.failed(false, Instant::now()).delay,
    });
    warn!(namespace = guarded.namespace(), name = guarded.name_any(), %error, ?delay, "reconcile failed, retrying");
    Requeue::After(delay)
}
