//! One pass over a Worker that shall exist: the list of the steps. It never waits; watches bring it back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use serde_json::Value;

use tracing::warn;

use super::apply::{Applied, ApplyError, apply};
use super::changes::changes;
use super::cleanup::{Garbage, MachineController, garbage, is_being_deleted};
use super::conditions::{Fact, every_node_ready, facts_of_pools};
use super::decode;
use super::deletion::delete_all;
use super::dependencies::{Asked, Cloud, Provided, clean_up_cloud, keep_records};
use super::force_deletion::mark_machines;
use super::garden::Garden;
use super::live::{Digested, MachineObjects};
use super::machine_apis::{MachineApis, WriteError};
use super::machine_controller;
use super::mirror::DeploymentText;
use super::observe::ObserveError;
use super::place::Place;
use super::plan::{Plan, plan};
use super::progress::{Progress, Sleep, Stuck, progress};
use super::report::{
    Failure, Outcome, Published, deadline, is_publication_due, machine_failures, published_deployments,
};
use super::restore::{RestoreError, bring_back, start_machine_controller};
use super::roll::{Roll, rolls};
use crate::api::gardener::{Cluster, ErrorCode, Worker};
use crate::provider::{PoolError, Provider, WorkerContext, WorkerError};

/// Who does what a pass asks for.
#[derive(Clone, Copy)]
pub struct Hands<'a> {
    /// Where the pass reads and writes.
    pub place: &'a Place,
    /// Plans pools.
    pub provider: &'a dyn Provider,
    /// Provides what pools depend on; `None` where they depend on nothing.
    pub cloud: Option<&'a dyn Cloud>,
}

/// What one pass over a Worker has found and done.
pub struct Pass {
    /// How the operation stands.
    pub outcome: Outcome,
    /// What the status shall say besides; absent when nothing could be planned.
    pub published: Option<Published>,
    /// The plan; absent when nothing could be planned.
    pub plan: Option<Plan>,
    /// When to look again even if nothing happens.
    pub look_again: Option<Duration>,
    /// How the machines stand; absent when it was not looked at.
    pub progress: Option<Progress>,
    /// Facts for the conditions; those that were not looked at are left out.
    pub facts: Vec<Fact>,
    /// Deployments whose machines are replaced from this pass on.
    pub rolls: Vec<Roll>,
    /// For which change machine-controller-manager was started anew.
    pub restarted: Option<Stuck>,
    /// Machine objects that were written.
    pub writes: usize,
    /// What the steps took, by name.
    pub steps: Vec<(&'static str, Duration)>,
}

impl Pass {
    /// A pass of which there is nothing to say but its outcome.
    #[must_use]
    pub fn ended(outcome: Outcome) -> Self {
        Self {
            outcome,
            published: None,
            plan: None,
            look_again: None,
            progress: None,
            facts: Vec::new(),
            rolls: Vec::new(),
            restarted: None,
            writes: 0,
            steps: Vec::new(),
        }
    }
}

/// Takes the time of each step.
struct Steps {
    taken: Vec<(&'static str, Duration)>,
    since: Instant,
}

impl Steps {
    fn start() -> Self {
        Self { taken: Vec::new(), since: Instant::now() }
    }

    fn done(&mut self, step: &'static str) {
        let now = Instant::now();
        self.taken.push((step, now.duration_since(self.since)));
        self.since = now;
    }
}

/// Why a pass could not be finished.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    /// Something can't be read.
    #[error(transparent)]
    Observe(#[from] ObserveError),
    /// No pool can be planned.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// Something can't be deleted.
    #[error("{kind} {name:?} can't be deleted: {source}")]
    Delete {
        /// Kind of the object.
        kind: &'static str,
        /// Name of the object.
        name: String,
        /// Why.
        source: WriteError,
    },
    /// The machines of a shoot that has moved can't be had or made.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// Something can't be changed.
    #[error("{what} can't be written: {source}")]
    Write {
        /// What was written.
        what: String,
        /// Why.
        source: WriteError,
    },
}

impl PassError {
    /// The error as the failure of an operation.
    #[must_use]
    pub fn failure(&self) -> Failure {
        let codes = match self {
            Self::Worker(error) => error.code().into_iter().collect(),
            Self::Observe(ObserveError::Cluster { .. }) => [ErrorCode::ConfigurationProblem].into(),
            Self::Observe(_) | Self::Restore(_) | Self::Delete { .. } | Self::Write { .. } => Default::default(),
        };
        Failure { message: self.to_string(), codes }
    }
}

/// One pass: observe, decode, plan, apply, follow, clean up. `cluster` is what was found when the Worker was looked at. Where
/// the shoot has `moved` here, its machines are brought back first, from the garden if need be.
///
/// # Errors
/// When something can't be read or deleted, or nothing can be planned. Errors of single pools are part of the outcome.
pub async fn reconcile(
    hands: Hands<'_>,
    worker: &Worker,
    cluster: Result<Option<Arc<Cluster>>, ObserveError>,
    begins: bool,
    moved: Option<&Garden>,
    now: Timestamp,
) -> Result<Pass, PassError> {
    let Hands { place, provider, cloud } = hands;
    let cluster = cluster?.ok_or_else(|| WorkerError::ClusterMissing { cluster: place.namespace().to_owned() })?;
    let mut steps = Steps::start();
    let publishes_anew = begins || is_publication_due(worker);
    // What is there decides over what is brought back.
    let live =
        async { if moved.is_some() { place.machine_objects_anew().await } else { place.machine_objects().await } };
    let (secrets, mut live) = tokio::try_join!(place.secrets(worker, begins), live)?;
    let mut context = decode::context(worker, &cluster, &secrets)?;
    let provided = match cloud {
        Some(cloud) => {
            cloud.provide(Asked { context: &context, live: &live, begins, has_moved: moved.is_some() }).await?
        }
        None => Provided::default(),
    };
    context.dependencies = provided.dependencies.as_ref();
    steps.done("dependencies");
    let plan = plan(provider, context)?;
    if provided.records_changed {
        keep_records(place, worker, &plan).await?;
    }
    if let Some(garden) = moved {
        live.moved_replicas = bring_back(place.client(), garden, &context, &plan, &live).await?;
    }
    let sleeps = context.shoot.is_hibernation_wanted();
    if sleeps {
        mark_machines(place, &live.machines).await?;
    }
    let (applied, rolls) = apply_to_present(place, &context, &plan, live, now).await?;
    // Machines of what is not here yet would be taken for orphans and deleted at the cloud.
    let is_all_back = plan.unplanned().next().is_none() && applied.errors.is_empty();
    if moved.is_some() && is_all_back {
        start_machine_controller(place, context.shoot).await?;
    }
    steps.done("apply");
    let sleep = match sleeps {
        false => Sleep::Unwanted,
        true if place.machine_controller().await? == MachineController::Stopped => Sleep::Asleep,
        true => Sleep::FallsAsleep,
    };
    let mut progress = progress(&plan, &applied.live.deployments, &applied.live, sleep);
    let left = match applied.errors.is_empty() {
        true => clean_up(place, &plan, &mut progress, &applied.live, sleep).await?,
        false => Left::default(),
    };
    let stuck = progress.without_machine_set(&applied.live.deployments);
    let restart_in = stuck.as_ref().map(|stuck| until(stuck.since, machine_controller::PATIENCE, now));
    let restarted = match &stuck {
        // What fails here must not hide what the pools wait for.
        Some(stuck) if restart_in == Some(Duration::ZERO) => {
            machine_controller::restart_stuck(place, stuck).await.unwrap_or_else(|error| {
                warn!(%error, "machine-controller-manager can't be started anew");
                false
            })
        }
        _ => false,
    };
    let is_done = progress.is_ready() && left.is_empty() && applied.errors.is_empty();
    if sleeps && is_done && plan.unplanned().next().is_none() {
        machine_controller::scale(place, MachineController::Stopped).await?;
    }
    steps.done("clean-up");
    let mut published = published(&context, &plan, publishes_anew, &applied.live);
    let write_errors: Vec<String> = applied.errors.iter().map(ToString::to_string).collect();
    let mut facts = facts_of_pools(&plan, &write_errors, &progress).to_vec();
    facts.push(every_node_ready(&applied.live.deployments, sleeps, |code, text| provider.error_codes(code, text)));
    let (mut outcome, mut look_again) =
        outcome(provider, &context, &plan, &applied, &progress, &left, publishes_anew, now);
    if let (Outcome::Succeeded, Some(cloud)) = (&outcome, cloud.filter(|_| provided.has_something)) {
        (outcome, look_again) = clean_up_cloud(cloud, place, &context, &mut published).await?;
        steps.done("clean-up-cloud");
    }
    Ok(Pass {
        outcome,
        published: Some(published),
        plan: Some(plan),
        // A change that is stuck is looked at again when its time is over, and only then.
        look_again: [look_again, restart_in.filter(|wait| !wait.is_zero()), provided.look_again]
            .into_iter()
            .flatten()
            .min(),
        progress: Some(progress),
        facts,
        rolls,
        restarted: restarted.then_some(stuck).flatten(),
        writes: applied.writes,
        steps: steps.taken,
    })
}

fn published(context: &WorkerContext<'_>, plan: &Plan, renew_time: bool, live: &MachineObjects) -> Published {
    // Where no pool wants machines nothing is published, not even a time.
    let has_bounds = plan.machines().next().is_some() || plan.unplanned().next().is_some();
    Published {
        machine_deployments: published_deployments(plan, context.worker, &context.shoot.status.technical_id, live),
        renew_time: renew_time && has_bounds,
        provider_status: plan.provider_status.clone(),
    }
}

/// What is still there although nothing wants it.
#[derive(Debug, Default)]
struct Left {
    /// Deployments that are being deleted.
    deployments: Vec<String>,
    /// Classes that old machine sets or machines still use.
    classes: Vec<String>,
}

impl Left {
    fn is_empty(&self) -> bool {
        self.deployments.is_empty() && self.classes.is_empty()
    }
}

/// How long until that long after a time; zero when it is over.
fn until(since: Timestamp, patience: SignedDuration, now: Timestamp) -> Duration {
    let end = since.checked_add(patience).unwrap_or(Timestamp::MAX);
    Duration::try_from(end.duration_since(now)).unwrap_or(Duration::ZERO)
}

/// Writes what differs from the live objects; again, after a look at them as they are now, where somebody else was faster.
/// Tells besides whose machines are replaced from now on.
async fn apply_to_present(
    place: &Place,
    context: &WorkerContext<'_>,
    plan: &Plan,
    live: MachineObjects,
    now: Timestamp,
) -> Result<(Applied, Vec<Roll>), ObserveError> {
    let (apis, moved_replicas) = (place.apis(), live.moved_replicas.clone());
    let first = changes(context, plan, &live, now);
    let mut begun = rolls(&first, &live);
    let mut applied = apply(&apis, first, live).await;
    for _ in 0..MOST_CONFLICTS {
        if !applied.is_outdated() {
            break;
        }
        let live = MachineObjects { moved_replicas: moved_replicas.clone(), ..place.machine_objects_anew().await? };
        let (writes, changes) = (applied.writes, changes(context, plan, &live, now));
        for roll in rolls(&changes, &live) {
            if !begun.contains(&roll) {
                begun.push(roll);
            }
        }
        applied = apply(&apis, changes, live).await;
        applied.writes += writes;
    }
    Ok((applied, begun))
}

/// Deletes what nothing needs any more, once every planned machine is there. Old deployments carry the workload until
/// then.
async fn clean_up(
    place: &Place,
    plan: &Plan,
    progress: &mut Progress,
    live: &MachineObjects,
    sleep: Sleep,
) -> Result<Left, PassError> {
    if !progress.is_ready() || garbage(plan, live, MachineController::Running).is_empty() {
        return Ok(Left::default());
    }
    let machine_controller = place.machine_controller().await?;
    let mut found = garbage(plan, live, machine_controller);
    if found.is_to_delete(live) {
        // What is deleted is gone for good: it is judged by what is there now, not by what watches have shown.
        let live = place.users_of_classes_anew().await?;
        *progress = self::progress(plan, &live.deployments, &live, sleep);
        if !progress.is_ready() {
            return Ok(Left::default());
        }
        found = garbage(plan, &live, machine_controller);
        delete_garbage(&place.apis(), &found, &live).await?;
    }
    Ok(match machine_controller {
        MachineController::Stopped => Left::default(),
        MachineController::Running => Left {
            deployments: found.deployments.into_iter().collect(),
            classes: found.classes_in_use.into_iter().collect(),
        },
    })
}

async fn delete_garbage(apis: &MachineApis, found: &Garbage, live: &MachineObjects) -> Result<(), PassError> {
    let deployments = found.deployments.iter().filter_map(|name| {
        let deployment = live.deployments.get(name).filter(|deployment| !is_being_deleted(&deployment.document))?;
        Some((name.as_str(), deployment.object.metadata.uid.as_deref()))
    });
    delete_all::<DeploymentText>(apis, deployments.collect()).await?;
    let classes = Digested::still_to_delete(&live.classes, |name| found.classes.contains(name));
    delete_all::<Digested<Value>>(apis, classes).await?;
    let secrets = Digested::still_to_delete(&live.class_secrets, |name| found.class_secrets.contains(name));
    delete_all::<Digested<Secret>>(apis, secrets).await
}

/// How the operation stands: errors first, then what is waited for.
#[expect(clippy::too_many_arguments, reason = "the sum of a pass")]
fn outcome(
    provider: &dyn Provider,
    context: &WorkerContext<'_>,
    plan: &Plan,
    applied: &Applied,
    progress: &Progress,
    left: &Left,
    publishes_anew: bool,
    now: Timestamp,
) -> (Outcome, Option<Duration>) {
    let failure = |error: &PoolError| Failure {
        message: error.to_string(),
        codes: error.problem.code_when_late().into_iter().collect(),
    };
    let mut failures: Vec<Failure> = plan.errors().map(failure).collect();
    failures.extend(applied.errors.iter().map(|error: &ApplyError| Failure::new(error.to_string())));
    failures.extend(machine_failures(progress, |code, text| provider.error_codes(code, text)));
    let waiting = waiting_text(progress, left).map(Failure::new);
    let waiting = Failure::joined(plan.awaited().map(failure).chain(waiting).collect());
    let deadline = if publishes_anew { None } else { deadline(context.worker) };
    let patience = deadline.map(|deadline| deadline.duration_since(now));
    if let Some(waiting) = waiting.filter(|_| failures.is_empty()) {
        if patience.is_none_or(|patience| patience.is_positive()) {
            let percentage = 10 + progress.percentage() * 8 / 10;
            let wait = patience.and_then(|patience| Duration::try_from(patience).ok());
            return (Outcome::Waiting(waiting.message, percentage), wait.or(Some(PATIENCE_OF_A_NEW_OPERATION)));
        }
        failures.push(waiting);
    }
    match Failure::joined(failures) {
        Some(failure) => (Outcome::Failed(failure), None),
        None => (Outcome::Succeeded, None),
    }
}

/// How often in one pass somebody else may be faster.
const MOST_CONFLICTS: usize = 4;

/// How long machines may take, from the beginning of the operation.
pub(super) const PATIENCE_OF_A_NEW_OPERATION: Duration = Duration::from_secs(5 * 60);

fn waiting_text(progress: &Progress, left: &Left) -> Option<String> {
    if !progress.is_ready() {
        return Some(progress.waiting_text());
    }
    if let Some(name) = left.deployments.first() {
        return Some(format!("at least one unwanted machine deployment ({name}) still exists"));
    }
    left.classes.first().map(|name| format!("Waiting until no machine uses the old machine class {name}"))
}
