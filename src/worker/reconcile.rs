//! One pass over a Worker that shall exist: the list of the steps. It never waits; watches bring it back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use tracing::warn;

use super::apply::{Applied, ApplyError, MachineApis, apply};
use super::changes::changes;
use super::cleanup::{Garbage, MachineController, garbage, is_being_deleted};
use super::conditions::{Fact, every_node_ready, facts_of_pools};
use super::decode;
use super::deletion::{Doomed, delete_all};
use super::dependencies::{Asked, Cloud, Provided, clean_up_cloud, keep_records};
use super::force_deletion::mark_machines;
use super::garden::Garden;
use super::live::{Digested, MachineObjects};
use super::machine_controller;
use super::observe::{self, ObserveError};
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
        source: kube::Error,
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
        source: kube::Error,
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
    let (secrets, mut live) = tokio::try_join!(observe::secrets(place.client(), worker), live)?;
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
    let apis = place.apis();
    let changes = changes(&context, &plan, &live, now);
    let rolls = rolls(&changes, &live);
    let applied = apply(&apis, changes, &live).await;
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
    let progress = progress(&plan, &applied.deployments, &live, sleep);
    let left = clean_up(place, &plan, &progress, &applied, &live).await?;
    let stuck = progress.without_machine_set(&applied.deployments);
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
    let mut published = published(&context, &plan, publishes_anew, &live);
    let write_errors: Vec<String> = applied.errors.iter().map(ToString::to_string).collect();
    let mut facts = facts_of_pools(&plan, &write_errors, &progress).to_vec();
    facts.push(every_node_ready(&applied.deployments, sleeps, |code, text| provider.error_codes(code, text)));
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

/// Deletes what nothing needs any more, once every planned machine is there. Old deployments carry the workload until
/// then.
async fn clean_up(
    place: &Place,
    plan: &Plan,
    progress: &Progress,
    applied: &Applied,
    live: &MachineObjects,
) -> Result<Left, PassError> {
    if !progress.is_ready() || !applied.errors.is_empty() {
        return Ok(Left::default());
    }
    let present = MachineObjects { deployments: applied.deployments.clone(), ..live.clone() };
    let mut found = garbage(plan, &present, MachineController::Running);
    if found.is_empty() {
        return Ok(Left::default());
    }
    let machine_controller = place.machine_controller().await?;
    if machine_controller == MachineController::Stopped {
        found = garbage(plan, &present, machine_controller);
    }
    delete_garbage(&place.apis(), &found, live).await?;
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
        let document = live.deployments.get(name).map(|live| &live.document);
        let uid = document.and_then(|document| document["metadata"]["uid"].as_str()).map(str::to_owned);
        (!document.is_some_and(is_being_deleted)).then(|| Doomed { name: name.clone(), uid })
    });
    delete_all(&apis.deployments, "MachineDeployment", deployments.collect()).await?;
    delete_all(&apis.classes, "MachineClass", doomed(&found.classes, &live.classes)).await?;
    delete_all(&apis.secrets, "Secret", doomed(&found.class_secrets, &live.class_secrets)).await
}

fn doomed<T>(names: &BTreeSet<String>, live: &BTreeMap<String, Digested<T>>) -> Vec<Doomed> {
    let seen = names.iter().map(|name| (name, live.get(name)));
    let doomed = seen.filter(|(_, object)| !object.is_some_and(Digested::is_being_deleted));
    doomed
        .map(|(name, object)| Doomed { name: name.clone(), uid: object.and_then(|object| object.metadata.uid.clone()) })
        .collect()
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
