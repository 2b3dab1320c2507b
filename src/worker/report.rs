//! Pure step: what status says of a pass (spec/azure-worker.md sections 2.3 and 14).
//!
//! A status patch is a JSON merge patch, and `None` where it would change nothing.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::conditions::{Fact, conditions_with};
use super::difference::is_same;
use super::live::MachineObjects;
use super::operation::{Operation, answered_at, is_reconcile_asked, is_unanswered, requested_at};
use super::plan::Plan;
use super::progress::{Progress, failed_machines_text};
use crate::api::gardener::{ErrorCode, MachineDeploymentStatus, UpdateStrategy, Worker, WorkerPool};
use crate::pool::names::pool_prefix;

/// How long machines may take before the Worker says that they did not come.
pub const PATIENCE: SignedDuration = SignedDuration::from_mins(5);

/// `lastOperation.progress` of an operation that has begun and of which nothing else is known.
const PROGRESS_OF_A_BEGINNING: i32 = 1;

/// How an operation stands at the end of a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has just begun.
    Begun,
    /// It goes on when something happens: text for people, and 0 to 100.
    Waiting(String, i32),
    /// It is done.
    Succeeded,
    /// It failed; it is tried again.
    Failed(Failure),
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

    /// All failures as one: texts joined, codes united. `None` without any.
    #[must_use]
    pub fn joined(failures: Vec<Self>) -> Option<Self> {
        failures.into_iter().reduce(|mut all, next| {
            all.message.push_str("; ");
            all.message.push_str(&next.message);
            all.codes.extend(next.codes);
            all
        })
    }
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

/// Machines that could not be made, as a failure of the whole operation: all deployments, each with its pool.
#[must_use]
pub fn machine_failures(
    progress: &Progress,
    codes_of: impl Fn(Option<&str>, &str) -> BTreeSet<ErrorCode>,
) -> Option<Failure> {
    let failures = progress.failed().map(|(deployment, machines)| Failure {
        message: format!("{} (pool {:?})", failed_machines_text(machines), deployment.pool),
        codes: machines
            .iter()
            .flat_map(|machine| codes_of(machine.error_code.as_deref(), &machine.description))
            .collect(),
    });
    let failure = Failure::joined(failures.collect())?;
    Some(Failure { message: format!("{WAITING_FAILED}: {}", failure.message), ..failure })
}

/// How a failure of waiting begins.
pub const WAITING_FAILED: &str = "failed while waiting for all machine deployments to be ready";

/// Whether gardenlet still waits for the bounds of the operation that goes on: they were published before its request, or
/// the process ended between the beginning and the publication. A pass that failed early leaves it to the next one.
#[must_use]
pub fn is_publication_due(worker: &Worker) -> bool {
    let requested = requested_at(worker).map(Timestamp::as_second);
    let published = published_at(worker).map(Timestamp::as_second);
    let only_begun = worker
        .status
        .last_operation
        .as_ref()
        .is_some_and(|last| last.state == "Processing" && last.progress == PROGRESS_OF_A_BEGINNING);
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
    begin.checked_add(PATIENCE).unwrap_or(Timestamp::MAX)
}

/// The patch of `status`, or `None` when the Worker says all of it already.
#[must_use]
pub fn status_patch(
    worker: &Worker,
    operation: Operation,
    outcome: &Outcome,
    published: Option<&Published>,
    now: Timestamp,
) -> Option<Value> {
    let is_awaited = is_reconcile_asked(worker) || is_unanswered(worker, now);
    let now = seconds(answered_at(worker, now));
    let mut status = json!({});
    operation_members(worker, operation, outcome, is_awaited, &now, &mut status);
    if let Some(published) = published {
        published_members(worker, published, &now, &mut status);
    }
    let is_empty = status.as_object().is_none_or(serde_json::Map::is_empty);
    (!is_empty).then(|| json!({ "status": status }))
}

fn operation_members(
    worker: &Worker,
    operation: Operation,
    outcome: &Outcome,
    is_awaited: bool,
    now: &str,
    status: &mut Value,
) {
    let texts = texts(operation);
    let (state, progress, description) = match outcome {
        Outcome::Begun => ("Processing", PROGRESS_OF_A_BEGINNING, texts.begun.to_owned()),
        Outcome::Waiting(text, progress) => {
            ("Processing", (*progress).clamp(PROGRESS_OF_A_BEGINNING + 1, 99), sentence(text))
        }
        Outcome::Succeeded => ("Succeeded", 100, texts.succeeded.to_owned()),
        Outcome::Failed(failure) => ("Error", 50, format!("{}: {}", texts.failed, failure.message)),
    };
    let codes: Vec<&str> = match outcome {
        Outcome::Failed(failure) => failure.codes.iter().map(|code| code.as_str()).collect(),
        _ => Vec::new(),
    };
    let last = worker.status.last_operation.as_ref();
    let says_it = last.is_some_and(|last| {
        last.state == state
            && last.description == description
            && last.operation_type == operation.as_str()
            && last.progress == progress
    });
    let has_error = worker.status.last_error.as_ref();
    let says_error = match outcome {
        Outcome::Failed(_) => {
            has_error.is_some_and(|error| error.description == description && error.codes.iter().eq(codes.iter()))
        }
        Outcome::Succeeded => has_error.is_none(),
        // Until the operation ends, the last error stays for people to read.
        Outcome::Begun | Outcome::Waiting(..) => true,
    };
    let ends = matches!(outcome, Outcome::Succeeded | Outcome::Failed(_));
    let generation = worker.metadata.generation;
    let says_generation = !ends || worker.status.observed_generation == generation;
    // A beginning is always written, and what gardenlet waits for: a time after its request.
    if says_it && says_error && says_generation && !is_awaited && *outcome != Outcome::Begun {
        return;
    }
    status["lastOperation"] = json!({
        "description": description,
        "lastUpdateTime": now,
        "progress": progress,
        "state": state,
        "type": operation.as_str(),
    });
    if ends {
        status["observedGeneration"] = json!(generation);
    }
    match outcome {
        Outcome::Failed(_) => {
            // Codes are a list, which a merge patch replaces as a whole; none is a null.
            let codes = if codes.is_empty() { Value::Null } else { json!(codes) };
            status["lastError"] = json!({"description": description, "codes": codes, "lastUpdateTime": now});
        }
        Outcome::Succeeded => status["lastError"] = Value::Null,
        Outcome::Begun | Outcome::Waiting(..) => {}
    }
}

fn published_members(worker: &Worker, published: &Published, now: &str, status: &mut Value) {
    let bounds_differ = worker.status.machine_deployments != published.machine_deployments;
    if bounds_differ {
        status["machineDeployments"] = json!(published.machine_deployments);
    }
    if (bounds_differ || published.renew_time) && !published.machine_deployments.is_empty() {
        status["machineDeploymentsLastUpdateTime"] = json!(now);
    }
    if let Some(document) = provider_status_patch(worker, &published.provider_status) {
        status["providerStatus"] = document;
    }
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

/// Adds `status.conditions` to a patch where they differ.
#[must_use]
pub fn with_conditions(worker: &Worker, facts: &[Fact], now: Timestamp, patch: Option<Value>) -> Option<Value> {
    let Some(conditions) = conditions_with(&worker.status.conditions, facts, &seconds(now)) else { return patch };
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
    use crate::worker::operation::TIMESTAMP_ANNOTATION;

    const NOW: &str = "2026-11-21T10:00:00Z";

    fn worker(status: Value) -> Worker {
        let document = json!({"metadata": {"generation": 3}, "spec": {"type": "azure"}, "status": status});
        serde_json::from_str(&document.to_string()).unwrap()
    }

    fn patch(status: Value, outcome: &Outcome, published: Option<&Published>) -> Option<Value> {
        status_patch(&worker(status), Operation::Reconcile, outcome, published, NOW.parse().unwrap())
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
            let patch = status_patch(&worker, Operation::Reconcile, &Outcome::Succeeded, None, NOW.parse().unwrap());
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
        let begun = patch(succeeded(), &Outcome::Begun, None).unwrap();
        assert_eq!(begun["lastOperation"]["state"], "Processing");
        assert_eq!(begun["lastOperation"]["lastUpdateTime"], NOW);
        let again = patch(json!({"lastOperation": begun["lastOperation"]}), &Outcome::Begun, None);
        assert!(again.is_some(), "gardenlet waits for a time after its request");
    }

    #[test]
    fn what_the_status_says_already_is_not_written() {
        assert_eq!(patch(succeeded(), &Outcome::Succeeded, None), None);
        let waiting = Outcome::Waiting("for machines".to_owned(), 40);
        let written = patch(succeeded(), &waiting, None).unwrap();
        assert_eq!(patch(written, &waiting, None), None);
    }

    #[test]
    fn an_error_has_codes_and_a_success_takes_it_away() {
        let failure = Failure { message: "pool \"b\": no".to_owned(), codes: [ErrorCode::ConfigurationProblem].into() };
        let failed = patch(json!({}), &Outcome::Failed(failure.clone()), None).unwrap();
        assert_eq!(failed["lastError"]["codes"], json!(["ERR_CONFIGURATION_PROBLEM"]));
        assert_eq!(failed["lastError"]["description"], "Error reconciling Worker: pool \"b\": no");
        assert_eq!(failed["observedGeneration"], 3);
        assert_eq!(patch(failed.clone(), &Outcome::Failed(failure), None), None, "the same error is written once");
        let mended = patch(failed, &Outcome::Succeeded, None).unwrap();
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
        let begun = patch(status.clone(), &Outcome::Succeeded, Some(&published)).unwrap();
        assert_eq!(begun, json!({"machineDeploymentsLastUpdateTime": NOW}));
        published.renew_time = false;
        assert_eq!(patch(status, &Outcome::Succeeded, Some(&published)), None);
    }

    #[test]
    fn what_failed_before_it_was_published_is_published_later() {
        let due = |requested: Option<&str>, status: Value| {
            let mut worker = worker(status);
            let annotation = requested.map(|time| (TIMESTAMP_ANNOTATION.to_owned(), time.to_owned()));
            worker.metadata.annotations = Some(annotation.into_iter().collect());
            is_publication_due(&worker)
        };
        let request = Some("2026-11-21T10:00:00.734561Z");
        let published = |time: &str| json!({"machineDeploymentsLastUpdateTime": time});
        assert!(due(request, published("2026-11-21T09:59:59Z")), "gardenlet waits for a later time");
        assert!(due(request, json!({})));
        assert!(!due(request, published("2026-11-21T10:00:00Z")), "times have whole seconds");
        assert!(!due(None, published("2026-11-21T09:00:00Z")), "nobody waits");
        let begun = patch(succeeded(), &Outcome::Begun, None).unwrap();
        assert!(due(None, begun), "the process ended right after the beginning");
    }

    #[test]
    fn members_that_vanish_from_the_provider_status_are_removed() {
        let mut status = succeeded();
        status["providerStatus"] = json!({"kind": "WorkerStatus", "vmoDependencies": [{"name": "v"}]});
        let published = Published { provider_status: json!({"kind": "WorkerStatus"}), ..Published::default() };
        let written = patch(status, &Outcome::Succeeded, Some(&published)).unwrap();
        assert_eq!(written["providerStatus"], json!({"kind": "WorkerStatus", "vmoDependencies": null}));
    }
}
