//! One reconcile of a Worker: the list of its steps. It never waits; events and requeues trigger the next one.
//!
//! ```text
//!  steady?  pure, store   no operation: only follows the machines              steady
//!  inputs   client        Cluster and Secrets; skips a shoot that has failed
//!  mark     client        Processing, if it has to be written first            status_writes
//!  perform  client        deploy, restore, delete; no-op for a migration       deploy, delete
//!  report   client        status, events, end of the request, metrics          report
//! ```

pub(crate) mod apply;
pub(crate) mod clean_up;
pub(crate) mod dependencies;
pub(crate) mod deploy;
pub(crate) mod dry_run;
pub(crate) mod error;
pub(crate) mod machine_controller_manager;
pub(crate) mod planned;
pub(crate) mod reconcile_context;
pub(crate) mod repair;
pub(crate) mod restore;
pub(crate) mod result;
pub(crate) mod steady;
pub(crate) mod undecodable;

use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use tracing::Instrument;

use crate::controller::deletion::delete::delete;
use crate::controller::queue::Requeue;
use crate::controller::reconcile::deploy::deploy;
use crate::controller::reconcile::error::ReconcileError;
use crate::controller::reconcile::reconcile_context::{Inputs, RESYNC_PERIOD, ReconcileContext};
use crate::controller::reconcile::result::ReconcileResult;
use crate::controller::reconcile::steady::{Steady, follow};
use crate::controller::report::report;
use crate::controller::report::version_forecast::add_forecast;
use crate::controller::run::context::ControllerContext;
use decisions::worker::request::decode::is_shoot_failed;
use decisions::worker::request::reconcile_state::{ReconcileEvent, ReconcileState};
use decisions::worker::request::{Operation, Request};
use decisions::worker::status::reconcile_outcome::ReconcileOutcome;
use runtime::cluster::identity::Identity;
use runtime::process::traces;
use wire::api::gardener::Worker;

/// Requeue delay after a conflict, in case the watch event is lost.
const CONFLICT_DELAY: Duration = Duration::from_millis(500);

/// Reconciles a Worker and returns when to requeue it.
///
/// # Errors
/// If the status can't be written, or the inputs of a steady Worker can't be read.
pub(crate) async fn reconcile(
    identity: Identity,
    worker: &Worker,
    controller: &ControllerContext,
) -> Result<Requeue, ReconcileError> {
    let Some(provider) = controller.served.provider_of(worker) else { return Ok(Requeue::OnEvent) };
    let request = Request::of(worker, controller.clock.now());
    let mut state = ReconcileState::of(worker, &request);
    if state == ReconcileState::Steady {
        match follow(worker, &identity, provider, controller).await? {
            Steady::Lasts(requeue) => return Ok(requeue),
            Steady::Ends => state = ReconcileState::beginning(worker, Operation::Reconcile),
        }
    }
    let Some(operation) = state.operation() else { return Ok(Requeue::OnEvent) };
    let mut context = ReconcileContext::new(controller, identity, provider, request, operation, state);
    context.shoot = context.shoot.beside(controller.other_workers(worker));
    // A request is answered at once.
    let wait = context.memory(|memory| memory.rate_limit.until_reconcile(Instant::now()));
    if let Some(wait) = wait
        && !state.is_beginning()
    {
        return Ok(Requeue::After(wait));
    }
    let Identity { namespace, name, .. } = &context.identity;
    let span = traces::of_reconcile(namespace, name, provider.provider_type(), operation, state.is_beginning());
    match run(context, worker).instrument(span).await {
        Err(ReconcileError::WorkerChanged) => Ok(Requeue::After(CONFLICT_DELAY)),
        result => result,
    }
}

/// Runs one reconcile of an operation.
async fn run(mut context: ReconcileContext<'_>, worker: &Worker) -> Result<Requeue, ReconcileError> {
    let began = Instant::now();
    let since_last = context.memory(|memory| memory.rate_limit.since_reconcile(began));
    let has_read = context.memory(|memory| memory.has_read_machine_objects);
    // A newly created Worker has no machine objects, unless the store still has those of a deleted Worker in its
    // namespace.
    let may_be_recreated = context.operation == Operation::Create
        && context.controller.cache.machine_objects.has_entries(&context.identity.namespace);
    let is_store_unconfirmed = context.controller.shard.is_some() || may_be_recreated;
    if bypasses_store(is_store_unconfirmed, has_read, since_last) {
        context.shoot = context.shoot.without_store();
    }
    let inputs = Inputs::read(&context, worker).await;
    // Gardener has given up a failed shoot, so nothing may be changed, not even the operation annotation.
    if matches!(&inputs.cluster, Ok(Some(cluster)) if is_shoot_failed(cluster)) {
        context.memory(|memory| memory.rate_limit.reconciled(Instant::now()));
        return Ok(Requeue::OnEvent);
    }
    if context.state.must_mark_processing() {
        context.advance(worker, ReconcileEvent::WorkFound).await?;
    }
    context.memory(|memory| {
        if context.state.is_beginning() {
            memory.began_with = Some(context.identity.version);
        }
        // This run observes every change made so far.
        memory.must_start_operation = false;
    });
    let span = traces::of_perform();
    let perform_began = SystemTime::now();
    let secrets = inputs.secrets.as_ref().ok().cloned();
    let performed = perform(&mut context, worker, inputs).instrument(span.clone()).await;
    context.memory(|memory| memory.rate_limit.reconciled(Instant::now()));
    let mut result = match performed {
        Err(ReconcileError::WorkerChanged) => return Err(ReconcileError::WorkerChanged),
        Ok(performed) => {
            context.memory(|memory| memory.has_read_machine_objects = true);
            performed
        }
        Err(error) => ReconcileResult::failed(context.operation, &error),
    };
    add_forecast(&context, worker, &mut result, context.controller.clock.now());
    let is_done = result.outcome == ReconcileOutcome::Succeeded;
    let event = if is_done { ReconcileEvent::NothingToDo } else { ReconcileEvent::WorkFound };
    context.advance(worker, event).await?;
    traces::passed(&span, perform_began, &result.steps);
    drop(span);
    let marked = context.marked.take();
    report(&context, marked.as_deref().unwrap_or(worker), secrets.as_ref(), result, began.elapsed()).await
}

/// Whether to bypass the store and list machine objects: after a long time, and on the first reconcile if the store
/// may be outdated. In a shard, the Worker may already contain the last writes of the previous shard while the store
/// does not.
fn bypasses_store(is_store_unconfirmed: bool, has_read: bool, since_last: Option<Duration>) -> bool {
    let is_new = is_store_unconfirmed && !has_read;
    is_new || since_last.is_some_and(|since| since >= RESYNC_PERIOD)
}

/// Runs the operation.
async fn perform(
    context: &mut ReconcileContext<'_>,
    worker: &Worker,
    inputs: Inputs,
) -> Result<ReconcileResult, ReconcileError> {
    let now = context.controller.clock.now();
    match context.operation {
        Operation::Create | Operation::Reconcile | Operation::Restore => deploy(context, worker, inputs, now).await,
        Operation::Delete => delete(context, worker, inputs, now).await,
        // gardenlet keeps the machines and deletes their objects.
        Operation::Migrate => Ok(ReconcileResult::of(ReconcileOutcome::Succeeded)),
    }
}

#[cfg(test)]
mod tests {
    use std::mem::take;
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::controller::test_seed::{CHANGED, CONTROLLER, NAMESPACE, Objects, Seed, WORKER, kept_machines};
    use crate::controller::test_support::{observed, watched};
    use decisions::worker::request::FINALIZER;

    #[tokio::test(start_paused = true)]
    async fn stale_event_after_request_starts_operation() {
        for (later, begins) in [(-1, true), (1, false)] {
            let (seed, context) = Seed::settled().await;
            seed.request("reconcile");
            let requested = Identity::of(&seed.worker()).unwrap().version;
            seed.reconcile(&context).await.unwrap();
            let observed = |worker: &Worker| {
                let version = requested.saturating_add_signed(later);
                context.memory.of(&Identity::of(worker).unwrap().uid, |memory| memory.planned_object_changed(version));
            };
            let is_done = |seed: &Seed| {
                let annotations = &seed.get(WORKER).unwrap()["metadata"]["annotations"];
                seed.state() == "Succeeded" && annotations["gardener.cloud/operation"].is_null()
            };
            assert!(is_done(&seed));
            observed(&seed.worker());
            seed.requested();
            seed.reconcile(&context).await.unwrap();
            let requests: Vec<String> = seed.requested().into_iter().map(|(line, _)| line).collect();
            assert_eq!(requests.iter().any(|line| line.starts_with("GET clusters/")), begins, "{later}: {requests:?}");
            seed.reconcile(&context).await.unwrap();
            assert!(is_done(&seed) && seed.requested().is_empty(), "once");
        }
    }

    /// A stale view of the store, the running operation, and how to cause it.
    type Observed = (&'static str, Operation, fn(&Seed));

    /// Stale views of machines in which the Worker itself gets no more events.
    const STALE: [Observed; 8] = [
        ("nothing is there", Operation::Reconcile, |seed| {
            ["machine", "secrets/shoot"].iter().for_each(|prefix| seed.remove(prefix));
        }),
        ("machines are to be marked", Operation::Reconcile, Seed::hibernate),
        ("a machine set is abandoned", Operation::Reconcile, |seed| {
            let class = json!({"kind": "MachineClass", "name": "old"});
            let spec = json!({"class": class, "replicas": 0, "template": {"spec": {"class": class}}});
            seed.put("machinesets/old", json!({"metadata": {"name": "old", "labels": {"name": "gone"}}, "spec": spec}));
        }),
        ("machines are to be brought back", Operation::Restore, |_| ()),
        ("everything is there", Operation::Delete, |_| ()),
        ("classes are missing", Operation::Delete, |seed| seed.remove("machineclasses/")),
        ("machine sets and machines are left", Operation::Delete, |seed| seed.remove("machinedeployments/")),
        ("classes are left", Operation::Delete, |seed| {
            ["machinedeployments/", "machinesets/", "machines/"].iter().for_each(|prefix| seed.remove(prefix));
        }),
    ];

    /// Writes for a Worker in the middle of this operation, after unseen changes to it and its machines. Also returns
    /// whether the cache still has the Worker.
    async fn written_for_a_stale(
        operation: Operation,
        happened: fn(&Seed),
        machines: fn(&Seed),
    ) -> (Vec<String>, bool) {
        let (seed, context) = match operation {
            Operation::Restore => Seed::moved(&kept_machines()),
            _ => Seed::settled().await,
        };
        match operation {
            Operation::Delete => seed.delete(context.clock.now()),
            Operation::Restore => {
                let begun = json!({"type": "Restore", "state": "Processing"});
                let metadata = json!({"annotations": null, "finalizers": [FINALIZER]});
                seed.merge(WORKER, json!({"metadata": metadata, "status": {"lastOperation": begun}}));
            }
            _ => seed.merge(WORKER, json!({"status": {"lastOperation": {"state": "Processing"}}})),
        }
        let stale = seed.worker();
        let identity = Identity::of(&stale).unwrap();
        observed(seed.get(WORKER).unwrap(), &context);
        machines(&seed);
        happened(&seed);
        seed.requested();
        tokio::time::advance(Duration::from_secs(2)).await;
        let requeue = reconcile(identity, &stale, &context).await.unwrap();
        assert_eq!(requeue, Requeue::After(CONFLICT_DELAY));
        let requests = seed.requested().into_iter().map(|(line, _)| line);
        let is_cached = context.cache.workers.get(NAMESPACE, &stale.metadata.name.unwrap()).is_some();
        (requests.filter(|line| !line.starts_with("GET") && !line.contains("events")).collect(), is_cached)
    }

    #[tokio::test(start_paused = true)]
    async fn machines_neither_come_nor_go_for_a_worker_that_is_another_one_by_now() {
        let changed = |seed: &Seed| seed.merge(WORKER, json!({"metadata": {"annotations": {"somebody": "else"}}}));
        let deleted = |seed: &Seed| seed.remove(WORKER);
        let recreated = |seed: &Seed| seed.merge(WORKER, json!({"metadata": {"uid": "another"}}));
        for (happened, stays) in [(changed as fn(&Seed), true), (deleted, false), (recreated, false)] {
            for (what, operation, machines) in STALE {
                let written = written_for_a_stale(operation, happened, machines).await;
                assert_eq!(written, (vec![], stays), "{operation:?}, {what}");
            }
        }
    }

    /// Other changes to a Worker.
    const DELETED: fn(&mut Objects) = |objects| assert!(objects.remove(WORKER).is_some());
    const RECREATED: fn(&mut Objects) = |objects| {
        objects.get_mut(WORKER).unwrap()["metadata"]["uid"] = json!("another");
    };

    /// Result of a reconcile that marked its operation as started, with `happens` run at the request `asks`. Also the
    /// writes after that, except those of machines, whose order varies.
    async fn written_once_overtaken(
        (seed, context): (Seed, Arc<ControllerContext>),
        has_request: &str,
        happens: fn(&mut Objects),
    ) -> (Requeue, Vec<String>) {
        seed.when(has_request, happens);
        seed.requested();
        let requeue = seed.reconcile(&context).await.unwrap();
        let requests: Vec<String> = seed.requested().into_iter().map(|(line, _)| line).collect();
        let begins = requests.iter().position(|line| line.starts_with("PATCH workers/mail")).unwrap();
        let at = requests.iter().position(|line| line == has_request).unwrap();
        assert!(begins < at, "{requests:?}");
        let is_counted =
            |line: &String| !line.starts_with("GET") && !["POST events", "POST machines"].contains(&&**line);
        (requeue, requests.into_iter().skip(at + 1).filter(is_counted).collect())
    }

    #[tokio::test(start_paused = true)]
    async fn machines_neither_come_nor_go_once_the_worker_has_become_another_one_within_a_reconcile() {
        for happens in [CHANGED, DELETED, RECREATED] {
            let refused = Seed::new();
            let mut is_first = true;
            refused.0.refuse(move |line, _| {
                (line == "POST machinedeployments" && take(&mut is_first)).then_some((409, "AlreadyExists"))
            });
            let nothing = (Requeue::After(CONFLICT_DELAY), Vec::<String>::new());
            assert_eq!(written_once_overtaken(refused, "POST machinedeployments", happens).await, nothing);
            let restored = Seed::moved(&kept_machines());
            assert_eq!(written_once_overtaken(restored, "POST machines", happens).await, nothing);
            let without_pools = Seed::settled().await;
            without_pools.0.merge(WORKER, json!({"spec": {"pools": []}}));
            without_pools.0.request("reconcile");
            assert_eq!(written_once_overtaken(without_pools, &format!("GET {CONTROLLER}"), happens).await, nothing);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn recreated_worker_ignores_stale_cache() {
        for (is_observed, is_created, reads) in [(true, true, true), (false, true, false), (true, false, false)] {
            let (seed, context) = if is_created { Seed::new() } else { Seed::settled().await };
            let objects = &context.cache.machine_objects;
            watched(&context);
            if is_observed {
                let metadata = json!({"namespace": NAMESPACE, "name": "old", "uid": "u", "resourceVersion": "1"});
                let secret = json!({ "metadata": metadata }).to_string();
                objects.class_secrets.event(Identity::read(&secret).unwrap(), || objects.kept(&secret));
            }
            seed.request("reconcile");
            seed.requested();
            seed.reconcile(&context).await.unwrap();
            let requests: Vec<String> = seed.requested().into_iter().map(|(line, _)| line).collect();
            let first = requests.iter().position(|line| line.starts_with("POST")).unwrap_or(requests.len());
            let has_read = requests[..first].iter().any(|line| line.starts_with("GET secrets") && !line.contains('/'));
            assert_eq!(has_read, reads, "{requests:?}");
        }
    }

    #[test]
    fn relists_unconfirmed_and_old_machine_objects() {
        let soon = Some(Duration::from_secs(1));
        let late = Some(RESYNC_PERIOD);
        assert!(bypasses_store(true, false, None) && bypasses_store(true, false, soon));
        for (is_store_unconfirmed, has_read) in [(true, true), (false, true), (false, false)] {
            assert!(
                !bypasses_store(is_store_unconfirmed, has_read, None)
                    && !bypasses_store(is_store_unconfirmed, has_read, soon)
            );
            assert!(bypasses_store(is_store_unconfirmed, has_read, late));
        }
    }
}
