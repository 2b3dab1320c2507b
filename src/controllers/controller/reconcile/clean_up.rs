//! Deletes unneeded objects once every planned machine is ready, because old deployments carry the workload until
//! then.

use jiff::Timestamp;

use crate::controller::deletion::delete_objects::delete_objects;
use crate::controller::reconcile::error::ReconcileError;
use crate::controller::reconcile::reconcile_context::ReconcileContext;
use decisions::worker::machines::machine_objects::MachineObjects;
use decisions::worker::machines::progress::{self, Hibernation, Progress};
use decisions::worker::plan::Plan;
use decisions::worker::plan::orphans::{Deletions, MachineControllerManagerState, Orphans, orphans};
use decisions::worker::status::outcome::{PendingDeletion, PendingDeployment};

/// Machine objects and the progress of planned machines, as last read.
pub(crate) struct Observed {
    pub(crate) live: MachineObjects,
    pub(crate) progress: Progress,
}

/// Deletes unneeded objects once every planned machine is ready, because old deployments carry the workload until
/// then. Returns what is observed afterwards, and the objects whose deletion is pending.
///
/// # Errors
/// If an object can't be read or deleted. [`ReconcileError::WorkerChanged`] if the Worker changed before deployments or
/// machine sets are deleted.
pub(crate) async fn clean_up(
    context: &ReconcileContext<'_>,
    plan: &Plan,
    observed: Observed,
    hibernation: Hibernation,
    now: Timestamp,
) -> Result<(Observed, PendingDeletion), ReconcileError> {
    let unneeded = orphans(plan, &observed.live, MachineControllerManagerState::Running);
    if !observed.progress.is_ready() || unneeded.is_empty() {
        return Ok((observed, PendingDeletion::default()));
    }
    // Whether machine-controller-manager runs only matters for deployments and for classes that are still in use.
    let machine_controller = match unneeded.deployments.is_empty() && unneeded.classes_in_use.is_empty() {
        true => MachineControllerManagerState::Running,
        false => context.shoot.machine_controller().await?,
    };
    let unneeded = match machine_controller {
        MachineControllerManagerState::Running => unneeded,
        MachineControllerManagerState::Stopped => orphans(plan, &observed.live, machine_controller),
    };
    if unneeded.deletions(&observed.live).is_empty() {
        let pending = pending_deletion(unneeded, &observed.live, machine_controller, now);
        return Ok((observed, pending));
    }
    // Deletion is irreversible, so it is decided from a fresh list, not from the cache.
    let live = read_again(context, observed.live, &unneeded).await?;
    let progress = progress::progress(plan, context.shoot.name(), &live, hibernation);
    if !progress.is_ready() {
        return Ok((Observed { live, progress }, PendingDeletion::default()));
    }
    let (live, unneeded) = delete_unneeded(context, plan, live, machine_controller).await?;
    let pending = pending_deletion(unneeded, &live, machine_controller, now);
    Ok((Observed { live, progress }, pending))
}

/// Lists the users of classes, and everything else if the cache is behind: a class without its Secret shows that the
/// watch of Secrets is.
async fn read_again(
    context: &ReconcileContext<'_>,
    live: MachineObjects,
    unneeded: &Orphans,
) -> Result<MachineObjects, ReconcileError> {
    let is_behind = unneeded.classes.iter().any(|class| !live.class_secrets.contains_key(class));
    Ok(match is_behind {
        true => context.shoot.read_machine_objects().await?,
        false => context.shoot.read_users_of_classes(live.deployments).await?,
    })
}

/// Deletes the unneeded ones of freshly listed objects. Returns the objects as last read, and what is unneeded of them.
async fn delete_unneeded(
    context: &ReconcileContext<'_>,
    plan: &Plan,
    live: MachineObjects,
    machine_controller: MachineControllerManagerState,
) -> Result<(MachineObjects, Orphans), ReconcileError> {
    let shoot = &context.shoot;
    let unneeded = orphans(plan, &live, machine_controller);
    let Deletions { deployments, machine_sets, .. } = unneeded.deletions(&live);
    if !deployments.is_empty() || !machine_sets.is_empty() {
        context.ensure_still_current().await?;
    }
    if machine_controller == MachineControllerManagerState::Running || deployments.is_empty() {
        delete_objects(&shoot.apis(), unneeded.deletions(&live)).await?;
        return Ok((live, unneeded));
    }
    // While machine-controller-manager is stopped, no later event may report their deletion, so orphans are computed
    // again right after it.
    delete_objects(&shoot.apis(), Deletions { deployments, ..Deletions::default() }).await?;
    let live = shoot.read_users_of_classes(live.deployments).await?;
    let unneeded = orphans(plan, &live, machine_controller);
    delete_objects(&shoot.apis(), unneeded.deletions(&live)).await?;
    Ok((live, unneeded))
}

/// Objects that remain for a while after their deletion was requested. Without machine-controller-manager nothing waits
/// for them.
fn pending_deletion(
    found: Orphans,
    live: &MachineObjects,
    machine_controller: MachineControllerManagerState,
    now: Timestamp,
) -> PendingDeletion {
    if machine_controller == MachineControllerManagerState::Stopped {
        return PendingDeletion::default();
    }
    let deployments = found.deployments.into_iter().map(|name| {
        let object = live.deployments.get(&name).map(|live| &live.object);
        let deleted_at = object.and_then(|object| object.metadata.deletion_timestamp.as_ref()).map(|time| time.0);
        let failed_machines = live.deployments.get(&name).map(|live| live.failed_machines.clone()).unwrap_or_default();
        PendingDeployment { name, since: deleted_at.unwrap_or(now), failed_machines }
    });
    PendingDeletion { deployments: deployments.collect(), classes: found.classes_in_use.into_iter().collect() }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};

    use super::*;
    use crate::controller::test_support::{
        controller, controller_over, lines, reconcile_of, refusal, worker, worker_in,
    };
    use decisions::provider::PoolPlan;
    use decisions::provider::azure::Azure;
    use decisions::worker::machines::machine_objects::DigestedObject;
    use decisions::worker::machines::progress::{DeploymentProgress, Phase};
    use decisions::worker::request::Operation;

    /// Requests and pending deletion of a clean-up after an empty plan, with the existing objects given by their
    /// plurals.
    async fn requested(there: &'static [&'static str]) -> (Vec<String>, PendingDeletion) {
        requests_of(there, 1, |_| {}).await
    }

    /// Like `asked`, with that many replicas of machine-controller-manager, and `shown` applied to what the watches
    /// report.
    async fn requests_of(
        there: &'static [&'static str],
        replicas: i32,
        observed: impl FnOnce(&mut MachineObjects),
    ) -> (Vec<String>, PendingDeletion) {
        let requested = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&requested);
        let (controller, _) = controller_over(None, move |query, _| {
            let path: Vec<&str> = query.path.rsplit('/').collect();
            let plural =
                if ["web-z1", "w", "machine-controller-manager"].contains(&path[0]) { path[1] } else { path[0] };
            seen.lock().unwrap().push(format!("{} {plural}", query.method));
            let items: Vec<Value> = there.iter().filter(|kind| **kind == plural).map(|_| object()).collect();
            let response = match (query.method.as_str(), plural) {
                ("DELETE", _) => json!({"kind": "Status", "status": "Success", "details": {"uid": "u"}}),
                (_, "workers") => worker(&json!({}), 7),
                (_, "deployments") => {
                    json!({"metadata": {}, "spec": {"replicas": replicas, "selector": {}, "template": {}}})
                }
                _ => json!({"kind": "List", "metadata": {"resourceVersion": "7"}, "items": items}),
            };
            (200, response)
        });
        let context = reconcile_of(&controller, &worker_in("shoot--p--s"), &Azure, Operation::Reconcile);
        let mut live = context.shoot.read_machine_objects().await.unwrap();
        requested.lock().unwrap().clear();
        observed(&mut live);
        let empty = PoolPlan { pool: "a".to_owned(), machines: vec![], status_image: json!({}), in_place_hash: None };
        let plan = Plan { pools: vec![Ok(empty)], provider_status: json!({}), ..Plan::default() };
        let observed = Observed { live, progress: Progress::default() };
        let now = Timestamp::UNIX_EPOCH;
        let (_, pending) = clean_up(&context, &plan, observed, Hibernation::NotRequested, now).await.unwrap();
        let requested = requested.lock().unwrap().clone();
        (requested, pending)
    }

    /// An object of any kind: a class, or an object that uses it.
    fn object() -> Value {
        let class = json!({"kind": "MachineClass", "name": "web-z1"});
        json!({
            "metadata": {"name": "web-z1", "namespace": "shoot--p--s", "uid": "u", "resourceVersion": "5",
                "labels": {"gardener.cloud/purpose": "machineclass", "name": "gone"}},
            "spec": {"class": class, "template": {"spec": {"class": class}}},
        })
    }

    #[tokio::test]
    async fn what_nothing_uses_is_deleted_whether_or_not_machine_controller_manager_runs() {
        let (requested, pending) = requested(&["machineclasses", "secrets"]).await;
        let expected =
            ["GET machinedeployments", "GET machinesets", "GET machines", "DELETE machineclasses", "DELETE secrets"];
        assert_eq!(requested, expected);
        assert!(pending.classes.is_empty() && pending.deployments.is_empty());
    }

    #[tokio::test]
    async fn deletes_orphaned_machine_sets_before_their_class() {
        let (requested, pending) = requested(&["machineclasses", "secrets", "machinesets"]).await;
        let deleted = &requested[requested.len() - 3..];
        assert_eq!(deleted, ["DELETE machinesets", "DELETE machineclasses", "DELETE secrets"], "{requested:?}");
        assert!(pending.is_empty());
    }

    #[tokio::test]
    async fn while_machine_controller_manager_is_stopped_classes_go_once_their_deployment_is_seen_to_go() {
        let (requested, pending) = requests_of(&["machinedeployments", "machineclasses", "secrets"], 0, |_| {}).await;
        let deleted: Vec<&String> = requested.iter().filter(|line| line.starts_with("DELETE")).collect();
        assert!(
            deleted.iter().all(|line| *line == "DELETE machinedeployments"),
            "it was answered and not done: {requested:?}"
        );
        assert!(!deleted.is_empty() && pending.is_empty());
        let (requested, _) = requests_of(&["machineclasses", "secrets", "machinesets"], 0, |_| {}).await;
        let deleted = &requested[requested.len() - 3..];
        assert_eq!(deleted, ["DELETE machinesets", "DELETE machineclasses", "DELETE secrets"], "{requested:?}");
    }

    #[tokio::test]
    async fn deletes_uncached_secret_with_its_class() {
        let (mut requested, _) =
            requests_of(&["machineclasses", "secrets"], 1, |live| live.class_secrets.clear()).await;
        let deleted = requested.split_off(requested.len() - 2);
        assert_eq!(deleted, ["DELETE machineclasses", "DELETE secrets"]);
    }

    #[tokio::test]
    async fn what_a_machine_uses_waits_for_a_machine_controller_manager_that_runs() {
        let (requested, pending) = requested(&["machineclasses", "secrets", "machines"]).await;
        assert_eq!(requested, ["GET deployments"]);
        assert_eq!(pending.classes, ["web-z1"]);
    }

    #[tokio::test]
    async fn deletes_nothing_before_all_planned_machines_exist() {
        let (controller, requested) = controller(None, |_, _| refusal(500, "InternalError"));
        let context = reconcile_of(&controller, &worker_in("shoot--p--s"), &Azure, Operation::Reconcile);
        let class = DigestedObject::class(object()).unwrap();
        let live = MachineObjects { classes: [("web-z1".to_owned(), class)].into(), ..MachineObjects::default() };
        let waiting = DeploymentProgress { phase: Phase::Pending, ..DeploymentProgress::ready() };
        let progress = Progress { deployments: vec![waiting], ..Progress::default() };
        let plan = Plan { pools: vec![], provider_status: json!({}), ..Plan::default() };
        let now = Timestamp::UNIX_EPOCH;
        let observed = Observed { live, progress };
        let (after, pending) = clean_up(&context, &plan, observed, Hibernation::NotRequested, now).await.unwrap();
        assert!(pending.is_empty() && after.live.classes.len() == 1);
        assert!(lines(&requested).is_empty());
    }
}
