//! I/O step: writes the changes. Within one placement, the Secret and class are written before the deployment that
//! refers to them. Placements are written in parallel, at most [`PARALLEL_REQUESTS`] at a time, and a failure in one
//! does not stop the others.

use futures::StreamExt;
use futures::stream;
use jiff::Timestamp;

use crate::controller::reconcile::error::ReconcileError;
use crate::controller::reconcile::planned::planned;
use crate::controller::reconcile::reconcile_context::ReconcileContext;
use decisions::worker::machines::machine_objects::{LiveDeployment, MachineObjects};
use decisions::worker::plan::Plan;
use decisions::worker::plan::changes::MachineChanges;
use decisions::worker::plan::desired::{DesiredState, Drift};
use decisions::worker::plan::orphans::MachineControllerManagerState;
use decisions::worker::plan::rolls::{Roll, rolls};
use runtime::cluster::PARALLEL_REQUESTS;
use runtime::cluster::error::ReadError;
use runtime::cluster::error::WriteError;
use runtime::cluster::machine_writes::MachineObjectWriter;
use runtime::cluster::shoot_namespace::ShootNamespace;

/// Maximum number of retries within one reconcile after a write conflict.
const MAX_CONFLICTS: usize = 4;

/// Kind of the objects whose records have marks of slots.
const DEPLOYMENT: &str = "MachineDeployment";

/// Result of writing the changes. The status is computed from this.
pub(crate) struct Applied {
    /// The machine objects after the writes. Of the written objects, only deployments are updated.
    pub(crate) live: MachineObjects,
    pub(crate) errors: Vec<ApplyError>,
    pub(crate) writes: usize,
    /// The plan of the last writes, if it was made again after a conflict.
    pub(crate) plan: Option<Plan>,
}

impl Applied {
    /// Whether a write was based on stale data, so that a retry can help. A class that a fresh read still shows as
    /// being deleted does not count: a retry would find the same.
    fn is_outdated(&self, was_just_read: bool) -> bool {
        let mut sources = self.errors.iter().map(|error| &error.source);
        sources.any(|source| source.is_outdated() && !(was_just_read && matches!(source, WriteError::Going)))
    }
}

#[derive(Debug, thiserror::Error)]
#[error("pool {pool:?}: {kind} {name}: {source}")]
pub(crate) struct ApplyError {
    pub(crate) pool: String,
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    #[source]
    pub(crate) source: WriteError,
}

/// Writes all changes. `live` is the state they were computed from.
pub(crate) async fn apply(
    apis: &MachineObjectWriter,
    changes: Vec<MachineChanges<'_>>,
    live: MachineObjects,
) -> Applied {
    let mut applied = Applied { live, errors: Vec::new(), writes: 0, plan: None };
    let writes: Vec<_> = changes.into_iter().map(|change| apply_machine(apis, change)).collect();
    let mut results = stream::iter(writes).buffer_unordered(PARALLEL_REQUESTS);
    while let Some((result, writes)) = results.next().await {
        applied.writes += writes;
        match result {
            Ok(Some((name, deployment))) => {
                applied.live.deployments.insert(name, deployment);
            }
            Ok(None) => {}
            Err(error) => applied.errors.push(error),
        }
    }
    applied.errors.sort_by(|left, right| (&left.pool, &left.name).cmp(&(&right.pool, &right.name)));
    applied
}

/// Writes everything that differs from the live objects. After a conflict, or if a class is being deleted, it rereads
/// the objects and retries. Also returns the rolls that these writes begin. Without `first`, it computes the drift
/// itself. If zones can wait, the retry also plans again, because another program may have written a class in the
/// meantime.
///
/// # Errors
/// If machine objects can't be read. [`ReconcileError::WorkerChanged`] if the Worker changed in the meantime, because the
/// reads can take long.
pub(crate) async fn apply_to_live<'a>(
    context: &ReconcileContext<'_>,
    desired: &'a DesiredState<'_>,
    first: Option<Drift<'a>>,
    live: MachineObjects,
    now: Timestamp,
) -> Result<(Applied, Vec<Roll>), ReconcileError> {
    let shoot = &context.shoot;
    let apis = shoot.apis();
    let moved_replicas = live.moved_replicas.clone();
    let first = first.unwrap_or_else(|| desired.drift(&live, now)).changes;
    let infrastructure_inputs = context.provider.infrastructure_inputs();
    let mut begun = rolls(&first, &live, infrastructure_inputs);
    let mut applied = apply(&apis, awaiting_classes(shoot, first).await?, live).await;
    settle_slots(context, &applied.errors);
    for tries in 0..MAX_CONFLICTS {
        if !applied.is_outdated(tries > 0) {
            break;
        }
        let live = MachineObjects { moved_replicas: moved_replicas.clone(), ..shoot.read_machine_objects().await? };
        context.ensure_still_current().await?;
        let writes = applied.writes;
        let again = match desired.depends_on_live_zones() {
            true => Some(planned(context, desired.context(), &live, now)?),
            false => None,
        };
        let changes = again.as_ref().unwrap_or(desired).drift(&live, now).changes;
        for roll in rolls(&changes, &live, infrastructure_inputs) {
            if !begun.contains(&roll) {
                begun.push(roll);
            }
        }
        applied = apply(&apis, awaiting_classes(shoot, changes).await?, live).await;
        settle_slots(context, &applied.errors);
        applied.writes += writes;
        applied.plan = again.map(|desired| desired.plan);
    }
    Ok((applied, begun))
}

/// Ends reservations of slots after writes. A MachineDeployment whose write had no response may have its mark.
fn settle_slots(context: &ReconcileContext<'_>, errors: &[ApplyError]) {
    let Some(slots) = &context.controller.roll_slots else { return };
    let unanswered = errors.iter().filter(|error| error.kind == DEPLOYMENT && !error.source.had_no_effect());
    slots.settle(context.slot_owner(), &unanswered.map(|error| error.pool.clone()).collect());
}

/// Clears `is_class_being_deleted` if machine-controller-manager is stopped: only it removes the class's finalizer, so
/// waiting would never end.
async fn awaiting_classes<'a>(
    shoot: &ShootNamespace,
    mut changes: Vec<MachineChanges<'a>>,
) -> Result<Vec<MachineChanges<'a>>, ReadError> {
    if changes.iter().any(|change| change.is_class_being_deleted)
        && shoot.machine_controller().await? == MachineControllerManagerState::Stopped
    {
        changes.iter_mut().for_each(|change| change.is_class_being_deleted = false);
    }
    Ok(changes)
}

type WrittenDeployment = Option<(String, LiveDeployment)>;

/// Writes Secret, class and deployment of one placement, in this order.
async fn apply_machine(
    apis: &MachineObjectWriter,
    change: MachineChanges<'_>,
) -> (Result<WrittenDeployment, ApplyError>, usize) {
    let MachineChanges { machine, secret, class, deployment, is_class_being_deleted } = change;
    let target = &machine.deployment;
    let failed =
        |kind, name: &str, source| ApplyError { pool: target.pool_name.clone(), kind, name: name.to_owned(), source };
    if is_class_being_deleted {
        return (Err(failed("MachineClass", &target.class_name.0, WriteError::Going)), 0);
    }
    let mut writes = 0;
    if let Some(write) = secret {
        if let Err(source) = apis.write_secret(&target.secret_name.0, write).await {
            return (Err(failed("Secret", &target.secret_name.0, source)), writes);
        }
        writes += 1;
    }
    if let Some(write) = class {
        if let Err(source) = apis.write_class(&target.class_name.0, write).await {
            return (Err(failed("MachineClass", &target.class_name.0, source)), writes);
        }
        writes += 1;
    }
    let Some(write) = deployment else { return (Ok(None), writes) };
    match apis.write_deployment(&target.name.0, write).await {
        Ok(live) => (Ok(Some((target.name.0.clone(), live))), writes + 1),
        Err(source) => (Err(failed(DEPLOYMENT, &target.name.0, source)), writes),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::{Value, json};

    use super::*;
    use crate::controller::test_support::{controller, lines, reconcile_of, refusal, worker, worker_in};
    use decisions::provider::MachinePlan;
    use decisions::provider::azure::Azure;
    use decisions::provider::test_support::NAMESPACE;
    use decisions::worker::machines::machine_objects::DigestedObject;
    use decisions::worker::plan::desired::test_support::{Objects, planned as planned_pool};
    use decisions::worker::request::Operation;

    #[tokio::test]
    async fn what_has_moved_keeps_its_replicas_where_somebody_else_writes_first() {
        const MADE: &str = "POST machinedeployments";
        let tries = Arc::<AtomicUsize>::default();
        let (controller, requested) = controller(None, move |line, _| match line {
            MADE if tries.fetch_add(1, Ordering::Relaxed) == 0 => refusal(409, "AlreadyExists"),
            "GET w" => (200, worker(&json!({}), 7)),
            _ if line.starts_with("GET ") => {
                (200, json!({"kind": "List", "metadata": {"resourceVersion": "7"}, "items": []}))
            }
            _ => (201, json!({"metadata": {"name": "x", "namespace": "ns", "uid": "u", "resourceVersion": "8"}})),
        });
        let objects = Objects::new(&json!({}));
        let desired = objects.desired(planned_pool());
        let name = desired.plan.machines().next().unwrap().deployment.name.0.clone();
        let live = MachineObjects { moved_replicas: [(name, 4)].into(), ..MachineObjects::default() };
        let context = reconcile_of(&controller, &worker_in(NAMESPACE), &Azure, Operation::Reconcile);
        let (applied, _) = apply_to_live(&context, &desired, None, live, Timestamp::UNIX_EPOCH).await.unwrap();
        assert!(applied.errors.is_empty(), "{:?}", applied.errors);
        assert_eq!(applied.writes, 5, "Secret and class, and everything when it was read anew");
        let requested = requested.lock().unwrap();
        let made = requested.iter().filter(|(line, _)| line == MADE).map(|(_, body)| &body["spec"]["replicas"]);
        assert_eq!(made.collect::<Vec<&Value>>(), [4, 4]);
    }

    #[test]
    fn only_what_is_computed_from_something_old_is_computed_again() {
        let is_outdated = |sources: Vec<WriteError>, was_just_read: bool| {
            let errors = sources.into_iter().map(|source| ApplyError {
                pool: "a".to_owned(),
                kind: "MachineClass",
                name: "class".to_owned(),
                source,
            });
            Applied { live: MachineObjects::default(), errors: errors.collect(), writes: 0, plan: None }
                .is_outdated(was_just_read)
        };
        assert!(!is_outdated(vec![], false));
        assert!(!is_outdated(vec![WriteError::NotDeleted], false), "it would fail again");
        assert!(is_outdated(vec![WriteError::NotDeleted, WriteError::Going], false));
        assert!(!is_outdated(vec![WriteError::Going], true), "it still goes by what was just read");
    }

    fn going_class(machine: &MachinePlan) -> Value {
        let time = "2026-11-21T10:00:00Z";
        let name = &machine.deployment.class_name.0;
        json!({"metadata": {"name": name, "namespace": NAMESPACE, "uid": "u", "resourceVersion": "5", "deletionTimestamp": time}})
    }

    /// Requests and errors of applying a new deployment whose class is being deleted, with that many replicas of
    /// machine-controller-manager.
    async fn applied_to_a_going_class(replicas: u32) -> (Vec<String>, Vec<String>) {
        let objects = Objects::new(&json!({}));
        let desired = objects.desired(planned_pool());
        let class = going_class(desired.plan.machines().next().unwrap());
        let live_class = DigestedObject::class(class.clone()).unwrap();
        let name = class["metadata"]["name"].as_str().unwrap().to_owned();
        let (controller, requested) = controller(None, move |line, _| match line {
            "GET machine-controller-manager" => {
                (200, json!({"metadata": {}, "spec": {"replicas": replicas, "selector": {}, "template": {}}}))
            }
            "GET machineclasses" => {
                (200, json!({"kind": "List", "metadata": {"resourceVersion": "7"}, "items": [class.clone()]}))
            }
            "GET w" => (200, worker(&json!({}), 7)),
            _ if line.starts_with("GET ") => {
                (200, json!({"kind": "List", "metadata": {"resourceVersion": "7"}, "items": []}))
            }
            _ => (201, json!({"metadata": {"name": "x", "namespace": "ns", "uid": "u", "resourceVersion": "8"}})),
        });
        let live = MachineObjects { classes: [(name, live_class)].into(), ..MachineObjects::default() };
        let context = reconcile_of(&controller, &worker_in(NAMESPACE), &Azure, Operation::Reconcile);
        let (applied, _) = apply_to_live(&context, &desired, None, live, Timestamp::UNIX_EPOCH).await.unwrap();
        (lines(&requested), applied.errors.iter().map(ToString::to_string).collect())
    }

    #[tokio::test]
    async fn waits_only_for_classes_whose_finalizers_get_removed() {
        let (requested, errors) = applied_to_a_going_class(1).await;
        assert_eq!(requested.iter().filter(|line| *line == "GET machineclasses").count(), 1, "{requested:?}");
        assert!(!requested.contains(&"POST machinedeployments".to_owned()));
        assert_eq!(errors.len(), 1);
        assert!(errors[0].contains("it is being deleted, and created again afterwards"), "{errors:?}");
        let (requested, errors) = applied_to_a_going_class(0).await;
        assert!(requested.contains(&"POST machinedeployments".to_owned()), "{requested:?}");
        assert!(errors.is_empty(), "{errors:?}");
    }

    #[tokio::test]
    async fn a_roll_is_one_however_often_it_is_tried() {
        let objects = Objects::new(&json!({}));
        let desired = objects.desired(planned_pool());
        let deployment = desired.plan.machines().next().unwrap().deployment.name.0.clone();
        let old = json!({"metadata": {"name": deployment, "namespace": NAMESPACE, "uid": "u", "resourceVersion": "5"},
            "spec": {"replicas": 2, "template": {"spec": {"class": {"kind": "MachineClass", "name": "old"}}}},
            "status": {"replicas": 2}});
        let cached = LiveDeployment::read_without_codes(old.clone()).unwrap();
        for is_cached in [true, false] {
            let old = old.clone();
            let tries = Arc::<AtomicUsize>::default();
            let (controller, _) = controller(None, move |line, _| match line {
                "GET machinedeployments" => {
                    (200, json!({"kind": "List", "metadata": {"resourceVersion": "7"}, "items": [old.clone()]}))
                }
                "GET w" => (200, worker(&json!({}), 7)),
                _ if line.starts_with("GET ") => {
                    (200, json!({"kind": "List", "metadata": {"resourceVersion": "7"}, "items": []}))
                }
                _ if line.contains("machineclasses") || line.contains("secrets") => {
                    (201, json!({"metadata": {"name": "x", "namespace": "ns", "uid": "u", "resourceVersion": "8"}}))
                }
                _ if tries.fetch_add(1, Ordering::Relaxed) == 0 => refusal(409, "Conflict"),
                _ => (200, old.clone()),
            });
            let mut live = MachineObjects::default();
            if is_cached {
                live.deployments.insert(deployment.clone(), cached.clone());
            }
            let context = reconcile_of(&controller, &worker_in(NAMESPACE), &Azure, Operation::Reconcile);
            let (_, rolls) = apply_to_live(&context, &desired, None, live, Timestamp::UNIX_EPOCH).await.unwrap();
            assert_eq!(rolls.len(), 1, "known before: {is_cached}: {rolls:?}");
            assert_eq!((rolls[0].deployment.as_str(), rolls[0].from.as_str()), (deployment.as_str(), "old"));
        }
    }
}
