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

use crate::api::gardener::{Shoot, Worker};
use crate::cloud::dependency::{DependencyRequest, DependencyState};
use crate::cluster::shoot_namespace::ShootNamespace;
use crate::controller::apply::{Applied, ApplyError, apply_to_live};
use crate::controller::clean_up::clean_up;
use crate::controller::dependencies::{clean_up_cloud, keep_records};
use crate::controller::error::ReconcileError;
use crate::controller::force_deletion::mark_machines;
use crate::controller::machine_controller_manager::{self, restart_if_stuck, start_after_restore};
use crate::controller::reconcile_context::{Inputs, ReconcileContext};
use crate::controller::restore::bring_back;
use crate::controller::result::{ReconcileResult, StepTimer};
use crate::provider::{WorkerContext, WorkerError};
use crate::worker::conditions::{pool_conditions, pools_ready_since};
use crate::worker::decode;
use crate::worker::desired::{CloudView, DesiredState, Drift};
use crate::worker::events::{WorkerEvent, events};
use crate::worker::every_node_ready::{HealthCheck, every_node_ready};
use crate::worker::machine_objects::MachineObjects;
use crate::worker::orphans::MachineController;
use crate::worker::outcome::{Found, PendingDeletion, outcome};
use crate::worker::progress::{Hibernation, Progress, Stuck, progress};
use crate::worker::published::{Published, deadline, deadline_from, is_publication_due, published_at};
use crate::worker::reconcile_outcome::ReconcileOutcome;
use crate::worker::reconcile_state::ReconcileEvent;
use crate::worker::request::{Operation, requested_at};
use crate::worker::rolls::Roll;
use crate::worker::rolls_as_planned::rolls_as_planned;

/// What is to be deployed, and where that comes from.
struct Deploy<'a> {
    worker: &'a Worker,
    inputs: WorkerContext<'a>,
    dependencies: &'a DependencyState,
    desired: DesiredState<'a>,
    has_moved: bool,
    is_hibernated: bool,
    publishes_anew: bool,
    health_check: HealthCheck,
    now: Timestamp,
}

/// Deploys the machines of a Worker as far as that goes now.
///
/// # Errors
/// When something can't be read or deleted, or nothing can be planned. Errors of single pools are part of the result.
pub(crate) async fn deploy(
    context: &mut ReconcileContext<'_>,
    worker: &Worker,
    inputs: Inputs,
    now: Timestamp,
) -> Result<ReconcileResult, ReconcileError> {
    let mut steps = StepTimer::start();
    let missing = || WorkerError::ClusterMissing(context.shoot.name().to_owned());
    let (cluster, secrets) = (inputs.cluster?.ok_or_else(missing)?, inputs.secrets?);
    let has_moved = context.operation == Operation::Restore;
    // What is there decides over what is brought back after a move, so that is read anew.
    let shoot = &context.shoot;
    let live = if has_moved { shoot.read_machine_objects().await? } else { shoot.machine_objects().await? };
    steps.done("observe");
    let mut inputs = decode::context(worker, &cluster, &secrets)?;
    let dependencies = ensure_dependencies(context, &inputs, &live, has_moved).await?;
    inputs.dependencies = dependencies.dependencies.as_ref();
    steps.done("dependencies");
    let deploy = Deploy {
        worker,
        desired: desired(context, inputs, &live)?,
        inputs,
        dependencies: &dependencies,
        has_moved,
        is_hibernated: inputs.shoot.is_hibernation_wanted(),
        publishes_anew: context.state.is_beginning()
            || context.memory(|memory| memory.publication_due)
            || is_publication_due(worker, now),
        health_check: context.controller.health_check,
        now,
    };
    // What differs from a shoot that has moved is known only when its machines are back.
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
    let mut result = deploy.result(written, &followed);
    if result.outcome == ReconcileOutcome::Succeeded && dependencies.has_something {
        let published = result.published.get_or_insert_default();
        let deadline = deploy.found(&[], &followed).deadline_of_clean_up();
        let (outcome, requeue_after) = clean_up_cloud(context, &deploy.inputs, published, deadline, now).await?;
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

fn desired<'a>(
    context: &ReconcileContext<'_>,
    inputs: WorkerContext<'a>,
    live: &MachineObjects,
) -> Result<DesiredState<'a>, WorkerError> {
    let desired = DesiredState::new(context.provider, inputs, CloudView::Context)?;
    Ok(desired.with_images(context.provider, context.controller.image_policy, live))
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

/// What was written, and the machine objects after it.
struct Written {
    live: MachineObjects,
    errors: Vec<ApplyError>,
    writes: usize,
    rolls: Vec<Roll>,
}

/// How the machines stand, and what is still there although nothing needs it.
struct Followed {
    progress: Progress,
    pending_deletion: PendingDeletion,
    restarted: Option<Stuck>,
    requeue_after: Option<Duration>,
}

impl Deploy<'_> {
    /// Whether anything is to be written, to be waited for or to be reported.
    fn has_work(&self, namespace: &str, live: &MachineObjects, drift: Option<&Drift<'_>>) -> bool {
        self.is_hibernated
            || self.dependencies.records_changed
            || !drift.is_some_and(Drift::is_settled)
            || !progress(&self.desired.plan, namespace, live, Hibernation::NotWanted).is_ready()
    }

    /// Writes records of dependencies, brings machines back that have moved, and writes what differs. Client.
    async fn write<'s>(
        &'s self,
        context: &mut ReconcileContext<'_>,
        mut live: MachineObjects,
        drift: Option<Drift<'s>>,
    ) -> Result<Written, ReconcileError> {
        if self.dependencies.records_changed {
            keep_records(context, self.worker, &self.desired.provider_status()).await?;
        }
        let (shoot, garden) = (&context.shoot, &context.controller.garden);
        if self.has_moved {
            live.moved_replicas = bring_back(shoot.client(), garden, &self.inputs, &self.desired.plan, &live).await?;
        }
        if self.is_hibernated {
            mark_machines(shoot, &live.machines).await?;
        }
        let (Applied { live, errors, writes }, rolls) =
            apply_to_live(shoot, &self.desired, drift, live, self.now).await?;
        let rolls = rolls.into_iter().filter(|roll| roll.is_written(&live.deployments)).collect();
        // Machines of what is not here yet would be taken for orphans and deleted at the cloud.
        if self.has_moved && self.desired.is_complete() && errors.is_empty() {
            start_after_restore(shoot, self.inputs.shoot).await?;
        }
        Ok(Written { live, errors, writes, rolls })
    }

    /// Finds out how the machines stand, deletes what nothing needs any more, and cares for machine-controller-manager.
    /// Client.
    async fn follow(
        &self,
        context: &ReconcileContext<'_>,
        mut written: Written,
    ) -> Result<(Written, Followed), ReconcileError> {
        let shoot = &context.shoot;
        let hibernation = match self.is_hibernated {
            false => Hibernation::NotWanted,
            true if shoot.machine_controller().await? == MachineController::Stopped => Hibernation::Done,
            true => Hibernation::InProgress,
        };
        let mut progress = progress(&self.desired.plan, shoot.name(), &written.live, hibernation);
        let is_written = written.errors.is_empty();
        let pending_deletion = match is_written {
            true => {
                clean_up(shoot, &self.desired.plan, &mut progress, &mut written.live, hibernation, self.now).await?
            }
            false => PendingDeletion::default(),
        };
        let (restarted, requeue_after) = restart_if_stuck(shoot, &progress.untaken(), self.now).await;
        let is_done = progress.is_ready() && pending_deletion.is_empty() && is_written && self.desired.is_complete();
        if hibernation == Hibernation::InProgress && is_done {
            self.stop_machine_controller(shoot, &mut written.live, &mut progress).await?;
        }
        Ok((written, Followed { progress, pending_deletion, restarted, requeue_after }))
    }

    /// Stops machine-controller-manager with the shoot. Watches may be late, and it may have been started for a shoot that wakes up or
    /// is deleted: this is judged by what is there after the Deployment was read that is scaled. Client.
    async fn stop_machine_controller(
        &self,
        shoot: &ShootNamespace,
        live: &mut MachineObjects,
        progress: &mut Progress,
    ) -> Result<(), ReconcileError> {
        let Some(version) = shoot.running_machine_controller().await? else { return Ok(()) };
        *live = shoot.read_users_of_classes(take(&mut live.deployments)).await?;
        *progress = self::progress(&self.desired.plan, shoot.name(), live, Hibernation::InProgress);
        // Last, because it tells of a deletion, for which the Deployment need not change.
        let cluster = shoot.cluster(true).await?;
        let shoot_now = cluster.as_ref().and_then(|cluster| cluster.spec.shoot.as_ref());
        if progress.is_ready() && shoot_now.is_some_and(Shoot::stops_machine_controller) {
            machine_controller_manager::stop(shoot, &version).await?;
        }
        Ok(())
    }

    /// What the outcome is decided from.
    fn found<'s>(&'s self, write_errors: &'s [String], followed: &'s Followed) -> Found<'s> {
        let (worker, now) = (self.worker, self.now);
        let begun = if self.publishes_anew { Some(now) } else { published_at(worker).max(requested_at(worker)) };
        let recorded_deadline = deadline(worker).filter(|_| !self.publishes_anew);
        Found {
            plan: &self.desired.plan,
            write_errors,
            progress: &followed.progress,
            pending_deletion: &followed.pending_deletion,
            deadline: recorded_deadline.unwrap_or_else(|| deadline_from(now)),
            ready_since: pools_ready_since(&worker.status.conditions).max(begun).unwrap_or(now),
        }
    }

    /// Everything that is reported. Pure.
    fn result(&self, written: Written, followed: &Followed) -> ReconcileResult {
        let Written { live, errors, writes, rolls } = written;
        let write_errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let plan = &self.desired.plan;
        let mut events = events(self.worker, plan, &followed.progress, &rolls);
        events.extend(followed.restarted.clone().map(WorkerEvent::MachineControllerRestarted));
        let mut conditions = pool_conditions(&self.desired.plan, &write_errors, &followed.progress).to_vec();
        let present = &self.worker.status.conditions;
        let nodes = every_node_ready(&live.deployments, self.is_hibernated);
        if self.health_check.is_written_by_operations(&nodes, present) {
            conditions.push(nodes);
        }
        conditions.extend(self.desired.image_drift());
        conditions.extend(rolls_as_planned(&self.desired.context(), plan, &rolls, &live));
        let (outcome, requeue_after) = outcome(&self.found(&write_errors, followed), self.now);
        let is_outdated =
            self.desired.is_complete() && !errors.is_empty() && errors.iter().all(|error| error.source.is_outdated());
        ReconcileResult {
            published: Some(self.published(&live)),
            // A change that is stuck is checked again when its time is over, and only then.
            requeue_after: earliest([requeue_after, followed.requeue_after, self.dependencies.look_again]),
            conditions,
            events,
            is_outdated,
            writes,
            ..ReconcileResult::of(outcome)
        }
    }

    fn published(&self, live: &MachineObjects) -> Published {
        // Where no pool wants machines nothing is published, not even a time.
        let has_bounds = self.desired.plan.machines().next().is_some() || !self.desired.is_complete();
        Published {
            machine_deployments: self.desired.machine_deployments(live),
            renew_time: self.publishes_anew && has_bounds,
            provider_status: self.desired.provider_status(),
        }
    }
}

fn earliest(times: impl IntoIterator<Item = Option<Duration>>) -> Option<Duration> {
    times.into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_time_of_all_counts() {
        let [soon, late] = [5, 10].map(|seconds| Some(Duration::from_secs(seconds)));
        assert_eq!(earliest([None, late, soon]), soon);
        assert_eq!(earliest([late, None]), late);
        assert_eq!(earliest([None, None]), None);
    }
}
