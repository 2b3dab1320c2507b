//! Pure step: what the status says of a reconcile (docs/status.md).
//!
//! A status patch is a JSON merge patch, and `None` where it would change nothing.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::api::bounded_text::{Bound, joined, listed, size};
use crate::api::gardener::{ErrorCode, MachineDeploymentStatus, UpdateStrategy, Worker, WorkerPool};
use crate::pool::names::pool_prefix;
use crate::worker::conditions::{Condition, conditions_with};
use crate::worker::difference::is_same;
use crate::worker::machine_objects::{FailedMachine, MachineObjects};
use crate::worker::plan::Plan;
use crate::worker::progress::{DeploymentProgress, Progress};
use crate::worker::request::{
    Operation, answered_at, is_in_future, is_reconcile_requested, is_unanswered, requested_at,
};
use crate::worker::status_text::{MOST_OF_FAILURE, TextSize, is_same_text};

/// How long machines may take before the Worker says that they did not come.
pub const WAIT_TIMEOUT: SignedDuration = SignedDuration::from_mins(5);

/// `lastOperation.progress` of an operation that has begun and of which nothing else is known.
const PROGRESS_AT_START: i32 = 1;

/// How an operation stands at the end of a reconcile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReconcileOutcome {
    /// It has just started.
    Started,
    /// It goes on when something happens: text for people, and 0 to 100.
    Waiting(String, i32),
    /// It is done.
    Succeeded,
    /// It failed; it is tried again.
    Failed(Failure),
}

impl ReconcileOutcome {
    /// Whether the operation has ended, for now.
    fn is_end(&self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed(_))
    }
}

/// Why an operation failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// Text for people.
    pub message: String,
    /// Gardener error codes, sorted.
    pub codes: BTreeSet<ErrorCode>,
}

impl Failure {
    /// A failure without a code.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), codes: BTreeSet::new() }
    }

    /// All failures as one: texts joined, or counted where there are too many; codes united. `None` without any.
    #[must_use]
    pub fn joined(failures: Vec<Self>) -> Option<Self> {
        Self::joined_within(failures, MOST_OF_FAILURE)
    }

    /// The same in at most so many bytes.
    pub(crate) fn joined_within(failures: Vec<Self>, bytes: usize) -> Option<Self> {
        if failures.is_empty() {
            return None;
        }
        let codes = failures.iter().flat_map(|failure| &failure.codes).copied().collect();
        let messages: Vec<String> = failures.into_iter().map(|failure| failure.message).collect();
        Some(Self { message: listed(&messages, bytes), codes })
    }
}

/// Most bytes of what can't be shortened. etcd takes 1.5 MiB for the whole Worker.
const MOST_OF_PUBLISHED: usize = 1 << 20;

/// What gardenlet and the autoscaler read does not fit into a Worker, and they need all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "status.machineDeployments and status.providerStatus have {bytes} bytes, at most {MOST_OF_PUBLISHED} can be written; the \
     Worker needs fewer pools or fewer zones"
)]
pub struct PublishedTooLarge {
    /// The size of both, as JSON.
    bytes: usize,
}

/// What gardenlet and the autoscaler read besides the last operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Published {
    /// Bounds for the autoscaler.
    pub machine_deployments: Vec<MachineDeploymentStatus>,
    /// Whether gardenlet must see a new time, because an operation has begun or the bounds differ.
    pub renew_time: bool,
    /// The provider's document.
    pub provider_status: Value,
}

impl Published {
    /// Whether all of it can be written.
    ///
    /// # Errors
    /// When it is too large for a Worker.
    pub fn check_size(&self) -> Result<(), PublishedTooLarge> {
        let bytes = json!([self.machine_deployments, self.provider_status]).to_string().len();
        if bytes <= MOST_OF_PUBLISHED { Ok(()) } else { Err(PublishedTooLarge { bytes }) }
    }
}

/// The bounds that the autoscaler shall know: those of planned pools, and for pools that could not be planned those that
/// were published before. In the order of the pools. Where that makes none, what was published stays, as the Go extension
/// leaves it: without pools nothing reads the bounds.
#[must_use]
pub fn published_deployments(
    plan: &Plan,
    worker: &Worker,
    technical_id: &str,
    live: &MachineObjects,
) -> Vec<MachineDeploymentStatus> {
    let wanted = plan.wanted_deployments();
    let is_wanted = |name: &str| wanted.iter().any(|wanted| wanted.0 == name);
    let mut published = Vec::new();
    for (pool, result) in worker.spec.pools.iter().zip(&plan.pools) {
        match result {
            Ok(planned) => published.extend(planned.machines.iter().map(|machine| MachineDeploymentStatus {
                name: machine.deployment.name.0.clone(),
                minimum: machine.deployment.minimum,
                maximum: machine.deployment.maximum,
                priority: machine.deployment.priority,
            })),
            Err(_) => published.extend(
                worker
                    .status
                    .machine_deployments
                    .iter()
                    .filter(|kept| !is_wanted(&kept.name) && is_of_pool(&kept.name, pool, technical_id, live))
                    .cloned(),
            ),
        }
    }
    if published.is_empty() { worker.status.machine_deployments.clone() } else { published }
}

/// Whether a deployment belongs to the pool: by its label, or by its name where it is not there.
fn is_of_pool(deployment: &str, pool: &WorkerPool, technical_id: &str, live: &MachineObjects) -> bool {
    if let Some(labelled) = live.deployments.get(deployment).and_then(|live| live.pool()) {
        return labelled == pool.name;
    }
    let rest = deployment.strip_prefix(&pool_prefix(technical_id, &pool.name));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("-z"))
}

/// Machines that could not be made, as a failure of the whole operation in at most so many bytes: all deployments, each with
/// its pool.
#[must_use]
pub fn machine_failures(progress: &Progress, bytes: usize) -> Option<Failure> {
    type Failed<'a> = (&'a DeploymentProgress, &'a [FailedMachine]);
    let failed: Vec<Failed<'_>> = progress.failed().collect();
    if failed.is_empty() {
        return None;
    }
    let machines = failed.iter().flat_map(|(_, machines)| *machines);
    let codes = machines.flat_map(|machine| machine.codes.iter().copied()).collect();
    let begin = format!("{WAITING_FAILED}: ");
    let text_of = |(deployment, machines): &Failed<'_>, bytes| deployment.failure_text(machines, bytes);
    let rest = |rest: &[Failed<'_>]| {
        let machines: usize = rest.iter().map(|(_, machines)| machines.len()).sum();
        format!("; and {} more machine deployments with {machines} failed machines", rest.len())
    };
    let left = Bound::bytes(bytes.saturating_sub(size(&begin)));
    Some(Failure { message: format!("{begin}{}", joined(&failed, "; ", left, text_of, rest)), codes })
}

/// How a failure of waiting begins.
pub const WAITING_FAILED: &str = "failed while waiting for all machine deployments to be ready";

/// Whether gardenlet still waits for the bounds of the operation that goes on: they were published before its request, or
/// the process ended between the beginning and the publication. A reconcile that failed early leaves it to the next one.
#[must_use]
pub fn is_publication_due(worker: &Worker, now: Timestamp) -> bool {
    let requested = requested_at(worker).filter(|requested| !is_in_future(*requested, now)).map(Timestamp::as_second);
    let published = published_at(worker).map(Timestamp::as_second);
    let only_begun = worker
        .status
        .last_operation
        .as_ref()
        .is_some_and(|last| last.state == "Processing" && last.progress == PROGRESS_AT_START);
    only_begun || requested.is_some_and(|requested| published.is_none_or(|published| published < requested))
}

/// When waiting becomes an error: five minutes after the bounds were published, as recorded in the status.
#[must_use]
pub fn deadline(worker: &Worker) -> Option<Timestamp> {
    published_at(worker).map(deadline_from)
}

/// When the bounds were published last, as recorded in the status.
#[must_use]
pub fn published_at(worker: &Worker) -> Option<Timestamp> {
    worker.status.machine_deployments_last_update_time.as_deref()?.parse().ok()
}

/// When waiting that begins then becomes an error.
#[must_use]
pub fn deadline_from(begin: Timestamp) -> Timestamp {
    begin.checked_add(WAIT_TIMEOUT).unwrap_or(Timestamp::MAX)
}

/// The patch of `status` with texts of that size, or `None` when the Worker says all of it already.
#[must_use]
pub fn status_patch(
    worker: &Worker,
    operation: Operation,
    outcome: &ReconcileOutcome,
    published: Option<&Published>,
    now: Timestamp,
    texts: TextSize,
) -> Option<Value> {
    let is_awaited = is_reconcile_requested(worker) || is_unanswered(worker, now);
    let answered_at = answered_at(worker, now);
    let now = seconds(answered_at);
    let mut status = json!({});
    operation_members(worker, operation, outcome, is_awaited, &now, texts, &mut status);
    if let Some(published) = published {
        published_members(worker, published, answered_at, &mut status);
    }
    let is_empty = status.as_object().is_none_or(serde_json::Map::is_empty);
    (!is_empty).then(|| json!({ "status": status }))
}

/// What `lastOperation` and `lastError` say besides type and time.
struct OperationState {
    state: &'static str,
    progress: i32,
    description: String,
    codes: Vec<&'static str>,
}

fn operation_state(operation: Operation, outcome: &ReconcileOutcome) -> OperationState {
    let texts = texts(operation);
    let (state, progress, description) = match outcome {
        ReconcileOutcome::Started => ("Processing", PROGRESS_AT_START, texts.begun.to_owned()),
        ReconcileOutcome::Waiting(text, progress) => {
            ("Processing", (*progress).clamp(PROGRESS_AT_START + 1, 99), sentence(text))
        }
        ReconcileOutcome::Succeeded => ("Succeeded", 100, texts.succeeded.to_owned()),
        ReconcileOutcome::Failed(failure) => ("Error", 50, format!("{}: {}", texts.failed, failure.message)),
    };
    let codes = match outcome {
        ReconcileOutcome::Failed(failure) => failure.codes.iter().map(|code| code.as_str()).collect(),
        _ => Vec::new(),
    };
    OperationState { state, progress, description, codes }
}

fn operation_members(
    worker: &Worker,
    operation: Operation,
    outcome: &ReconcileOutcome,
    is_awaited: bool,
    now: &str,
    texts: TextSize,
    status: &mut Value,
) {
    let wanted = operation_state(operation, outcome);
    // A beginning is always written, and what gardenlet waits for: a time after its request.
    let is_due = is_awaited || *outcome == ReconcileOutcome::Started;
    if !is_due && is_operation_recorded(worker, operation, outcome, &wanted) {
        return;
    }
    let description = texts.text(&wanted.description);
    status["lastOperation"] = json!({
        "description": description,
        "lastUpdateTime": now,
        "progress": wanted.progress,
        "state": wanted.state,
        "type": operation.as_str(),
    });
    if outcome.is_end() {
        status["observedGeneration"] = json!(worker.metadata.generation);
    }
    match outcome {
        ReconcileOutcome::Failed(_) => {
            // Codes are a list, which a merge patch replaces as a whole; none is a null.
            let codes = if wanted.codes.is_empty() { Value::Null } else { json!(wanted.codes) };
            status["lastError"] = json!({"description": description, "codes": codes, "lastUpdateTime": now});
        }
        ReconcileOutcome::Succeeded => status["lastError"] = Value::Null,
        ReconcileOutcome::Started | ReconcileOutcome::Waiting(..) => {
            // One that older extensions wrote may leave no room.
            let last_error = worker.status.last_error.as_ref();
            if let Some(error) = last_error.filter(|error| size(&error.description) > texts.of_text()) {
                status["lastError"] = json!({"description": texts.text(&error.description)});
            }
        }
    }
}

/// Whether the status says all of it already.
fn is_operation_recorded(
    worker: &Worker,
    operation: Operation,
    outcome: &ReconcileOutcome,
    wanted: &OperationState,
) -> bool {
    let is_last_operation = worker.status.last_operation.as_ref().is_some_and(|last| {
        last.state == wanted.state
            && is_same_text(&last.description, &wanted.description)
            && last.operation_type == operation.as_str()
            && last.progress == wanted.progress
    });
    let last_error = worker.status.last_error.as_ref();
    let is_last_error = match outcome {
        ReconcileOutcome::Failed(_) => last_error.is_some_and(|error| {
            is_same_text(&error.description, &wanted.description) && error.codes.iter().eq(wanted.codes.iter())
        }),
        ReconcileOutcome::Succeeded => last_error.is_none(),
        // Until the operation ends, the last error stays for people to read.
        ReconcileOutcome::Started | ReconcileOutcome::Waiting(..) => true,
    };
    let is_observed = !outcome.is_end() || worker.status.observed_generation == worker.metadata.generation;
    is_last_operation && is_last_error && is_observed
}

fn published_members(worker: &Worker, published: &Published, now: Timestamp, status: &mut Value) {
    let bounds_differ = worker.status.machine_deployments != published.machine_deployments;
    if bounds_differ {
        status["machineDeployments"] = json!(published.machine_deployments);
    }
    if (bounds_differ || published.renew_time) && !published.machine_deployments.is_empty() {
        status["machineDeploymentsLastUpdateTime"] = json!(seconds(publication_time(worker, now)));
    }
    if let Some(document) = provider_status_patch(worker, &published.provider_status) {
        status["providerStatus"] = document;
    }
}

/// gardenlet waits until this time moves on, and it has whole seconds: two requests may come within one. A recorded time far
/// ahead means nothing.
fn publication_time(worker: &Worker, now: Timestamp) -> Timestamp {
    let next = published_at(worker).and_then(|last| last.checked_add(SignedDuration::from_secs(1)).ok());
    next.filter(|next| next.duration_since(now) <= SignedDuration::from_mins(1)).map_or(now, |next| next.max(now))
}

/// What makes `status.providerStatus` of a Worker say that; `None` when it does.
#[must_use]
pub fn provider_status_patch(worker: &Worker, wanted: &Value) -> Option<Value> {
    let previous: Value =
        worker.status.provider_status.as_ref().and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    if is_same(&previous, wanted) {
        return None;
    }
    let mut document = wanted.clone();
    // A merge patch removes what vanished only when it says so.
    if let (Value::Object(previous), Value::Object(document)) = (&previous, &mut document) {
        for member in previous.keys() {
            document.entry(member.clone()).or_insert(Value::Null);
        }
    }
    Some(document)
}

/// Adds `status.inPlaceUpdates` to a patch where it differs. A pool keeps the entry that it has, or has none, as long as
/// there are old machines that a person has to select, and while it can't be planned.
#[must_use]
pub fn with_in_place_updates(worker: &Worker, plan: &Plan, progress: &Progress, patch: Option<Value>) -> Option<Value> {
    let nothing = BTreeMap::new();
    let known = worker.status.in_place_updates.as_ref().map(|updates| &updates.worker_pool_to_hash_map);
    let known = known.unwrap_or(&nothing);
    let mut wanted = plan.in_place_updates().worker_pool_to_hash_map;
    let unselected = progress.unselected_pools();
    wanted.retain(|pool, _| !unselected.contains(&pool.as_str()));
    let in_place =
        worker.spec.pools.iter().filter(|pool| pool.update_strategy.is_some_and(UpdateStrategy::is_in_place));
    let in_place: BTreeSet<&str> = in_place.map(|pool| pool.name.as_str()).collect();
    for (pool, hash) in known {
        if in_place.contains(pool.as_str()) {
            wanted.entry(pool.clone()).or_insert_with(|| hash.clone());
        }
    }
    if wanted == *known {
        return patch;
    }
    let mut map = json!(wanted);
    for vanished in known.keys().filter(|pool| !wanted.contains_key(*pool)) {
        map[vanished] = Value::Null;
    }
    let mut patch = patch.unwrap_or_else(|| json!({"status": {}}));
    patch["status"]["inPlaceUpdates"] = json!({ "workerPoolToHashMap": map });
    Some(patch)
}

struct Texts {
    begun: &'static str,
    succeeded: &'static str,
    failed: &'static str,
}

fn texts(operation: Operation) -> Texts {
    let (begun, succeeded, failed) = match operation {
        Operation::Create | Operation::Reconcile => {
            ("Reconciling the Worker", "Successfully reconciled Worker", "Error reconciling Worker")
        }
        Operation::Delete => ("Deleting the Worker", "Successfully deleted Worker", "Error deleting Worker"),
        Operation::Migrate => {
            ("Starting migration of the Worker", "Successfully migrated Worker", "Error migrating Worker")
        }
        Operation::Restore => ("Restoring the Worker", "Successfully reconciled Worker", "Error restoring Worker"),
    };
    Texts { begun, succeeded, failed }
}

/// A text with its first letter in upper case.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Adds `status.conditions` to a patch where they differ, with texts of that size.
#[must_use]
pub fn with_conditions(
    worker: &Worker,
    conditions: &[Condition],
    now: Timestamp,
    texts: TextSize,
    patch: Option<Value>,
) -> Option<Value> {
    let Some(conditions) = conditions_with(&worker.status.conditions, conditions, &seconds(now), texts) else {
        return patch;
    };
    let mut patch = patch.unwrap_or_else(|| json!({"status": {}}));
    patch["status"]["conditions"] = conditions;
    Some(patch)
}

/// RFC 3339 in whole seconds, as Kubernetes writes times.
fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::request::TIMESTAMP_ANNOTATION;

    const NOW: &str = "2026-11-21T10:00:00Z";

    fn worker(status: Value) -> Worker {
        let document = json!({"metadata": {"generation": 3}, "spec": {"type": "azure"}, "status": status});
        serde_json::from_str(&document.to_string()).unwrap()
    }

    fn patch(status: Value, outcome: &ReconcileOutcome, published: Option<&Published>) -> Option<Value> {
        status_patch(&worker(status), Operation::Reconcile, outcome, published, NOW.parse().unwrap(), TextSize::Full)
            .map(|patch| patch["status"].clone())
    }

    fn succeeded() -> Value {
        json!({
            "observedGeneration": 3,
            "lastOperation": {
                "type": "Reconcile", "state": "Succeeded", "progress": 100,
                "description": "Successfully reconciled Worker", "lastUpdateTime": "2026-01-01T00:00:00Z",
            },
        })
    }

    #[test]
    fn an_answer_is_always_written() {
        let says = |requested: &str, annotation: Option<&str>| {
            let mut annotations = json!({ TIMESTAMP_ANNOTATION: requested });
            annotations["gardener.cloud/operation"] = json!(annotation.unwrap_or_default());
            let mut status = succeeded();
            status["lastOperation"]["lastUpdateTime"] = json!("2026-11-21T09:00:00Z");
            let document = json!({
                "metadata": {"generation": 3, "annotations": annotations}, "spec": {"type": "azure"}, "status": status,
            });
            let worker: Worker = serde_json::from_str(&document.to_string()).unwrap();
            let now = NOW.parse().unwrap();
            let patch =
                status_patch(&worker, Operation::Reconcile, &ReconcileOutcome::Succeeded, None, now, TextSize::Full);
            patch.map(|patch| patch["status"]["lastOperation"]["lastUpdateTime"].clone())
        };
        let (answered, before) = ("2026-11-21T09:00:00Z", "2026-01-01T00:00:00Z");
        assert_eq!(says(before, None), None, "it was answered long ago");
        assert_eq!(says(answered, None), None, "in that very second");
        assert_eq!(says(answered, Some("reconcile")), Some(json!(NOW)), "the request still stands");
        assert_eq!(says("2026-11-21T09:59:59Z", None), Some(json!(NOW)), "it was taken off");
        assert_eq!(says("2026-11-21T10:00:07Z", None), Some(json!("2026-11-21T10:00:07Z")), "by a clock that is ahead");
    }

    #[test]
    fn a_beginning_is_always_written() {
        let begun = patch(succeeded(), &ReconcileOutcome::Started, None).unwrap();
        assert_eq!(begun["lastOperation"]["state"], "Processing");
        assert_eq!(begun["lastOperation"]["lastUpdateTime"], NOW);
        let again = patch(json!({"lastOperation": begun["lastOperation"]}), &ReconcileOutcome::Started, None);
        assert!(again.is_some(), "gardenlet waits for a time after its request");
    }

    #[test]
    fn what_the_status_says_already_is_not_written() {
        assert_eq!(patch(succeeded(), &ReconcileOutcome::Succeeded, None), None);
        let waiting = ReconcileOutcome::Waiting("for machines".to_owned(), 40);
        let written = patch(succeeded(), &waiting, None).unwrap();
        assert_eq!(patch(written, &waiting, None), None);
    }

    #[test]
    fn an_error_has_codes_and_a_success_takes_it_away() {
        let failure = Failure { message: "pool \"b\": no".to_owned(), codes: [ErrorCode::ConfigurationProblem].into() };
        let failed = patch(json!({}), &ReconcileOutcome::Failed(failure.clone()), None).unwrap();
        assert_eq!(failed["lastError"]["codes"], json!(["ERR_CONFIGURATION_PROBLEM"]));
        assert_eq!(failed["lastError"]["description"], "Error reconciling Worker: pool \"b\": no");
        assert_eq!(failed["observedGeneration"], 3);
        assert_eq!(
            patch(failed.clone(), &ReconcileOutcome::Failed(failure), None),
            None,
            "the same error is written once"
        );
        let mended = patch(failed, &ReconcileOutcome::Succeeded, None).unwrap();
        assert_eq!(mended["lastError"], Value::Null);
        assert!(mended.as_object().unwrap().contains_key("lastError"), "a merge patch removes only with null");
    }

    #[test]
    fn gardenlet_sees_a_new_time_for_each_operation() {
        let bounds = vec![MachineDeploymentStatus { name: "a".to_owned(), minimum: 1, maximum: 2, priority: None }];
        let mut published =
            Published { machine_deployments: bounds.clone(), renew_time: true, provider_status: Value::Null };
        let mut status = succeeded();
        status["machineDeployments"] = json!(bounds);
        let begun = patch(status.clone(), &ReconcileOutcome::Succeeded, Some(&published)).unwrap();
        assert_eq!(begun, json!({"machineDeploymentsLastUpdateTime": NOW}));
        for (last, next) in [(-30, 0), (0, 1), (5, 6), (3600, 0)] {
            let after = |seconds: i64| NOW.parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds);
            status["machineDeploymentsLastUpdateTime"] = json!(after(last).to_string());
            let written = patch(status.clone(), &ReconcileOutcome::Succeeded, Some(&published)).unwrap();
            let wanted = json!({"machineDeploymentsLastUpdateTime": after(next).to_string()});
            assert_eq!(written, wanted, "two requests within a second, last published after {last} s");
        }
        published.renew_time = false;
        assert_eq!(patch(status, &ReconcileOutcome::Succeeded, Some(&published)), None);
    }

    #[test]
    fn what_failed_before_it_was_published_is_published_later() {
        let due = |requested: Option<&str>, status: Value| {
            let mut worker = worker(status);
            let annotation = requested.map(|time| (TIMESTAMP_ANNOTATION.to_owned(), time.to_owned()));
            worker.metadata.annotations = Some(annotation.into_iter().collect());
            is_publication_due(&worker, NOW.parse().unwrap())
        };
        let request = Some("2026-11-21T10:00:00.734561Z");
        let published = |time: &str| json!({"machineDeploymentsLastUpdateTime": time});
        assert!(due(request, published("2026-11-21T09:59:59Z")), "gardenlet waits for a later time");
        assert!(due(request, json!({})));
        assert!(!due(request, published("2026-11-21T10:00:00Z")), "times have whole seconds");
        assert!(!due(None, published("2026-11-21T09:00:00Z")), "nobody waits");
        let ahead = Some("2027-01-01T00:00:00Z");
        assert!(!due(ahead, published("2026-11-21T10:00:00Z")), "else each reconcile would move the deadline");
        let begun = patch(succeeded(), &ReconcileOutcome::Started, None).unwrap();
        assert!(due(None, begun), "the process ended right after the beginning");
    }

    #[test]
    fn members_that_vanish_from_the_provider_status_are_removed() {
        let mut status = succeeded();
        status["providerStatus"] = json!({"kind": "WorkerStatus", "vmoDependencies": [{"name": "v"}]});
        let published = Published { provider_status: json!({"kind": "WorkerStatus"}), ..Published::default() };
        let written = patch(status, &ReconcileOutcome::Succeeded, Some(&published)).unwrap();
        assert_eq!(written["providerStatus"], json!({"kind": "WorkerStatus", "vmoDependencies": null}));
    }

    #[test]
    fn a_shorter_status_says_the_same_and_is_not_tried_again() {
        let failure = Failure::new(format!("1200 errors occurred: [{}, and 1100 more]", "no quota ".repeat(1000)));
        let failed = ReconcileOutcome::Failed(failure);
        let now: Timestamp = NOW.parse().unwrap();
        let written = |status: Value, outcome: &ReconcileOutcome, texts: TextSize| {
            let patch = status_patch(&worker(status), Operation::Reconcile, outcome, None, now, texts);
            patch.map(|patch| patch["status"].clone())
        };
        let mut lengths = Vec::new();
        for texts in TextSize::ALL {
            let status = written(json!({}), &failed, texts).unwrap();
            let text = status["lastError"]["description"].as_str().unwrap();
            assert!(
                text.starts_with("Error reconciling Worker: 1200 errors occurred") && text.ends_with("and 1100 more]")
            );
            lengths.push(text.len());
            assert_eq!(written(status.clone(), &failed, TextSize::Full), None, "it is said in {texts:?}");
            let started = written(status, &ReconcileOutcome::Started, TextSize::Shortest).unwrap();
            let kept = started["lastError"]["description"].as_str().map_or(0, str::len);
            assert!(kept <= 256, "what is there leaves {kept} bytes of no room");
        }
        assert!(lengths.is_sorted_by(|longer, shorter| longer > shorter) && lengths[2] <= 256, "{lengths:?}");
    }

    #[test]
    fn bounds_that_do_not_fit_are_an_error_and_never_shortened() {
        let bound = |number: usize| MachineDeploymentStatus {
            name: format!("shoot--project--name-pool-{number}"),
            minimum: 1,
            maximum: 2,
            priority: None,
        };
        let published =
            |count: usize| Published { machine_deployments: (0..count).map(bound).collect(), ..Published::default() };
        assert_eq!(published(3000).check_size(), Ok(()));
        let error = published(20_000).check_size().unwrap_err().to_string();
        assert!(error.contains("status.machineDeployments") && error.contains("fewer pools"), "{error}");
    }
}
