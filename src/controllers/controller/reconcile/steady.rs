//! Handles a Worker without a pending operation. It checks whether an operation has to begin anyway, and maintains
//! the condition that gardenlet keeps reading. Both use the store, so they send no requests and write nothing while
//! the condition is unchanged. Nodes of the shoot are counted in the background.

use std::collections::BTreeMap;
use std::mem;
use std::time::Duration;

use tokio::time::Instant;
use tracing::warn;

use crate::controller::queue::Requeue;
use crate::controller::reconcile::error::ReconcileError;
use crate::controller::report::events;
use crate::controller::report::node_counts::Counted;
use crate::controller::report::status_writes::{VersionCheck, WorkerWriter};
use crate::controller::run::context::ControllerContext;
use crate::controller::run::memory::WorkerMemory;
use decisions::provider::Provider;
use decisions::worker::machines::machine_objects::LiveDeployment;
use decisions::worker::machines::node_count::{LiveMachines, MachineCount};
use decisions::worker::plan::desired::{CloudView, DesiredState};
use decisions::worker::plan::zone_facts::GateInputs;
use decisions::worker::request::steady::{CachedNodes, SteadyFinding, SteadyInputs, evaluate_steady};
use decisions::worker::request::{Operation, unsupported_migration};
use runtime::cluster::decode_guard::LazyObject;
use runtime::cluster::error::ReadError;
use runtime::cluster::identity::Identity;
use runtime::cluster::shoot_namespace::ShootNamespace;
use wire::api::gardener::{Cluster, Worker};

/// How often to check whether the watches have caught up. Without them, following a Worker would cost requests.
const WATCH_POLL_PERIOD: Duration = Duration::from_secs(5);
/// Namespace of a self-hosted shoot, whose nodes are those of its seed.
const SELF_HOSTED: &str = "kube-system";

/// Result of following a steady Worker.
pub(crate) enum Steady {
    Lasts(Requeue),
    /// An operation has to begin.
    Ends,
}

/// When to requeue a Worker that was found steady in this version while the watches were, and still are, behind. It
/// need not be decoded for that: until the watches of a large seed have caught up, each object that arrives requeues
/// its Worker. `None` if it has to be decoded.
pub(crate) fn awaits_watches(worker: &LazyObject<Worker>, controller: &ControllerContext) -> Option<Requeue> {
    if controller.cache.machine_objects.is_fresh() {
        return None;
    }
    let version = Identity::of(worker)?.version;
    let awaits = controller.memory.of(worker.uid(), |memory| memory.awaits_watches(version));
    awaits.then_some(Requeue::After(WATCH_POLL_PERIOD))
}

/// Follows a Worker without a pending operation.
///
/// # Errors
/// If an object can't be read, or the condition can't be written.
pub(crate) async fn follow(
    worker: &Worker,
    identity: &Identity,
    provider: &'static dyn Provider,
    controller: &ControllerContext,
) -> Result<Steady, ReconcileError> {
    let queries = SteadyInputs::of(worker);
    let shoot = controller.shoot_namespace(&identity.namespace, provider).beside(controller.other_workers(worker));
    let uid = identity.uid.as_str();
    let memory = &controller.memory;
    let unsupported = unsupported_migration(worker);
    if memory.of(uid, |memory| memory.unsupported_migration_changed(unsupported))
        && let Some(request) = unsupported
    {
        warn!(request, "the requested operation is not supported, so nothing is done for the Worker");
        controller.events.publish::<Worker>(identity, events::unsupported_migration(request)).await;
    }
    if !queries.is_followed {
        return Ok(Steady::Lasts(Requeue::OnEvent));
    }
    if memory.of(uid, |memory| mem::take(&mut memory.must_start_operation)) {
        return Ok(Steady::Ends);
    }
    if controller.ignores_operation_annotation
        && (queries.has_new_specification || cluster_differs(worker, uid, provider, &shoot, controller).await?)
    {
        return Ok(Steady::Ends);
    }
    if !shoot.store_is_fresh() {
        // Changes of the Cluster would still have to be detected.
        let steady = if !controller.ignores_operation_annotation { Some(identity.version) } else { None };
        memory.of(uid, |memory| memory.steady_until_watched = steady);
        return Ok(Steady::Lasts(Requeue::After(WATCH_POLL_PERIOD)));
    }
    if let Some(wait) = memory.of(uid, |memory| memory.rate_limit.until_reconcile(Instant::now())) {
        return Ok(Steady::Lasts(Requeue::After(wait)));
    }
    memory.of(uid, |memory| memory.rate_limit.reconciled(Instant::now()));
    let (finding, counted_again) = evaluate(worker, identity, queries, &shoot, controller).await?;
    let report = match finding {
        SteadyFinding::UpdateDue => return Ok(Steady::Ends),
        SteadyFinding::Current(report) => report,
        SteadyFinding::Unready(report, lasting) => {
            let wait = memory.of(uid, |memory| memory.until_unready_is_reported(lasting, Instant::now()));
            if let Some(wait) = wait {
                let wait = counted_again.map_or(wait, |again| again.min(wait));
                return Ok(Steady::Lasts(Requeue::After(wait)));
            }
            report
        }
    };
    memory.of(uid, WorkerMemory::readiness_is_reported);
    // A newer version of the Worker gets a reconcile of its own.
    WorkerWriter::new(controller, identity).status(&report, VersionCheck::Read).await?;
    Ok(Steady::Lasts(counted_again.map_or(Requeue::OnEvent, Requeue::After)))
}

/// Evaluates the machines from the store and the last node count. Also returns when nodes are counted again.
async fn evaluate(
    worker: &Worker,
    identity: &Identity,
    queries: SteadyInputs,
    shoot: &ShootNamespace,
    controller: &ControllerContext,
) -> Result<(SteadyFinding, Option<Duration>), ReadError> {
    let objects = if queries.has_manual_pools { Some(shoot.machine_objects().await?) } else { None };
    let is_hibernated = match queries.is_hibernated {
        Some(is_hibernated) => is_hibernated,
        None => should_hibernate(shoot).await?,
    };
    let deployments = shoot.stored_deployments().map_err(|error| error.to_string());
    let deployments = deployments.as_ref().map_err(String::as_str);
    let nodes = match deployments {
        Ok(deployments) if !is_hibernated => nodes(identity, deployments, shoot, controller).await?,
        _ => None,
    };
    let health_check = controller.health_check;
    let now = controller.clock.now();
    let (cached, counted_again) = match &nodes {
        None => (CachedNodes::NotCounted, None),
        Some((None, again)) => (CachedNodes::Awaited, Some(*again)),
        Some((Some((counted, machines)), again)) => {
            (CachedNodes::Counted(counted.as_ref().copied().map_err(String::as_str), *machines), Some(*again))
        }
    };
    let finding = evaluate_steady(worker, deployments, objects.as_ref(), cached, is_hibernated, health_check, now);
    Ok((finding, counted_again))
}

/// The last node count, with the machines if it does not match the target, and when nodes are counted again.
type NodesOfShoot = (Option<(Counted, LiveMachines)>, Duration);

/// `None` if nodes are not counted.
async fn nodes(
    worker: &Identity,
    deployments: &BTreeMap<String, LiveDeployment>,
    shoot: &ShootNamespace,
    controller: &ControllerContext,
) -> Result<Option<NodesOfShoot>, ReadError> {
    if shoot.name() == SELF_HOSTED {
        return Ok(None);
    }
    let Some(counts) = &controller.node_counts else { return Ok(None) };
    let target = MachineCount::of(deployments);
    let (counted, again) = counts.of(worker, target, Instant::now());
    let Some(counted) = counted else { return Ok(Some((None, again))) };
    let machines = match &counted {
        Ok(nodes) if !target.is_met_by(*nodes) => {
            let machines = shoot.machine_objects().await?.machines;
            let deleting = machines.iter().filter(|machine| machine.is_being_deleted).count();
            LiveMachines { staying: machines.len() - deleting, deleting }
        }
        _ => LiveMachines::default(),
    };
    Ok(Some((Some((counted, machines)), again)))
}

async fn should_hibernate(shoot: &ShootNamespace) -> Result<bool, ReadError> {
    match shoot.cluster(false).await {
        Ok(cluster) => {
            let shoot = cluster.as_ref().and_then(|cluster| cluster.spec.shoot.as_ref());
            Ok(shoot.is_some_and(|shoot| shoot.should_hibernate()))
        }
        // The next operation reports it.
        Err(ReadError::Cluster { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether the changed Cluster would lead to writes (`--ignore-operation-annotation`).
async fn cluster_differs(
    worker: &Worker,
    uid: &str,
    provider: &dyn Provider,
    shoot: &ShootNamespace,
    controller: &ControllerContext,
) -> Result<bool, ReadError> {
    let Some(version) = controller.cache.clusters.versions.version("", shoot.name()) else { return Ok(false) };
    if controller.memory.of(uid, |memory| memory.compared_cluster == Some(version)) {
        return Ok(false);
    }
    let differs = match shoot.cluster(false).await {
        Ok(Some(cluster)) => has_drifted(shoot, provider, worker, &cluster, controller).await?,
        Ok(None) => false,
        // An operation has to report it.
        Err(ReadError::Cluster { .. }) => true,
        Err(error) => return Err(error),
    };
    if !differs {
        controller.memory.of(uid, |memory| memory.compared_cluster = Some(version));
    }
    Ok(differs)
}

/// Whether the live objects differ from what Worker, Cluster and Secrets now require. A Cluster changes with each
/// step of its shoot, and hardly any of these changes concerns machines. Invalid input is drift too, because an
/// operation has to report it.
async fn has_drifted(
    shoot: &ShootNamespace,
    provider: &dyn Provider,
    worker: &Worker,
    cluster: &Cluster,
    controller: &ControllerContext,
) -> Result<bool, ReadError> {
    let (secrets, live) = tokio::try_join!(shoot.secrets(worker, true), shoot.machine_objects())?;
    let desired = DesiredState::of_worker(provider, worker, Some(cluster), &secrets, CloudView::Context);
    let desired = desired.map(|desired| desired.beside(shoot.others()));
    let now = controller.clock.now();
    let budget = controller.budget_of(worker);
    let inputs = GateInputs { provider, operation: Operation::Reconcile, live: &live, now, budget: budget.as_ref() };
    let desired = desired.map(|desired| desired.with_gate(&inputs));
    let desired = desired.map(|desired| desired.with_images(provider, controller.image_policy, &live));
    let has_drifted = desired.map_or(true, |desired| !desired.drift(&live, now).writes_nothing());
    shoot.pack_secrets(&secrets);
    Ok(has_drifted)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::controller::report::node_counts::NodeCounts;
    use crate::controller::test_seed::{CLUSTER, NAMESPACE, Seed, WORKER};
    use crate::controller::test_support::{controller, refusal, watched, worker};
    use decisions::provider::azure::Azure;
    use decisions::provider::gcp::Gcp;
    use decisions::worker::machines::node_count::NodeCount;
    use decisions::worker::status::every_node_ready::HealthCheck;

    /// Whether the nodes of a steady Worker with these conditions are counted. `hibernation` is `None` without a
    /// Cluster.
    async fn is_counted(conditions: Value, hibernation: Option<bool>) -> bool {
        let (context, _) = controller(None, move |line, _| match (line, hibernation) {
            ("GET ns", Some(enabled)) => {
                let shoot = json!({"spec": {"hibernation": {"enabled": enabled}}});
                (200, json!({"metadata": {"name": "ns", "resourceVersion": "3"}, "spec": {"shoot": shoot}}))
            }
            _ => refusal(404, "NotFound"),
        });
        let mut context = Arc::into_inner(context).unwrap();
        context.node_counts = Some(NodeCounts::new(context.client.clone(), Arc::new(|_| ())));
        context.health_check = HealthCheck::Ours;
        watched(&context);
        let mut steady = worker(&json!({}), 7);
        steady["metadata"]["annotations"] = json!({});
        steady["status"] = json!({
            "lastOperation": {"type": "Reconcile", "state": "Succeeded", "progress": 100},
            "conditions": conditions,
        });
        let steady: Worker = serde_json::from_value(steady).unwrap();
        let identity = Identity::of(&steady).unwrap();
        match follow(&steady, &identity, &Azure, &context).await.unwrap() {
            Steady::Lasts(requeue) => requeue != Requeue::OnEvent,
            Steady::Ends => panic!("nothing is asked"),
        }
    }

    #[tokio::test]
    async fn nodes_are_not_counted_while_the_shoot_is_hibernated() {
        let recorded = |reason: &str| json!([{"type": "PoolsReady", "status": "True", "reason": reason}]);
        assert!(is_counted(recorded("AllPoolsReady"), Some(true)).await, "it has not been hibernated yet");
        assert!(!is_counted(recorded("Hibernated"), None).await, "its API server is not there");
        assert!(!is_counted(json!([]), Some(true)).await, "the last operation was another extension's");
        assert!(is_counted(json!([]), Some(false)).await && is_counted(json!([]), None).await);
    }

    /// When the Worker is followed again; `None` if an operation has to begin.
    async fn followed(seed: &Seed, context: &ControllerContext) -> Option<Requeue> {
        tokio::time::advance(Duration::from_secs(2)).await;
        let worker = seed.worker();
        match follow(&worker, &Identity::of(&worker).unwrap(), &Gcp, context).await.unwrap() {
            Steady::Lasts(requeue) => Some(requeue),
            Steady::Ends => None,
        }
    }

    fn controller_of(seed: &Seed, ignores_operation_annotation: bool) -> ControllerContext {
        let context = Arc::into_inner(seed.controller()).unwrap();
        ControllerContext { ignores_operation_annotation, ..context }
    }

    /// Delivers a watch event with that version of the Cluster.
    fn observe_cluster(context: &ControllerContext, version: u64) {
        let identity =
            Identity { namespace: String::new(), name: NAMESPACE.to_owned(), uid: "uid-cluster".to_owned(), version };
        context.cache.clusters.versions.event(identity, || ());
    }

    #[tokio::test(start_paused = true)]
    async fn reports_unsupported_migration_once() {
        let (seed, context) = Seed::settled().await;
        for deleted in [false, true] {
            seed.request("live-migrate");
            if deleted {
                seed.merge(WORKER, json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
            }
            seed.requested();
            seed.reconcile(&context).await.unwrap();
            seed.reconcile(&context).await.unwrap();
            let expected: &[&str] = if deleted { &[] } else { &["POST events"] };
            assert_eq!(seed.writes(), expected, "deleted: {deleted}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_specification_begins_an_operation_only_where_annotations_are_ignored() {
        let (seed, _) = Seed::settled().await;
        assert_eq!(followed(&seed, &controller_of(&seed, true)).await, Some(Requeue::After(WATCH_POLL_PERIOD)));
        seed.merge(WORKER, json!({"metadata": {"generation": 2}}));
        assert_eq!(followed(&seed, &controller_of(&seed, true)).await, None);
        assert_eq!(followed(&seed, &controller_of(&seed, false)).await, Some(Requeue::After(WATCH_POLL_PERIOD)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_changed_cluster_begins_an_operation_only_where_something_would_be_written() {
        let (seed, _) = Seed::settled().await;
        seed.requested();
        let context = controller_of(&seed, true);
        observe_cluster(&context, 1000);
        assert!(followed(&seed, &context).await.is_some());
        assert!(!seed.requested().is_empty(), "it was compared");
        assert!(followed(&seed, &context).await.is_some());
        assert!(seed.requested().is_empty(), "once");
        seed.hibernate();
        observe_cluster(&context, 1001);
        assert_eq!(followed(&seed, &context).await, None);
        assert_eq!(followed(&seed, &context).await, None, "until the operation has begun");
        seed.merge(CLUSTER, json!({"spec": {"shoot": 7}}));
        observe_cluster(&context, 1002);
        assert_eq!(followed(&seed, &context).await, None, "what can't be decoded has to be reported");
        seed.remove(CLUSTER);
        observe_cluster(&context, 1003);
        assert!(followed(&seed, &context).await.is_some(), "there is nothing to compare with");
    }

    #[tokio::test(start_paused = true)]
    async fn unrequested_worker_waits_for_watches_in_its_version() {
        let (seed, _) = Seed::settled().await;
        let guarded = |seed: &Seed| serde_json::from_value::<LazyObject<Worker>>(seed.get(WORKER).unwrap()).unwrap();
        for (ignores, expected) in [(false, Some(Requeue::After(WATCH_POLL_PERIOD))), (true, None)] {
            let context = controller_of(&seed, ignores);
            assert_eq!(awaits_watches(&guarded(&seed), &context), None, "nobody has found out what is asked");
            followed(&seed, &context).await;
            assert_eq!(awaits_watches(&guarded(&seed), &context), expected, "annotations ignored: {ignores}");
            seed.merge(WORKER, json!({"metadata": {"labels": {"new": "label"}}}));
            assert_eq!(awaits_watches(&guarded(&seed), &context), None, "another version");
            followed(&seed, &context).await;
            watched(&context);
            assert_eq!(awaits_watches(&guarded(&seed), &context), None, "they are back");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nodes_that_are_missing_are_reported_with_the_machines_that_stay() {
        let (seed, _) = Seed::settled().await;
        let (name, _) = seed.all("machines/").remove(0);
        seed.merge(&name, json!({"metadata": {"deletionTimestamp": "2026-11-21T10:00:00Z"}}));
        let mut context = controller_of(&seed, false);
        let counts = NodeCounts::new(context.client.clone(), Arc::new(|_| ()));
        context.node_counts = Some(Arc::clone(&counts));
        context.health_check = HealthCheck::Ours;
        context.shoot_namespace(NAMESPACE, &Gcp).read_machine_objects().await.unwrap();
        watched(&context);
        let uid = seed.last("/metadata/uid");
        let target = MachineCount { desired: 3, preserved: 0 };
        let ready = |number| Ok(NodeCount { registered: number, ready: number });
        counts.set(&uid, target, ready(2));
        assert!(matches!(followed(&seed, &context).await, Some(Requeue::After(_))));
        assert!(seed.writes().is_empty(), "that may be over soon");
        tokio::time::advance(Duration::from_secs(31)).await;
        counts.set(&uid, target, ready(2));
        followed(&seed, &context).await;
        let text = seed.get(WORKER).unwrap()["status"]["conditions"].to_string();
        assert!(text.contains("Not enough machine objects created yet (2/3)"), "{text}");
    }
}
