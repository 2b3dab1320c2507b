//! One pass over a Worker that shall exist: the list of the steps. It never waits; watches bring it back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use serde_json::Value;

use super::apply::{Applied, apply};
use super::changes::{MachineChanges, changes};
use super::cleanup::{Garbage, MachineController, garbage, is_being_deleted};
use super::conditions::{Fact, every_node_ready, facts_of_pools, nothing_deployed, pools_ready_since};
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
use super::operation::{Operation, requested_at};
use super::outcome::{Found, Left, LeftDeployment, outcome};
use super::place::Place;
use super::plan::{Plan, plan};
use super::progress::{Progress, Sleep, progress};
use super::report::{
    Failure, Outcome, Published, deadline, deadline_from, is_publication_due, published_at, published_deployments,
};
use super::restore::{RestoreError, bring_back, start_machine_controller};
use super::roll::{Roll, rolls};
use super::transitions::{Transition, transitions};
use crate::api::gardener::{Cluster, ErrorCode, Worker};
use crate::provider::{Provider, WorkerContext, WorkerError};

/// Who does what a pass asks for.
#[derive(Clone, Copy)]
pub struct Hands<'a> {
    /// Where the pass reads and writes.
    pub place: &'a Place,
    /// Plans pools.
    pub provider: &'a dyn Provider,
    /// Provides what pools depend on; `None` where they depend on nothing.
    pub cloud: Option<&'a dyn Cloud>,
    /// Says that the operation begins; `None` where that has been said.
    pub opening: Option<&'a dyn Opening>,
}

/// Says that an operation begins. A pass says it before it changes anything, and not at all where nothing is to be done.
pub trait Opening: Sync {
    /// Says it.
    ///
    /// # Errors
    /// When it can't be said, or when somebody has changed the Worker since it was looked at.
    fn say(&self) -> BoxFuture<'_, Result<(), PassError>>;
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
    /// What people want to be told.
    pub transitions: Vec<Transition>,
    /// Nothing failed but what somebody else has written at the same time: the next pass sees it as it is now.
    pub is_outdated: bool,
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
            transitions: Vec::new(),
            is_outdated: false,
            writes: 0,
            steps: Vec::new(),
        }
    }

    /// A pass that could not be finished.
    #[must_use]
    pub fn failed(operation: Operation, error: &PassError) -> Self {
        let failure = error.failure();
        // What is being deleted or moves away has nothing to be deployed.
        let deploys = matches!(operation, Operation::Create | Operation::Reconcile | Operation::Restore);
        let facts = deploys.then(|| nothing_deployed(&failure.message, failure.codes.clone()));
        let (facts, is_outdated) = (facts.into_iter().collect(), error.is_outdated());
        Self { facts, is_outdated, ..Self::ended(Outcome::Failed(failure)) }
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
    /// The Worker is not as it was looked at: the pass was about something else.
    #[error("somebody else has changed the Worker meanwhile")]
    Overtaken,
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
            Self::Observe(_) | Self::Restore(_) | Self::Delete { .. } | Self::Write { .. } | Self::Overtaken => {
                Default::default()
            }
        };
        Failure { message: self.to_string(), codes }
    }

    /// Whether somebody else has written an object since it was seen.
    fn is_outdated(&self) -> bool {
        match self {
            Self::Overtaken => true,
            Self::Delete { source, .. } | Self::Write { source, .. } => source.is_outdated(),
            Self::Observe(_) | Self::Worker(_) | Self::Restore(_) => false,
        }
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
    let Hands { place, provider, cloud, opening } = hands;
    let cluster = cluster?.ok_or_else(|| WorkerError::ClusterMissing { cluster: place.namespace().to_owned() })?;
    let mut steps = Steps::start();
    let publishes_anew = begins || is_publication_due(worker);
    // What is there decides over what is brought back.
    let live =
        async { if moved.is_some() { place.machine_objects_anew().await } else { place.machine_objects().await } };
    let (secrets, mut live) = tokio::try_join!(place.secrets(worker, false), live)?;
    steps.done("observe");
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
    let sleeps = context.shoot.is_hibernation_wanted();
    let unmoved = moved.is_none().then(|| changes(&context, &plan, &live, now));
    steps.done("plan");
    if let Some(opening) = opening {
        let depends = provided.records_changed || provided.has_something;
        let differs = unmoved.as_ref().is_none_or(|changes| changes.iter().any(MachineChanges::is_to_write));
        if sleeps || depends || differs || !is_settled(&plan, place.namespace(), &live) {
            opening.say().await?;
            steps.done("opening");
        }
    }
    if provided.records_changed {
        keep_records(place, worker, &plan).await?;
    }
    if let Some(garden) = moved {
        live.moved_replicas = bring_back(place.client(), garden, &context, &plan, &live).await?;
    }
    if sleeps {
        mark_machines(place, &live.machines).await?;
    }
    let first = unmoved.unwrap_or_else(|| changes(&context, &plan, &live, now));
    let (Applied { mut live, errors, writes }, rolls) =
        apply_to_present(place, &context, &plan, first, live, now).await?;
    let rolls: Vec<Roll> = rolls.into_iter().filter(|roll| roll.is_written(&live.deployments)).collect();
    // Machines of what is not here yet would be taken for orphans and deleted at the cloud.
    let is_all_back = plan.unplanned().next().is_none() && errors.is_empty();
    if moved.is_some() && is_all_back {
        start_machine_controller(place, context.shoot).await?;
    }
    steps.done("apply");
    let sleep = match sleeps {
        false => Sleep::Unwanted,
        true if place.machine_controller().await? == MachineController::Stopped => Sleep::Asleep,
        true => Sleep::FallsAsleep,
    };
    let mut progress = progress(&plan, place.namespace(), &live, sleep);
    let left = match errors.is_empty() {
        true => clean_up(place, &plan, &mut progress, &mut live, sleep, now).await?,
        false => Left::default(),
    };
    let (restarted, restart_in) = machine_controller::restart_if_stuck(place, &progress.untaken(), now).await;
    let is_done = progress.is_ready() && left.is_empty() && errors.is_empty();
    if sleeps && is_done && plan.unplanned().next().is_none() {
        machine_controller::scale(place, MachineController::Stopped).await?;
    }
    steps.done("clean-up");
    let mut published = published(&context, &plan, publishes_anew, &live);
    let write_errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let codes_of = |code: Option<&str>, text: &str| provider.error_codes(code, text);
    let mut transitions = transitions(worker, &plan, &progress, &rolls, codes_of);
    transitions.extend(restarted.map(Transition::MachineControllerRestarted));
    let mut facts = facts_of_pools(&plan, &write_errors, &progress, codes_of).to_vec();
    facts.push(every_node_ready(&live.deployments, sleeps, codes_of));
    let begun = if publishes_anew { Some(now) } else { published_at(worker).max(requested_at(worker)) };
    let found = Found {
        plan: &plan,
        write_errors: &write_errors,
        progress: &progress,
        left: &left,
        deadline: if publishes_anew {
            deadline_from(now)
        } else {
            deadline(worker).unwrap_or_else(|| deadline_from(now))
        },
        ready_since: pools_ready_since(&worker.status.conditions).max(begun).unwrap_or(now),
    };
    let (mut outcome, mut look_again) = outcome(&found, codes_of, now);
    let is_outdated = plan.unplanned().next().is_none()
        && !errors.is_empty()
        && errors.iter().all(|error| error.source.is_outdated());
    if let (Outcome::Succeeded, Some(cloud)) = (&outcome, cloud.filter(|_| provided.has_something)) {
        (outcome, look_again) =
            clean_up_cloud(cloud, place, &context, &mut published, found.deadline_of_clean_up(), now).await?;
        steps.done("clean-up-cloud");
    }
    Ok(Pass {
        outcome,
        published: Some(published),
        plan: Some(plan),
        // A change that is stuck is looked at again when its time is over, and only then.
        look_again: [look_again, restart_in, provided.look_again].into_iter().flatten().min(),
        progress: Some(progress),
        facts,
        transitions,
        is_outdated,
        writes,
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

/// Whether all pools are planned, their machines are there, and nothing is there that no pool wants.
fn is_settled(plan: &Plan, namespace: &str, live: &MachineObjects) -> bool {
    plan.unplanned().next().is_none()
        && progress(plan, namespace, live, Sleep::Unwanted).is_ready()
        && garbage(plan, live, MachineController::Running).is_empty()
}

/// Writes what differs from the live objects, which is `first`; again, after a look at them as they are now, where somebody
/// else was faster. Tells besides whose machines are replaced from now on.
async fn apply_to_present<'a>(
    place: &Place,
    context: &WorkerContext<'_>,
    plan: &'a Plan,
    first: Vec<MachineChanges<'a>>,
    live: MachineObjects,
    now: Timestamp,
) -> Result<(Applied, Vec<Roll>), ObserveError> {
    let (apis, moved_replicas) = (place.apis(), live.moved_replicas.clone());
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
/// then. Where that is to be decided, `progress` and `live` are brought up to date.
async fn clean_up(
    place: &Place,
    plan: &Plan,
    progress: &mut Progress,
    live: &mut MachineObjects,
    sleep: Sleep,
    now: Timestamp,
) -> Result<Left, PassError> {
    if !progress.is_ready() || garbage(plan, live, MachineController::Running).is_empty() {
        return Ok(Left::default());
    }
    let machine_controller = place.machine_controller().await?;
    let mut found = garbage(plan, live, machine_controller);
    if found.is_to_delete(live) {
        // What is deleted is gone for good: it is judged by what is there now, not by what watches have shown.
        *live = place.users_of_classes_anew().await?;
        *progress = self::progress(plan, place.namespace(), live, sleep);
        if !progress.is_ready() {
            return Ok(Left::default());
        }
        found = garbage(plan, live, machine_controller);
        delete_garbage(&place.apis(), &found, live).await?;
    }
    Ok(match machine_controller {
        MachineController::Stopped => Left::default(),
        MachineController::Running => left(found, live, now),
    })
}

/// What stays for a while after it was asked to go.
fn left(found: Garbage, live: &MachineObjects, now: Timestamp) -> Left {
    let deployments = found.deployments.into_iter().map(|name| {
        let object = live.deployments.get(&name).map(|live| &live.object);
        let asked = object.and_then(|object| object.metadata.deletion_timestamp.as_ref()).map(|time| time.0);
        let failed_machines = object.map(|object| object.status.failed_machines.clone()).unwrap_or_default();
        LeftDeployment { name, since: asked.unwrap_or(now), failed_machines }
    });
    Left { deployments: deployments.collect(), classes: found.classes_in_use.into_iter().collect() }
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

/// How often in one pass somebody else may be faster.
const MOST_CONFLICTS: usize = 4;
