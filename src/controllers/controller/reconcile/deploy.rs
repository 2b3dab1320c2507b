//! The steps of an operation that deploys machines: create, reconcile, restore.
//!
//! ```text
//!  observe       client  machine objects from the store
//!  decode        pure    what all pools are planned from
//!  dependencies  cloud   what pools need there before they can be planned
//!  desired       pure    a plan or an error for each pool, and how the live objects differ from it
//!  write         client  records, machines of a shoot that has moved, what differs
//!  follow        client  progress of the machines; what nothing needs any more is deleted
//!  result        pure    outcome, conditions, events, what the status publishes
//! ```

use std::mem::take;
use std::time::Duration;

use jiff::Timestamp;

use crate::controller::deletion::force_deletion::mark_machines;
use crate::controller::reconcile::apply::{Applied, ApplyError, apply_to_live};
use crate::controller::reconcile::clean_up::{Observed, clean_up};
use crate::controller::reconcile::dependencies::{clean_up_cloud, record_dependencies};
use crate::controller::reconcile::error::ReconcileError;
use crate::controller::reconcile::machine_controller_manager::{self, restart_if_stuck, start_after_restore};
use crate::controller::reconcile::planned::planned;
use crate::controller::reconcile::reconcile_context::{Inputs, ReconcileContext};
use crate::controller::reconcile::restore::restore_machines;
use crate::controller::reconcile::result::{ReconcileResult, StepTimer};
use crate::controller::run::memory::Publication;
use decisions::provider::{WorkerContext, WorkerError};
use decisions::worker::machines::machine_objects::MachineObjects;
use decisions::worker::machines::progress::{Hibernation, Progress, Stuck, progress};
use decisions::worker::plan::Plan;
use decisions::worker::plan::changes::MachineChanges;
use decisions::worker::plan::desired::{DesiredState, Drift};
use decisions::worker::plan::orphans::MachineControllerManagerState;
use decisions::worker::plan::rolls::Roll;
use decisions::worker::plan::rolls_as_planned::rolls_as_planned;
use decisions::worker::request::decode;
use decisions::worker::request::reconcile_state::ReconcileEvent;
use decisions::worker::request::{Operation, is_moving};
use decisions::worker::status::conditions::{pool_conditions, pools_ready_since};
use decisions::worker::status::events::{WorkerEvent, budget_events, events, stop_events, wait_events};
use decisions::worker::status::every_node_ready::{HealthCheck, every_node_ready};
use decisions::worker::status::outcome::{Found, PendingDeletion, outcome, until};
use decisions::worker::status::published::{
    Published, deadline, deadline_from, has_failed, is_publication_due, published_at,
};
use decisions::worker::status::reconcile_outcome::ReconcileOutcome;
use decisions::worker::status::rolls_held::rolls_held;
use runtime::cloud::dependency::{DependencyRequest, DependencyState};
use runtime::cluster::error::ReadError;
use runtime::cluster::shoot_namespace::ShootNamespace;
use wire::api::gardener::{Shoot, Worker};

/// The target state of one operation and the inputs it was computed from.
struct Deploy<'a> {
    worker: &'a Worker,
    inputs: WorkerContext<'a>,
    dependencies: &'a DependencyState,
    desired: DesiredState<'a>,
    has_moved: bool,
    is_hibernated: bool,
    republishes: bool,
    /// Time of gardenlet's request.
    requested_at: Option<Timestamp>,
    health_check: HealthCheck,
    now: Timestamp,
}

/// Deploys the machines of a Worker as far as currently possible.
///
/// # Errors
/// If an object can't be read or deleted, or nothing can be planned. Errors of single pools are part of the result.
pub(crate) async fn deploy(
    context: &mut ReconcileContext<'_>,
    worker: &Worker,
    inputs: Inputs,
    now: Timestamp,
) -> Result<ReconcileResult, ReconcileError> {
    let mut steps = StepTimer::start();
    let missing = || WorkerError::ClusterMissing(context.shoot.name().to_owned());
    let cluster = inputs.cluster?.ok_or_else(missing)?;
    let secrets = inputs.secrets?;
    let has_moved = context.operation == Operation::Restore;
    // The live objects decide what a restore brings back, so they are reread.
    let shoot = &context.shoot;
    let live = if has_moved { shoot.read_machine_objects().await? } else { shoot.machine_objects().await? };
    steps.done("observe");
    let mut inputs = decode::context(worker, &cluster, &secrets)?;
    let dependencies = ensure_dependencies(context, &inputs, &live, has_moved).await?;
    inputs.dependencies = dependencies.dependencies.as_ref();
    steps.done("dependencies");
    let mut deploy = Deploy {
        worker,
        desired: planned(context, inputs, &live, now)?,
        inputs,
        dependencies: &dependencies,
        has_moved,
        is_hibernated: inputs.shoot.should_hibernate(),
        republishes: republishes(context, worker),
        requested_at: context.request.time(),
        health_check: context.controller.health_check,
        now,
    };
    // After a migration the drift is known only once the machines are restored.
    let drift = (!has_moved).then(|| deploy.desired.drift(&live, now));
    steps.done("plan");
    if deploy.has_work(context.shoot.name(), &live, drift.as_ref()) {
        context.advance(worker, ReconcileEvent::WorkFound).await?;
        steps.done("mark-processing");
    }
    let written = deploy.write(context, live, drift).await?;
    steps.done("apply");
    let (written, followed) = deploy.follow(context, written).await?;
    steps.done("clean-up");
    let seen = written.live.dependencies_of_classes();
    let mut result = deploy.result(written, &followed);
    if result.outcome == ReconcileOutcome::Succeeded && dependencies.has_something {
        let published = result.published.get_or_insert_default();
        let deadline = deploy.found(&[], &followed).deadline_of_clean_up();
        let (outcome, requeue_after) = clean_up_cloud(context, &deploy.inputs, published, seen, deadline, now).await?;
        (result.outcome, result.requeue_after) = (outcome, earliest([result.requeue_after, requeue_after]));
        steps.done("clean-up-cloud");
    }
    Ok(ReconcileResult {
        plan: Some(deploy.desired.plan),
        progress: Some(followed.progress),
        steps: steps.taken(),
        ..result
    }
    .publishing_what_fits())
}

/// Whether gardenlet needs a new publication time for the bounds of this operation, even if the bounds are unchanged.
fn republishes(context: &ReconcileContext<'_>, worker: &Worker) -> bool {
    let is_due = match context.memory(|memory| memory.publication) {
        Publication::Due => true,
        Publication::Unknown => has_failed(worker),
        Publication::Done => false,
    };
    is_due || context.state.is_beginning() || is_publication_due(worker, &context.request)
}

async fn ensure_dependencies(
    context: &ReconcileContext<'_>,
    inputs: &WorkerContext<'_>,
    live: &MachineObjects,
    has_moved: bool,
) -> Result<DependencyState, WorkerError> {
    let Some(cloud) = context.cloud() else { return Ok(DependencyState::default()) };
    let begins = context.state.is_beginning();
    cloud.ensure(DependencyRequest { context: inputs, live, begins, has_moved }).await
}

/// Result of the writes, and the machine objects afterwards.
struct Written {
    live: MachineObjects,
    errors: Vec<ApplyError>,
    writes: usize,
    rolls: Vec<Roll>,
    /// The plan of the writes, if it was made again.
    plan: Option<Plan>,
}

/// Progress of the machines, and unneeded objects that still exist.
struct ObservedProgress {
    progress: Progress,
    pending_deletion: PendingDeletion,
    restarted: Option<Stuck>,
    requeue_after: Option<Duration>,
}

impl Deploy<'_> {
    /// Whether there is anything to write, wait for or report.
    fn has_work(&self, namespace: &str, live: &MachineObjects, drift: Option<&Drift<'_>>) -> bool {
        self.is_hibernated
            || self.dependencies.records_changed
            || !drift.is_some_and(Drift::is_settled)
            || !progress(&self.desired.plan, namespace, live, Hibernation::NotRequested).is_ready()
    }

    /// Whether machines will be created or changed. In a restore: whether any deployment is still missing.
    fn is_to_write(&self, live: &MachineObjects, drift: Option<&Drift<'_>>) -> bool {
        match drift {
            Some(drift) => drift.changes.iter().any(MachineChanges::is_to_write),
            None => {
                self.desired.plan.machines().any(|machine| !live.deployments.contains_key(&machine.deployment.name.0))
            }
        }
    }

    /// Writes dependency records, restores machines after a migration, and writes everything that differs.
    async fn write<'s>(
        &'s self,
        context: &mut ReconcileContext<'_>,
        mut live: MachineObjects,
        drift: Option<Drift<'s>>,
    ) -> Result<Written, ReconcileError> {
        if self.dependencies.records_changed {
            record_dependencies(context, self.worker, &self.desired.provider_status()).await?;
        }
        let shoot = &context.shoot;
        let garden = &context.controller.garden;
        let is_to_write = self.is_to_write(&live, drift.as_ref());
        if self.has_moved && is_to_write {
            context.ensure_still_current().await?;
            live.moved_replicas =
                restore_machines(shoot.client(), garden, &self.inputs, &self.desired.plan, &live).await?;
            context.ensure_still_current().await?;
        } else if is_to_write {
            context.ensure_current().await?;
        }
        if self.is_hibernated {
            mark_machines(context, &live.machines).await?;
        }
        let (Applied { live, errors, writes, plan }, rolls) =
            apply_to_live(context, &self.desired, drift, live, self.now).await?;
        let rolls = rolls.into_iter().filter(|roll| roll.is_written(&live.deployments)).collect();
        // machine-controller-manager would treat machines that are not restored yet as orphans and delete them at the
        // cloud.
        if self.has_moved && self.desired.is_complete() && errors.is_empty() {
            start_after_restore(context, self.inputs.shoot).await?;
        }
        Ok(Written { live, errors, writes, rolls, plan })
    }

    /// Computes the progress of the machines, deletes unneeded objects, and restarts or stops
    /// machine-controller-manager.
    async fn follow(
        &mut self,
        context: &ReconcileContext<'_>,
        mut written: Written,
    ) -> Result<(Written, ObservedProgress), ReconcileError> {
        if let Some(plan) = written.plan.take() {
            self.desired.plan = plan;
        }
        let shoot = &context.shoot;
        let hibernation = match self.is_hibernated {
            false => Hibernation::NotRequested,
            true if shoot.machine_controller().await? == MachineControllerManagerState::Stopped => Hibernation::Done,
            true => Hibernation::InProgress,
        };
        let progress = progress(&self.desired.plan, shoot.name(), &written.live, hibernation);
        let is_written = written.errors.is_empty();
        let observed = Observed { live: take(&mut written.live), progress };
        let (observed, pending_deletion) = match is_written {
            true => clean_up(context, &self.desired.plan, observed, hibernation, self.now).await?,
            false => (observed, PendingDeletion::default()),
        };
        let Observed { live, mut progress } = observed;
        written.live = live;
        let (restarted, requeue_after) = restart_if_stuck(shoot, &progress.untaken(), self.now).await;
        let is_done = progress.is_ready() && pending_deletion.is_empty() && is_written && self.desired.is_complete();
        if hibernation == Hibernation::InProgress && is_done {
            self.stop_machine_controller(context, &mut written.live, &mut progress).await?;
        }
        Ok((written, ObservedProgress { progress, pending_deletion, restarted, requeue_after }))
    }

    /// Stops machine-controller-manager once a hibernated shoot has no machines left. Watches may be behind, and it
    /// may have been started for a shoot that wakes up or is deleted. The decision therefore needs a read after that
    /// of the Deployment to scale.
    async fn stop_machine_controller(
        &self,
        context: &ReconcileContext<'_>,
        live: &mut MachineObjects,
        progress: &mut Progress,
    ) -> Result<(), ReconcileError> {
        let shoot = &context.shoot;
        let running = shoot.machine_controller_deployment().await?.filter(|deployment| deployment.replicas() > 0);
        let Some(version) = running.and_then(|deployment| deployment.metadata.resource_version) else { return Ok(()) };
        *live = shoot.read_users_of_classes(take(&mut live.deployments)).await?;
        *progress = self::progress(&self.desired.plan, shoot.name(), live, Hibernation::InProgress);
        // Checked last, because a deletion of the shoot does not change the Deployment.
        if !progress.is_ready() || !is_hibernation_requested(shoot).await? {
            return Ok(());
        }
        let stopped = machine_controller_manager::stop(shoot, &version).await;
        // Also after a request without an answer, which may have succeeded.
        undo_late_stop(context).await?;
        stopped
    }

    /// Inputs of the outcome.
    fn found<'s>(&'s self, write_errors: &'s [String], followed: &'s ObservedProgress) -> Found<'s> {
        let worker = self.worker;
        let now = self.now;
        let begun = if self.republishes { Some(now) } else { published_at(worker).max(self.requested_at) };
        let recorded_deadline = if !self.republishes { deadline(worker) } else { None };
        Found {
            plan: &self.desired.plan,
            write_errors,
            progress: &followed.progress,
            pending_deletion: &followed.pending_deletion,
            deadline: recorded_deadline.unwrap_or_else(|| deadline_from(now)),
            ready_since: pools_ready_since(&worker.status.conditions).max(begun).unwrap_or(now),
        }
    }

    /// Computes everything that is reported.
    fn result(&self, written: Written, followed: &ObservedProgress) -> ReconcileResult {
        let Written { live, errors, writes, rolls, .. } = written;
        let write_errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let plan = &self.desired.plan;
        let mut events = events(self.worker, plan, &followed.progress, &rolls);
        events.extend(wait_events(&plan.waits, &live.deployments));
        events.extend(budget_events(self.worker, &plan.budget));
        events.extend(stop_events(self.worker, plan));
        events.extend(followed.restarted.clone().map(WorkerEvent::MachineControllerRestarted));
        let mut conditions = pool_conditions(&self.desired.plan, &write_errors, &followed.progress).to_vec();
        let present = &self.worker.status.conditions;
        let nodes = every_node_ready(&live.deployments, self.is_hibernated);
        if self.health_check.is_written_by_operations(&nodes, present) {
            conditions.push(nodes);
        }
        conditions.extend(rolls_held(plan, present));
        conditions.extend(self.desired.image_drift());
        conditions.extend(rolls_as_planned(&self.desired.context(), plan, &rolls, &live));
        let (outcome, requeue_after) = outcome(&self.found(&write_errors, followed), self.now);
        let is_outdated =
            self.desired.is_complete() && !errors.is_empty() && errors.iter().all(|error| error.source.is_outdated());
        ReconcileResult {
            published: Some(self.published(&live)),
            // A stuck change is checked again only when its deadline has passed.
            requeue_after: earliest([
                requeue_after,
                followed.requeue_after,
                self.dependencies.check_again,
                plan.waits.next_end().and_then(|end| until(end, self.now)),
                plan.stops.next_end().and_then(|end| until(end, self.now)),
            ]),
            conditions,
            events,
            is_outdated,
            writes,
            ..ReconcileResult::of(outcome)
        }
    }

    fn published(&self, live: &MachineObjects) -> Published {
        // If no pool needs machines, nothing is published, not even a time.
        let has_bounds = self.desired.plan.machines().next().is_some() || !self.desired.is_complete();
        Published {
            machine_deployments: self.desired.machine_deployments(live),
            renew_time: self.republishes && has_bounds,
            provider_status: self.desired.provider_status(),
        }
    }
}

/// Whether the shoot is to be hibernated, according to a fresh read of the Cluster.
async fn is_hibernation_requested(shoot: &ShootNamespace) -> Result<bool, ReadError> {
    let cluster = shoot.cluster(true).await?;
    let shoot = cluster.as_ref().and_then(|cluster| cluster.spec.shoot.as_ref());
    Ok(shoot.is_some_and(Shoot::is_hibernation_requested))
}

/// Restarts machine-controller-manager if the shoot was woken up or deleted while the stop was in progress. This does
/// not change the Deployment, and gardenlet checked it earlier, so no other controller would start it.
async fn undo_late_stop(context: &ReconcileContext<'_>) -> Result<(), ReconcileError> {
    let shoot = &context.shoot;
    if is_hibernation_requested(shoot).await? {
        return Ok(());
    }
    // The machines of a moving shoot are elsewhere or not all restored.
    let worker = context.writer().read().await?;
    if worker.is_some_and(|worker| !is_moving(&worker)) {
        machine_controller_manager::start_stopped(shoot).await?;
    }
    Err(ReconcileError::WorkerChanged)
}

fn earliest(times: impl IntoIterator<Item = Option<Duration>>) -> Option<Duration> {
    times.into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    use crate::controller::queue::Requeue;
    use crate::controller::queue::rate_limit::RECONCILE_INTERVAL;
    use crate::controller::test_seed::{CLUSTER, CONTROLLER, DEPLOYMENT, Objects, Seed, WORKER};
    use decisions::worker::status::published::seconds;
    use runtime::process::endpoints::MetricsText;

    #[test]
    fn the_earliest_time_of_all_counts() {
        let [soon, late] = [5, 10].map(|seconds| Some(Duration::from_secs(seconds)));
        assert_eq!(earliest([None, late, soon]), soon);
        assert_eq!(earliest([late, None]), late);
        assert_eq!(earliest([None, None]), None);
    }

    const LONG_AGO: &str = "2026-01-01T00:00:00Z";
    const PUBLISHED: &str = "/status/machineDeploymentsLastUpdateTime";

    fn replicas_of_controller(seed: &Seed) -> i64 {
        seed.get(CONTROLLER).unwrap()["spec"]["replicas"].as_i64().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_operation_writes_its_objects_in_order_and_waits_for_machines() {
        let (seed, context) = Seed::new();
        seed.reconcile(&context).await.unwrap();
        let writes = seed.writes();
        let kinds: Vec<&str> = writes.iter().map(|line| line.split('/').next().unwrap()).collect();
        let expected =
            ["PATCH workers", "POST secrets", "POST machineclasses", "POST machinedeployments", "PATCH workers"];
        assert_eq!(kinds, expected);
        assert_eq!((seed.state().as_str(), seed.last("/status/lastOperation/type").as_str()), ("Processing", "Create"));
        let bounds = json!([{"name": "shoot--garden--mail-web-z1", "minimum": 3, "maximum": 8}]);
        assert_eq!(seed.get(WORKER).unwrap()["status"]["machineDeployments"], bounds);
        assert_eq!(seed.last("/metadata/finalizers/0"), "extensions.gardener.cloud/worker");
    }

    #[tokio::test(start_paused = true)]
    async fn completes_no_op_at_once_with_new_time() {
        let (seed, context) = Seed::settled().await;
        seed.merge(WORKER, json!({"status": {"machineDeploymentsLastUpdateTime": LONG_AGO}}));
        seed.request("reconcile");
        assert_eq!(seed.reconcile(&context).await.unwrap(), Requeue::OnEvent);
        let requests: Vec<String> = seed.requested().into_iter().map(|(line, _)| line).collect();
        let writes: Vec<&String> = requests.iter().filter(|line| !line.starts_with("GET ")).collect();
        assert_eq!(writes, ["PATCH workers/mail/status", "PATCH workers/mail"], "{requests:?}");
        assert!(
            !requests.contains(&format!("GET {CONTROLLER}")),
            "machine-controller-manager is left alone: {requests:?}"
        );
        assert_eq!(seed.last("/metadata/annotations/gardener.cloud~1operation"), "");
        assert_ne!(seed.last(PUBLISHED), LONG_AGO, "gardenlet waits for a new time");
        let metrics = context.metrics.text();
        for series in [
            r#"noop_reconciles_total{worker_type="gcp""#,
            r#"pools{namespace="shoot--garden--mail",state="ready"} 1"#,
            r#"phase_duration_seconds_count{phase="plan"}"#,
        ] {
            assert!(metrics.contains(series), "{series}: {metrics}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn another_process_publishes_the_bounds_of_a_failed_operation_once() {
        let (seed, remembering_nothing) = Seed::settled().await;
        // Later than the request according to every clock.
        let later = seconds(Timestamp::now() + jiff::SignedDuration::from_secs(20));
        let fails = || {
            let status = json!({"lastOperation": {"state": "Error"}, "machineDeploymentsLastUpdateTime": later});
            seed.merge(WORKER, json!({"status": status}));
        };
        for publishes in [true, false] {
            fails();
            seed.reconcile(&remembering_nothing).await.unwrap();
            assert_eq!(seed.state(), "Succeeded");
            assert_eq!(seed.last(PUBLISHED) != later, publishes);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_there_is_to_do_is_announced_before_anything_is_written() {
        let hibernated = async |seed: &Seed| {
            let context = seed.controller();
            seed.hibernate();
            seed.request("reconcile");
            seed.reconcile(&context).await.unwrap();
            seed.machines_come();
            seed.reconcile(&context).await.unwrap();
            assert_eq!(seed.state(), "Succeeded");
        };
        for (what, is_hibernated, differs, is_unready) in [
            ("an object differs", false, true, false),
            ("machines are missing", false, false, true),
            ("the shoot is hibernated", true, false, false),
        ] {
            let (seed, context) = Seed::settled().await;
            if is_hibernated {
                hibernated(&seed).await;
            }
            if differs {
                seed.change_pool(|pool| pool["labels"] = json!({"new": "label"}));
            }
            if is_unready {
                seed.machines_fail();
            }
            seed.request("reconcile");
            seed.requested();
            seed.reconcile(&context).await.unwrap();
            let requests = seed.requested();
            let first = requests.iter().find(|(line, _)| !line.starts_with("GET ")).unwrap();
            assert_eq!(first.0, "PATCH workers/mail/status", "{what}");
            assert_eq!(first.1["status"]["lastOperation"]["state"], "Processing", "{what}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn machine_controller_manager_is_stopped_once_a_hibernated_shoot_has_no_machines() {
        let (seed, context) = Seed::settled().await;
        seed.hibernate();
        seed.request("reconcile");
        seed.reconcile(&context).await.unwrap();
        let machines = seed.all("machines/");
        assert!(machines.iter().all(|(_, machine)| machine["metadata"]["labels"]["force-deletion"] == "True"));
        assert_eq!((seed.state().as_str(), replicas_of_controller(&seed)), ("Processing", 1));
        seed.machines_come();
        let version = seed.get(CONTROLLER).unwrap()["metadata"]["resourceVersion"].clone();
        seed.requested();
        seed.reconcile(&context).await.unwrap();
        assert_eq!((seed.state().as_str(), replicas_of_controller(&seed)), ("Succeeded", 0));
        let requests = seed.requested();
        let scaled = requests.iter().find(|(line, _)| *line == format!("PATCH {CONTROLLER}/scale")).unwrap();
        assert_eq!(scaled.1, json!({"metadata": {"resourceVersion": version}, "spec": {"replicas": 0}}));
        seed.merge(DEPLOYMENT, json!({"metadata": {"generation": 99}}));
        seed.request("reconcile");
        seed.reconcile(&context).await.unwrap();
        assert_eq!(seed.state(), "Succeeded", "nobody is there to see the new generation");
    }

    #[tokio::test(start_paused = true)]
    async fn machine_controller_manager_is_not_stopped_as_long_as_it_is_needed() {
        let (seed, context) = Seed::settled().await;
        seed.hibernate();
        seed.request("reconcile");
        seed.reconcile(&context).await.unwrap();
        seed.machines_come();
        let (name, _) = seed.all("machineclasses/").remove(0);
        seed.merge(&name, json!({"providerSpec": {"zone": "elsewhere"}}));
        seed.refuse(|line, _| line.contains(" machineclasses/").then_some((403, "Forbidden")));
        seed.reconcile(&context).await.unwrap();
        assert_eq!((seed.state().as_str(), replicas_of_controller(&seed)), ("Error", 1));
        seed.refuse(|_, _| None);
        let class = json!({"kind": "MachineClass", "name": "old"});
        let spec = json!({"replicas": 0, "template": {"spec": {"class": class}}});
        let metadata = json!({"name": "old", "finalizers": ["f"]});
        let old = json!({"kind": "MachineDeployment", "metadata": metadata, "spec": spec});
        seed.put("machinedeployments/old", old);
        seed.reconcile(&context).await.unwrap();
        assert_eq!((seed.state().as_str(), replicas_of_controller(&seed)), ("Processing", 1), "an old one is left");
        seed.remove("machinedeployments/old");
        seed.when("GET machinesets", |objects| {
            let hibernation = json!({"enabled": false});
            objects.get_mut(CLUSTER).unwrap()["spec"]["shoot"]["spec"]["hibernation"] = hibernation;
        });
        seed.reconcile(&context).await.unwrap();
        assert_eq!(replicas_of_controller(&seed), 1, "the shoot wakes up");
    }

    /// Replicas of machine-controller-manager if `happens` runs while it is being stopped for a hibernated shoot.
    async fn replicas_after_late_stop(happens: impl FnOnce(&mut Objects) + Send + 'static) -> i64 {
        let (seed, context) = Seed::settled().await;
        seed.hibernate();
        seed.request("reconcile");
        seed.reconcile(&context).await.unwrap();
        seed.machines_come();
        seed.when(&format!("PATCH {CONTROLLER}/scale"), happens);
        let requeue = seed.reconcile(&context).await.unwrap();
        let replicas = replicas_of_controller(&seed);
        assert_eq!(seed.state(), if requeue == Requeue::OnEvent { "Succeeded" } else { "Processing" }, "{replicas}");
        replicas
    }

    #[tokio::test(start_paused = true)]
    async fn machine_controller_manager_is_started_again_where_it_was_stopped_too_late() {
        fn merge(objects: &mut Objects, name: &str, patch: &serde_json::Value) {
            json_patch::merge(objects.get_mut(name).unwrap(), patch);
        }
        fn wakes_up(objects: &mut Objects) {
            merge(objects, CLUSTER, &json!({"spec": {"shoot": {"spec": {"hibernation": {"enabled": false}}}}}));
        }
        assert_eq!(replicas_after_late_stop(|_| ()).await, 0, "it is to sleep");
        assert_eq!(replicas_after_late_stop(wakes_up).await, 1);
        let is_requested = |objects: &mut Objects| {
            wakes_up(objects);
            let requested = json!({"gardener.cloud/operation": "reconcile"});
            merge(objects, WORKER, &json!({"metadata": {"annotations": requested, "resourceVersion": "1000"}}));
        };
        assert_eq!(replicas_after_late_stop(is_requested).await, 1, "the Worker is another one than was read");
        let is_deleted = |objects: &mut Objects| {
            merge(objects, CLUSTER, &json!({"spec": {"shoot": {"metadata": {"deletionTimestamp": LONG_AGO}}}}));
        };
        assert_eq!(replicas_after_late_stop(is_deleted).await, 1);
        let is_moving = |objects: &mut Objects| {
            wakes_up(objects);
            let requested = json!({"gardener.cloud/operation": "migrate"});
            merge(objects, WORKER, &json!({"metadata": {"annotations": requested}}));
        };
        assert_eq!(replicas_after_late_stop(is_moving).await, 0, "its machines are elsewhere");
        let is_another = |objects: &mut Objects| {
            wakes_up(objects);
            merge(objects, WORKER, &json!({"metadata": {"uid": "another"}}));
        };
        assert_eq!(replicas_after_late_stop(is_another).await, 0, "this may be a Worker whose machines are not back");
    }

    #[tokio::test(start_paused = true)]
    async fn machines_are_late_five_minutes_after_the_bounds_were_published_in_this_operation() {
        let (seed, context) = Seed::settled().await;
        let publish = |time: &str| seed.merge(WORKER, json!({"status": {"machineDeploymentsLastUpdateTime": time}}));
        seed.machines_fail();
        publish(LONG_AGO);
        seed.request("reconcile");
        seed.reconcile(&context).await.unwrap();
        assert_eq!(seed.state(), "Processing", "the operation has just begun: {}", seed.last("/status/lastError"));
        let late = (Timestamp::now() - jiff::SignedDuration::from_mins(6)).to_string();
        publish(&late);
        seed.reconcile(&context).await.unwrap();
        assert_eq!(seed.state(), "Error");
        assert_eq!(seed.last(PUBLISHED), late, "the operation goes on");
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_of_somebody_else_is_no_failure_and_a_refusal_is_one() {
        for (code, reason, state) in [(409, "Conflict", "Processing"), (403, "Forbidden", "Error")] {
            let (seed, context) = Seed::settled().await;
            seed.change_pool(|pool| pool["labels"] = json!({"new": "label"}));
            seed.request("reconcile");
            seed.refuse(move |line, _| (line == format!("PATCH {DEPLOYMENT}")).then_some((code, reason)));
            let requeue = seed.reconcile(&context).await.unwrap();
            assert_eq!(seed.state(), state, "{reason}: {}", seed.last("/status/lastError"));
            assert_eq!(requeue == Requeue::After(RECONCILE_INTERVAL), code == 409, "{reason}: {requeue:?}");
            seed.refuse(|_, _| None);
            seed.reconcile(&context).await.unwrap();
            seed.machines_come();
            seed.reconcile(&context).await.unwrap();
            assert_eq!(seed.state(), "Succeeded", "{reason}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_without_pools_keeps_what_was_published_and_the_time_of_that() {
        let (seed, context) = Seed::settled().await;
        seed.merge(WORKER, json!({"spec": {"pools": []}, "status": {"machineDeploymentsLastUpdateTime": LONG_AGO}}));
        seed.request("reconcile");
        seed.reconcile(&context).await.unwrap();
        assert_eq!(seed.get(DEPLOYMENT), None, "nobody wants it");
        assert_eq!(seed.last(PUBLISHED), LONG_AGO);
    }

    #[tokio::test(start_paused = true)]
    async fn an_operation_that_another_process_has_only_begun_is_published_with_a_new_time() {
        let (seed, _) = Seed::settled().await;
        let begun = json!({"type": "Reconcile", "state": "Processing", "progress": 1});
        for (last, is_new) in [(begun, true), (json!({"state": "Processing", "progress": 50}), false)] {
            seed.merge(
                WORKER,
                json!({"status": {"lastOperation": last, "machineDeploymentsLastUpdateTime": LONG_AGO}}),
            );
            seed.reconcile(&seed.controller()).await.unwrap();
            assert_eq!(seed.state(), "Succeeded");
            assert_eq!(seed.last(PUBLISHED) != LONG_AGO, is_new, "{last}");
        }
    }
}
