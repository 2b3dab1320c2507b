//! Runs the controller: changes from watches become requests in the queue, which reconciles Workers. Clouds also
//! request a Worker when a background task for it has ended.

pub(crate) mod arguments;
pub(crate) mod context;
pub(crate) mod handover;
pub(crate) mod memory;
pub(crate) mod roll_slots;
pub mod served;
pub(crate) mod sharding;
pub mod start;

use std::fmt::Display;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use kube::ResourceExt;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::{Instrument, info_span, warn};

use crate::controller::queue::{self, Requeue};
use crate::controller::reconcile::dry_run;
use crate::controller::reconcile::error::ReconcileError;
use crate::controller::reconcile::reconcile;
use crate::controller::reconcile::steady::awaits_watches;
use crate::controller::reconcile::undecodable::{latest_if_served, report_undecodable};
use crate::controller::run::context::ControllerContext;
use crate::controller::run::memory::WorkerMemory;
use crate::controller::run::sharding::{acknowledge_drain, assignment};
use explanations::preview::dry_run::Comparison;
use runtime::cloud::WorkerName;
use runtime::cluster::assignment::while_assigned;
use runtime::cluster::decode_guard::LazyObject;
use runtime::cluster::identity::Identity;
use runtime::cluster::watches::{Change, Watches};
use runtime::process::readiness::{Need, Readiness};
use runtime::process::shard::Standing;
use wire::api::gardener::Worker;

/// How long the first reconcile waits for all watches. After that, reconciles read unsynced kinds from the API
/// server.
const WATCHES_DEADLINE: Duration = Duration::from_secs(3);

/// Sends requests that do not come from watches.
pub(crate) type Requests = UnboundedSender<WorkerName>;

/// Follows the Workers of a seed until it is stopped.
///
/// # Errors
/// If a watch has ended, because its changes would be missed.
pub(crate) async fn run(
    context: Arc<ControllerContext>,
    (requests, queued): (Requests, UnboundedReceiver<WorkerName>),
    slots: usize,
    readiness: &Readiness,
    mut stopped: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let Watches { changes, filled, missing, mut tasks } =
        Watches::start(&context.client, &context.cache, context.shard.as_ref());
    let watched = report_caches(filled, &missing, readiness).shared();
    tokio::select! {
        biased;
        () = watched.clone() => {}
        () = tokio::time::sleep(WATCHES_DEADLINE) => warn!(%missing, "not all watches are synced yet"),
        _ = stopped.wait_for(|stopped| *stopped) => return Ok(()),
        lost = watch_lost(&mut tasks) => return Err(lost),
    }
    let until_stopped = async move {
        // A dropped sender also means stop.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    let weighed = Arc::clone(&context);
    let weight = move |worker: &WorkerName| machine_deployments(worker, &weighed);
    let work = queue::run(queued, slots, weight, until_stopped, |worker| reconcile_named(worker, Arc::clone(&context)));
    tokio::select! {
        biased;
        () = work => Ok(()),
        () = async { tokio::join!(enqueue_changes(changes, &context, requests), watched); } => Ok(()),
        () = dry_run::log_summaries(&context), if context.is_dry_run => Ok(()),
        lost = watch_lost(&mut tasks) => Err(lost),
    }
}

/// Waits until a watch has ended, which only happens after a panic.
async fn watch_lost(watches: &mut JoinSet<()>) -> anyhow::Error {
    match watches.join_next().await {
        Some(Err(panic)) => anyhow::anyhow!("a watch has ended: {panic}"),
        Some(Ok(())) | None => anyhow::anyhow!("a watch has ended"),
    }
}

/// Reports in readiness which caches are not synced yet, until all are.
async fn report_caches(filled: impl Future<Output = ()>, missing: &impl Display, readiness: &Readiness) {
    let mut filled = pin!(filled);
    let mut often = tokio::time::interval(WATCHES_DEADLINE);
    loop {
        tokio::select! {
            biased;
            () = &mut filled => return readiness.has(Need::Caches),
            _ = often.tick() => readiness.misses(Need::Caches, format!("the caches are not synced yet: {missing}")),
        }
    }
}

/// Requests the Workers affected by each change.
async fn enqueue_changes(mut changes: UnboundedReceiver<Change>, context: &ControllerContext, requests: Requests) {
    // Without a receiver the process is about to end.
    let request = |namespace: String, name: String| drop(requests.send(WorkerName { namespace, name }));
    let of_namespace = |namespace: String, note: &dyn Fn(&mut WorkerMemory)| {
        for name in context.cache.workers.0.names(&namespace) {
            if let Some(worker) = context.cache.workers.get(&namespace, &name) {
                context.memory.of(worker.uid(), note);
            }
            request(namespace.clone(), name);
        }
    };
    while let Some(change) = changes.recv().await {
        match change {
            Change::Worker(worker) => request(worker.namespace, worker.name),
            Change::Namespace(namespace) => of_namespace(namespace, &|_| ()),
            Change::PlannedObject { namespace, version } => {
                of_namespace(namespace, &|memory| memory.planned_object_changed(version));
            }
            Change::DeletionUndone(namespace) => of_namespace(namespace, &|memory| memory.must_start_operation = true),
            Change::WorkerDeleted(worker) => forget(&worker, context),
        }
    }
}

fn forget(worker: &LazyObject<Worker>, context: &ControllerContext) {
    context.forget(worker);
    if context.is_dry_run {
        dry_run::update_metrics(context);
    }
}

/// Maximum number of machine deployments of a Worker: one for each pool and zone.
fn machine_deployments(worker: &WorkerName, context: &ControllerContext) -> usize {
    let worker = context.cache.workers.get(&worker.namespace, &worker.name);
    let Some(Ok(worker)) = worker.map(|guarded| guarded.object()) else { return 1 };
    worker.spec.pools.iter().map(|pool| pool.zones.len().max(1)).sum::<usize>().max(1)
}

/// Reconciles the newest version of the Worker with that name, if it exists.
async fn reconcile_named(name: WorkerName, context: Arc<ControllerContext>) -> Requeue {
    let Some(worker) = context.cache.workers.get(&name.namespace, &name.name) else { return Requeue::OnEvent };
    let span = info_span!("worker", namespace = name.namespace, name = name.name);
    let requeue = reconcile_as_shard(&worker, &context).instrument(span).await;
    // The Worker may have been recreated.
    let is_deleted = || {
        let now = context.cache.workers.get(&name.namespace, &name.name);
        now.is_none_or(|now| now.uid() != worker.uid())
    };
    let requeue = requeue.unwrap_or_else(|error| on_error(&worker, &error, &context));
    if is_deleted() {
        // It was deleted or moved to another shard during the reconcile.
        forget(&worker, &context);
        return Requeue::OnEvent;
    }
    requeue
}

/// Reconciles the Worker if it is assigned to this shard, or acknowledges its drain.
async fn reconcile_as_shard(
    worker: &LazyObject<Worker>,
    context: &Arc<ControllerContext>,
) -> Result<Requeue, ReconcileError> {
    let Some(shard) = &context.shard else { return reconcile_guarded(worker, context).await };
    match shard.standing(worker.labels()) {
        Standing::Assigned => {
            while_assigned(assignment(worker, shard, context), reconcile_guarded(worker, context)).await
        }
        Standing::Drained => acknowledge_drain(worker, shard, context).await,
        // The watch will report that.
        Standing::NotOurs => Ok(Requeue::OnEvent),
    }
}

async fn reconcile_guarded(
    guarded: &LazyObject<Worker>,
    context: &ControllerContext,
) -> Result<Requeue, ReconcileError> {
    if let Some(requeue) = awaits_watches(guarded, context) {
        return Ok(requeue);
    }
    match (&guarded.object(), context.is_dry_run) {
        (Ok(worker), false) => match Identity::of(guarded) {
            Some(identity) => reconcile(identity, worker, context).await,
            // It has no UID or version, so it does not come from an API server.
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

fn on_error(guarded: &LazyObject<Worker>, error: &ReconcileError, context: &ControllerContext) -> Requeue {
    // If other requests are answered, only this Worker's request hangs. It has occupied a slot for a long time.
    let is_its_own = error.is_unanswered() && context.responses.missing_for(Instant::now()).is_none();
    let delay = context.memory.of(guarded.uid(), |memory| match error.is_unreachable() && !is_its_own {
        true => memory.backoff.unreachable(),
        false => memory.backoff.failed(false, Instant::now()).delay,
    });
    warn!(namespace = guarded.namespace(), name = guarded.name_any(), %error, ?delay, "reconcile failed, retrying");
    Requeue::After(delay)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::future::pending;
    use std::mem;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    use futures::future::BoxFuture;
    use serde_json::{Value, json};

    use super::*;
    use crate::controller::test_support::{Requested, controller, lines, observed, refusal, worker};
    use decisions::provider::{WorkerContext, WorkerError};
    use decisions::worker::request::FINALIZER;
    use runtime::cloud::Clouds;
    use runtime::cloud::dependency::{CleanUp, Cloud, DependencyRequest, DependencyState, UsedByClasses};
    use runtime::cluster::cache::SeedCache;
    use runtime::cluster::error::ReadError;
    use runtime::process::endpoints::MetricsText;
    use runtime::process::shard::Shard;
    use wire::api::gardener::Cluster;
    use wire::api::secret::Secrets;

    const SHARD: &str = "shard.alpha.sharding.timebertt.dev/ring";
    const DRAIN: &str = "drain.alpha.sharding.timebertt.dev/ring";

    fn name() -> WorkerName {
        WorkerName { namespace: "ns".to_owned(), name: "w".to_owned() }
    }

    fn shard() -> Shard {
        Shard::new("ring", "a").unwrap()
    }

    #[tokio::test]
    async fn a_drained_worker_is_acknowledged_once_and_nothing_of_it_is_kept() {
        let others = worker(&json!({SHARD: "b"}), 8);
        let (context, requested) = controller(Some(shard()), move |_, _| (200, others.clone()));
        observed(worker(&json!({SHARD: "a", DRAIN: "true"}), 7), &context);
        context.memory.of("u", |memory| memory.must_start_operation = true);
        for _ in 0..2 {
            assert_eq!(reconcile_named(name(), Arc::clone(&context)).await, Requeue::OnEvent);
        }
        let labels = BTreeMap::from([(SHARD, Value::Null), (DRAIN, Value::Null)]);
        let acknowledgement = json!({"metadata": {"resourceVersion": "7", "labels": labels}});
        assert_eq!(*requested.lock().unwrap(), [("PATCH w".to_owned(), acknowledgement)]);
        assert!(context.cache.workers.get("ns", "w").is_none());
        assert!(!context.memory.of("u", |memory| memory.must_start_operation), "forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_missing_in_the_caches_is_as_it_is_now() {
        let readiness = Readiness::waiting_for([Need::Caches]);
        let missing = |text: &str| Err(format!("caches: the caches are not synced yet: {text}\n"));
        let (fill, filled) = tokio::sync::oneshot::channel::<()>();
        let reported = Reported(Mutex::new("Machine, Worker"));
        let looking = async {
            let mut seen = Vec::new();
            for now in ["Machine, Worker", "Worker; refused"] {
                *reported.0.lock().unwrap() = now;
                tokio::time::sleep(WATCHES_DEADLINE + Duration::from_millis(1)).await;
                seen.push(readiness.report());
            }
            fill.send(()).unwrap();
            seen
        };
        let filled = async { filled.await.unwrap() };
        let ((), seen) = tokio::join!(report_caches(filled, &reported, &readiness), looking);
        assert_eq!(seen, ["Machine, Worker", "Worker; refused"].map(missing));
        assert_eq!(readiness.report().as_deref(), Ok("ready\n"));
    }

    /// Missing caches as set by the test.
    struct Reported(Mutex<&'static str>);

    impl Display for Reported {
        fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.write_str(*self.0.lock().unwrap())
        }
    }

    #[tokio::test]
    async fn change_in_namespace_enqueues_all_its_workers() {
        let (context, _) = controller(None, |_, _| refusal(404, "NotFound"));
        observed(worker(&json!({}), 7), &context);
        context.memory.of("u", |memory| memory.began_with = Some(7));
        let here = || "ns".to_owned();
        for (change, must_start_operation) in [
            (Change::Namespace(here()), false),
            (Change::PlannedObject { namespace: here(), version: 8 }, false),
            (Change::PlannedObject { namespace: "other".to_owned(), version: 6 }, false),
            (Change::PlannedObject { namespace: here(), version: 6 }, true),
            (Change::DeletionUndone(here()), true),
        ] {
            context.memory.of("u", |memory| memory.must_start_operation = false);
            let is_of_another = matches!(&change, Change::PlannedObject { namespace, .. } if namespace == "other");
            let ((changes, observed), (requests, mut requested)) =
                (tokio::sync::mpsc::unbounded_channel(), tokio::sync::mpsc::unbounded_channel());
            changes.send(change).unwrap();
            drop(changes);
            enqueue_changes(observed, &context, requests).await;
            let requested = std::iter::from_fn(|| requested.try_recv().ok()).collect::<Vec<_>>();
            assert_eq!(requested, if is_of_another { vec![] } else { vec![name()] });
            assert_eq!(context.memory.of("u", |memory| memory.must_start_operation), must_start_operation);
        }
    }

    #[tokio::test]
    async fn nothing_is_kept_of_a_worker_whose_name_another_one_has() {
        let (context, _) = controller(None, |line, cached| {
            if line.starts_with("GET") {
                let mut other = worker(&json!({}), 9);
                other["metadata"]["uid"] = json!("v");
                let other: LazyObject<Worker> = serde_json::from_value(other).unwrap();
                cached.workers.write().of_write(Identity::of(&other).unwrap(), || other);
            }
            refusal(404, "NotFound")
        });
        observed(worker(&json!({}), 7), &context);
        let before = context.cache.workers.get("ns", "w").unwrap();
        assert_eq!(reconcile_named(name(), Arc::clone(&context)).await, Requeue::OnEvent);
        assert_eq!(context.cache.workers.get("ns", "w").unwrap().uid(), "v", "as the test wants it");
        assert!(is_after(on_error(&before, &refused(403), &context), 1..2), "as if it had never failed");
    }

    #[tokio::test]
    async fn a_watch_that_panics_ends_the_process() {
        let mut watches = JoinSet::new();
        watches.spawn(pending());
        watches.spawn(async { panic!("in a test") });
        let lost = watch_lost(&mut watches).await.to_string();
        assert!(lost.starts_with("a watch has ended: ") && lost.contains("in a test"), "{lost}");
    }

    /// A cloud that has a background task for each Worker, or none.
    struct Tasks(Arc<AtomicBool>);

    impl Cloud for Tasks {
        fn ensure<'a>(&'a self, _: DependencyRequest<'a>) -> BoxFuture<'a, Result<DependencyState, WorkerError>> {
            async { Ok(DependencyState::default()) }.boxed()
        }

        fn clean_up<'a>(
            &'a self,
            _: &'a WorkerContext<'a>,
            _: UsedByClasses,
        ) -> BoxFuture<'a, Result<CleanUp, WorkerError>> {
            async { Ok(CleanUp::Unneeded) }.boxed()
        }

        fn remove<'a>(
            &'a self,
            _: &'a Worker,
            _: Option<&'a Cluster>,
            _: &'a Secrets,
        ) -> BoxFuture<'a, Result<CleanUp, WorkerError>> {
            async { Ok(CleanUp::Unneeded) }.boxed()
        }

        fn is_busy(&self, _: &str) -> bool {
            self.0.load(Ordering::Relaxed)
        }

        fn forget(&self, _: &str) {}
    }

    #[tokio::test]
    async fn drained_worker_waits_for_running_cloud_task() {
        let others = worker(&json!({SHARD: "b"}), 8);
        let (context, requested) = controller(Some(shard()), move |_, _| (200, others.clone()));
        let continues = Arc::new(AtomicBool::new(true));
        let mut context = Arc::into_inner(context).unwrap();
        context.clouds = Clouds::of_one("azure", Arc::new(Tasks(Arc::clone(&continues))));
        let context = Arc::new(context);
        observed(worker(&json!({SHARD: "a", DRAIN: "true"}), 7), &context);
        let requeue = reconcile_named(name(), Arc::clone(&context)).await;
        assert!(matches!(requeue, Requeue::After(_)) && requested.lock().unwrap().is_empty(), "{requeue:?}");
        continues.store(false, Ordering::Relaxed);
        reconcile_named(name(), Arc::clone(&context)).await;
        assert_eq!(requested.lock().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn returned_worker_is_reconciled_on_its_event() {
        let ours = worker(&json!({SHARD: "a"}), 8);
        let (context, _) = controller(Some(shard()), move |_, _| (200, ours.clone()));
        observed(worker(&json!({SHARD: "a", DRAIN: "true"}), 7), &context);
        reconcile_named(name(), Arc::clone(&context)).await;
        let back: LazyObject<Worker> = serde_json::from_value(worker(&json!({SHARD: "a"}), 8)).unwrap();
        assert!(context.cache.workers.0.event(Identity::of(&back).unwrap(), || back), "a change");
        assert!(context.cache.workers.get("ns", "w").is_some());
    }

    #[tokio::test]
    async fn a_worker_of_another_shard_is_not_touched() {
        let (context, requested) = controller(Some(shard()), |_, _| (500, json!({})));
        for labels in [json!({SHARD: "b"}), json!({SHARD: "b", DRAIN: "true"}), json!({})] {
            observed(worker(&labels, 7), &context);
            assert_eq!(reconcile_named(name(), Arc::clone(&context)).await, Requeue::OnEvent);
        }
        assert!(requested.lock().unwrap().is_empty());
    }

    /// Writes for a Worker that is deleted or moves to another shard while its Cluster is read.
    async fn writes_after_a_loss(
        shard: Option<Shard>,
        lose: impl Fn(&SeedCache) + Clone + Send + 'static,
    ) -> Vec<String> {
        let (context, requested) = controller(shard, move |line, cached| {
            if line.starts_with("GET") {
                lose(cached);
            }
            let status =
                json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404});
            (404, status)
        });
        observed(worker(&json!({SHARD: "a"}), 7), &context);
        reconcile_named(name(), Arc::clone(&context)).await;
        let requested = mem::take(&mut *requested.lock().unwrap());
        requested.into_iter().map(|(line, _)| line).filter(|line| !line.starts_with("GET")).collect()
    }

    #[tokio::test]
    async fn running_reconcile_stops_writing_without_shard_label() {
        let deleted = |cached: &SeedCache| {
            if let Some(worker) = cached.workers.get("ns", "w") {
                cached.workers.0.event_deleted(&Identity::of(&*worker).unwrap());
            }
        };
        let others = |cached: &SeedCache| {
            let worker: LazyObject<Worker> = serde_json::from_value(worker(&json!({SHARD: "b"}), 9)).unwrap();
            cached.workers.write().of_write(Identity::of(&worker).unwrap(), || worker);
        };
        assert_ne!(writes_after_a_loss(None, deleted).await, [""; 0], "without shards there is something to write");
        assert_ne!(writes_after_a_loss(Some(shard()), |_| {}).await, [""; 0], "nor does a shard hold back its own");
        assert_eq!(writes_after_a_loss(Some(shard()), deleted).await, [""; 0]);
        assert_eq!(writes_after_a_loss(Some(shard()), others).await, [""; 0]);
    }

    #[tokio::test]
    async fn who_had_a_worker_before_it_came_back_writes_nothing_more() {
        let (context, _) = controller(Some(shard()), |_, _| (500, json!({})));
        observed(worker(&json!({SHARD: "a"}), 7), &context);
        let guarded = context.cache.workers.get("ns", "w").unwrap();
        let before = assignment(&guarded, &shard(), &context);
        assert!(before());
        forget(&guarded, &context);
        let after = assignment(&guarded, &shard(), &context);
        assert_eq!((before(), after()), (false, true), "the watch has shown that it went, and that it is here again");
    }

    #[tokio::test]
    async fn acknowledges_changed_drained_worker_but_no_deleted_one() {
        for (code, reason, requeue) in [
            (409, "Conflict", Requeue::After(Duration::from_millis(500))),
            (404, "NotFound", Requeue::OnEvent),
            (403, "Forbidden", Requeue::After(Duration::from_secs(1))),
        ] {
            let (context, _) = controller(Some(shard()), move |_, _| refusal(code, reason));
            observed(worker(&json!({SHARD: "a", DRAIN: "true"}), 7), &context);
            assert_eq!(reconcile_named(name(), Arc::clone(&context)).await, requeue, "{reason}");
        }
    }

    #[tokio::test]
    async fn a_worker_that_can_not_be_decoded_gets_its_error_from_who_serves_it() {
        let broken = |labels: Value, changed: Value| {
            let mut worker = worker(&labels, 7);
            worker["spec"]["pools"] = json!("none");
            worker["spec"].as_object_mut().unwrap().extend(changed.as_object().unwrap().clone());
            worker
        };
        for (shard_label, changed, is_reported) in [
            ("a", json!({}), true),
            ("b", json!({}), false),
            ("a", json!({"type": "of-another-extension"}), false),
            ("a", json!({"class": "seed"}), false),
        ] {
            let now = broken(json!({SHARD: shard_label}), changed);
            let (context, requested) = controller(Some(shard()), move |_, _| (200, now.clone()));
            observed(broken(json!({SHARD: "a"}), json!({})), &context);
            reconcile_named(name(), Arc::clone(&context)).await;
            let is_written = lines(&requested).iter().any(|line| line == "PATCH status");
            assert_eq!(is_written, is_reported, "{shard_label}: {:?}", lines(&requested));
            let text = context.metrics.text();
            assert_eq!(text.contains("_failing_since_timestamp{"), is_reported, "{shard_label}: {text}");
        }
    }

    #[tokio::test]
    async fn an_outage_has_pauses_of_its_own_and_a_failure_before_its_time_counts_once() {
        let (context, _) = controller(None, |_, _| (200, json!({})));
        let guarded: LazyObject<Worker> = serde_json::from_value(worker(&json!({}), 7)).unwrap();
        let tenth = |code: u16| {
            context.memory.forget("u");
            let mut requeue = Requeue::OnEvent;
            for _ in 0..10 {
                requeue = on_error(&guarded, &refused(code), &context);
            }
            requeue
        };
        let refused = tenth(403);
        let unreachable = tenth(503);
        assert!(is_after(refused, 0..2), "{refused:?}");
        assert!(is_after(unreachable, 3..5), "{unreachable:?}");
    }

    fn refused(code: u16) -> ReconcileError {
        let status: kube::core::Status = serde_json::from_value(refusal(code, "").1).unwrap();
        ReadError::Api { what: "machines".to_owned(), source: kube::Error::Api(Box::new(status)) }.into()
    }

    fn is_after(requeue: Requeue, seconds: std::ops::Range<u64>) -> bool {
        matches!(requeue, Requeue::After(delay) if seconds.contains(&delay.as_secs()))
    }

    /// An API server without a Cluster that accepts every write, except that status writes get this code. Has one
    /// failing Worker.
    fn without_cluster(code: u16) -> (Arc<ControllerContext>, Requested) {
        let mut failing = worker(&json!({}), 8);
        failing["metadata"]["annotations"] = json!({});
        // A status with news for gardenlet is written immediately.
        failing["metadata"]["generation"] = json!(2);
        failing["metadata"]["finalizers"] = json!([FINALIZER]);
        failing["status"]["lastOperation"] = json!({"type": "Reconcile", "state": "Error", "progress": 50});
        let written = failing.clone();
        let (context, requested) = controller(None, move |line, _| match line {
            "PATCH status" if code != 200 => refusal(code, "Refused"),
            line if line.starts_with("PATCH") => (200, written.clone()),
            _ => refusal(404, "NotFound"),
        });
        observed(failing, &context);
        (context, requested)
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_fails_and_writes_nothing_is_tried_again_later_each_time() {
        let (context, _) = without_cluster(200);
        let mut delays = Vec::new();
        for _ in 0..4 {
            let Requeue::After(delay) = reconcile_named(name(), Arc::clone(&context)).await else { panic!("no retry") };
            delays.push(delay.as_secs());
            tokio::time::advance(delay).await;
        }
        assert_eq!(delays, [1, 2, 4, 8]);
    }

    #[tokio::test]
    async fn a_status_that_is_refused_is_called_too_large_only_where_it_is() {
        let (context, requested) = without_cluster(403);
        reconcile_named(name(), Arc::clone(&context)).await;
        let bodies: Vec<String> = requested.lock().unwrap().iter().map(|(_, body)| body.to_string()).collect();
        assert!(bodies.iter().any(|body| body.contains("lastError")), "{bodies:?}");
        assert!(!bodies.iter().any(|body| body.contains("does not fit")), "{bodies:?}");
    }

    #[tokio::test]
    async fn a_worker_counts_as_many_machine_deployments_as_its_pools_have_zones() {
        let (context, _) = controller(None, |_, _| (200, json!({})));
        assert_eq!(machine_deployments(&name(), &context), 1, "nobody knows it");
        let pool = |zones: Value| {
            json!({"name": "a", "machineType": "t", "machineImage": {"name": "i", "version": "1"}, "minimum": 1, "maximum": 1,
                "zones": zones})
        };
        for (version, pools, expected) in
            [(7, json!([]), 1), (8, json!([pool(json!([])), pool(json!(["1", "2", "3"]))]), 4)]
        {
            let mut worker = worker(&json!({}), version);
            worker["spec"]["pools"] = pools;
            observed(worker, &context);
            assert_eq!(machine_deployments(&name(), &context), expected);
        }
    }
}
