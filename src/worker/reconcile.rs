//! One pass over a Worker that shall exist: the list of the steps. It never waits; watches bring it back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kube::api::{DeleteParams, Preconditions};

use super::apply::{Applied, ApplyError, MachineApis, apply};
use super::changes::changes;
use super::cleanup::{Garbage, MachineController, garbage, is_being_deleted};
use super::decode;
use super::garden::Garden;
use super::live::{Digested, MachineObjects};
use super::observe::{self, ObserveError};
use super::place::Place;
use super::plan::{Plan, plan};
use super::progress::{Progress, progress};
use super::report::{
    Failure, Outcome, Published, deadline, is_publication_due, machine_failures, published_deployments,
};
use super::restore::{RestoreError, bring_back, start_machine_controller};
use crate::api::gardener::{Cluster, ErrorCode, Worker};
use crate::provider::{Provider, WorkerContext, WorkerError};

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
    /// Machine objects that were written.
    pub writes: usize,
    /// What the steps took, by name.
    pub steps: Vec<(&'static str, Duration)>,
}

impl Pass {
    /// A pass of which there is nothing to say but its outcome.
    #[must_use]
    pub fn ended(outcome: Outcome) -> Self {
        Self { outcome, published: None, plan: None, look_again: None, progress: None, writes: 0, steps: Vec::new() }
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
    place: &Place,
    provider: &dyn Provider,
    worker: &Worker,
    cluster: Result<Option<Arc<Cluster>>, ObserveError>,
    begins: bool,
    moved: Option<&Garden>,
    now: Timestamp,
) -> Result<Pass, PassError> {
    let cluster = cluster?.ok_or_else(|| WorkerError::ClusterMissing { cluster: place.namespace().to_owned() })?;
    let mut steps = Steps::start();
    let publishes_anew = begins || is_publication_due(worker);
    // What is there decides over what is brought back.
    let live =
        async { if moved.is_some() { place.machine_objects_anew().await } else { place.machine_objects().await } };
    let (secrets, mut live) = tokio::try_join!(observe::secrets(place.client(), worker), live)?;
    let context = decode::context(worker, &cluster, &secrets)?;
    let plan = plan(provider, context)?;
    if let Some(garden) = moved {
        live.moved_replicas = bring_back(place.client(), garden, &context, &plan, &live).await?;
    }
    let apis = place.apis();
    let applied = apply(&apis, changes(&context, &plan, &live, now), &live).await;
    // Machines of what is not here yet would be taken for orphans and deleted at the cloud.
    let is_all_back = plan.errors().next().is_none() && applied.errors.is_empty();
    if moved.is_some() && is_all_back {
        start_machine_controller(place, context.shoot).await?;
    }
    steps.done("apply");
    let progress = progress(&plan, &applied.deployments, &live, context.shoot.is_hibernation_wanted());
    let left = clean_up(place, &plan, &progress, &applied, &live).await?;
    steps.done("clean-up");
    let published = published(&context, &plan, publishes_anew, &live);
    let (outcome, look_again) = outcome(provider, &context, &plan, &applied, &progress, &left, publishes_anew, now);
    Ok(Pass {
        outcome,
        published: Some(published),
        plan: Some(plan),
        look_again,
        progress: Some(progress),
        writes: applied.writes,
        steps: steps.taken,
    })
}

fn published(context: &WorkerContext<'_>, plan: &Plan, renew_time: bool, live: &MachineObjects) -> Published {
    // Where no pool wants machines nothing is published, not even a time.
    let has_bounds = plan.machines().next().is_some() || plan.errors().next().is_some();
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
    for name in &found.deployments {
        let document = live.deployments.get(name).map(|live| &live.document);
        if !document.is_some_and(is_being_deleted) {
            let uid = document.and_then(|document| document["metadata"]["uid"].as_str()).map(str::to_owned);
            let deleted = apis.deployments.delete(name, &of_uid(uid)).await;
            ignore_gone(deleted, "MachineDeployment", name)?;
        }
    }
    for name in &found.classes {
        let class = live.classes.get(name);
        if !class.is_some_and(Digested::is_being_deleted) {
            let uid = class.and_then(|class| class.metadata.uid.clone());
            ignore_gone(apis.classes.delete(name, &of_uid(uid)).await, "MachineClass", name)?;
        }
    }
    for name in &found.class_secrets {
        let secret = live.class_secrets.get(name);
        if !secret.is_some_and(Digested::is_being_deleted) {
            let uid = secret.and_then(|secret| secret.metadata.uid.clone());
            ignore_gone(apis.secrets.delete(name, &of_uid(uid)).await, "Secret", name)?;
        }
    }
    Ok(())
}

/// Deletes the object that was seen, not one that was made under the same name since.
fn of_uid(uid: Option<String>) -> DeleteParams {
    match uid {
        None => DeleteParams::default(),
        Some(uid) => DeleteParams::default().preconditions(Preconditions { uid: Some(uid), resource_version: None }),
    }
}

/// Takes "not found" for done.
pub(super) fn ignore_gone<T>(result: Result<T, kube::Error>, kind: &'static str, name: &str) -> Result<(), PassError> {
    match result {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(source) => Err(PassError::Delete { kind, name: name.to_owned(), source }),
    }
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
    let mut failures: Vec<Failure> = plan
        .errors()
        .map(|error| Failure { message: error.to_string(), codes: error.problem.code().into_iter().collect() })
        .collect();
    failures.extend(applied.errors.iter().map(|error: &ApplyError| Failure::new(error.to_string())));
    failures.extend(machine_failures(progress, |code, text| provider.error_codes(code, text)));
    let waiting = waiting_text(progress, left);
    let deadline = if publishes_anew { None } else { deadline(context.worker) };
    let patience = deadline.map(|deadline| deadline.duration_since(now));
    if let Some(text) = waiting.as_ref().filter(|_| failures.is_empty()) {
        if patience.is_none_or(|patience| patience.is_positive()) {
            let percentage = 10 + progress.percentage() * 8 / 10;
            let wait = patience.and_then(|patience| Duration::try_from(patience).ok());
            return (Outcome::Waiting(text.clone(), percentage), wait.or(Some(PATIENCE_OF_A_NEW_OPERATION)));
        }
        failures.push(Failure::new(text.clone()));
    }
    match Failure::joined(failures) {
        Some(failure) => (Outcome::Failed(failure), None),
        None => (Outcome::Succeeded, None),
    }
}

/// How long machines may take, from the beginning of the operation.
const PATIENCE_OF_A_NEW_OPERATION: Duration = Duration::from_secs(5 * 60);

fn waiting_text(progress: &Progress, left: &Left) -> Option<String> {
    if !progress.is_ready() {
        return Some(progress.waiting_text());
    }
    if let Some(name) = left.deployments.first() {
        return Some(format!("at least one unwanted machine deployment ({name}) still exists"));
    }
    left.classes.first().map(|name| format!("Waiting until no machine uses the old machine class {name}"))
}
