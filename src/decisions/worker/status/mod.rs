//! Pure step: what a reconcile writes into the status of its Worker (docs/status.md).
//!
//! It is computed once from all findings of the reconcile. The writer chooses the length of its texts.

pub mod conditions;
pub mod events;
pub mod every_node_ready;
pub mod outcome;
pub mod pool_readiness;
pub mod published;
pub mod reconcile_outcome;
pub mod rolls_held;
pub mod status_text;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, RemoveOperation, TestOperation};
use serde_json::{Map, Value, json};

use crate::worker::machines::progress::Progress;
use crate::worker::plan::Plan;
use crate::worker::request::{Operation, Request};
use crate::worker::status::conditions::{Condition, ConditionsReport};
use crate::worker::status::published::{PROGRESS_AT_START, Published, publication_time, seconds};
use crate::worker::status::reconcile_outcome::ReconcileOutcome;
use crate::worker::status::status_text::{TextSize, is_same_text};
use wire::api::bounded_text::size;
use wire::api::gardener::{UpdateStrategy, Worker};

/// Findings of a reconcile that are reported in the status.
#[derive(Clone, Copy)]
pub struct Findings<'a> {
    /// The operation.
    pub operation: Operation,
    /// Result of the reconcile.
    pub outcome: &'a ReconcileOutcome,
    /// Other status fields for gardenlet and the autoscaler.
    pub published: Option<&'a Published>,
    /// The plan and the progress of its machines, if both are known.
    pub deployed: Option<(&'a Plan, &'a Progress)>,
    /// Evaluated conditions.
    pub conditions: &'a [Condition],
    /// Whether events are published about these findings.
    pub has_events: bool,
}

impl<'a> Findings<'a> {
    /// Findings of an operation of which only the result is known.
    #[must_use]
    pub fn of(operation: Operation, outcome: &'a ReconcileOutcome) -> Self {
        Self { operation, outcome, published: None, deployed: None, conditions: &[], has_events: false }
    }
}

/// Changes to the status of a Worker.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatusReport {
    operation: Option<OperationReport>,
    /// Fields that other controllers act on.
    members: Map<String, Value>,
    conditions: Option<ConditionsReport>,
    /// Whether only messages change. No controller acts on them, so the write may be delayed.
    pub is_only_text: bool,
}

impl StatusReport {
    /// Compares the findings with the recorded status. `request` is that of the Worker.
    #[must_use]
    pub fn of(worker: &Worker, request: &Request, findings: Findings<'_>, now: Timestamp) -> Self {
        let Findings { operation, outcome, published, deployed, conditions, has_events } = findings;
        let completed_at = request.completed_at(now);
        // A start is always written, and so is a result that gardenlet waits for, with a time after its request.
        let is_due = request.is_awaited() || *outcome == ReconcileOutcome::Started;
        let operation = OperationReport::of(worker, operation, outcome, &seconds(completed_at), is_due);
        let mut members =
            published.map_or_else(Map::new, |published| published_members(worker, published, completed_at));
        if let (Some((plan, progress)), ReconcileOutcome::Succeeded) = (deployed, outcome) {
            members.extend(in_place_updates(worker, plan, progress));
        }
        let conditions = ConditionsReport::of(&worker.status.conditions, conditions, &seconds(now));
        // A status with events is written immediately, because they follow the write.
        let is_only_text = !has_events
            && is_same_state(worker, outcome)
            && members.is_empty()
            && (operation.is_some() || conditions.is_some());
        Self { operation, members, conditions, is_only_text }
    }

    /// Marks an operation as started; empty for a new Worker, because it has no earlier result to be mistaken for the
    /// current one.
    #[must_use]
    pub fn beginning(worker: &Worker, request: &Request, operation: Operation, now: Timestamp) -> Self {
        if is_new(worker) { Self::default() } else { Self::started(worker, request, operation, now) }
    }

    /// Marks the operation of a new Worker as started if its first reconcile has nothing else to report, because the
    /// next one would start it again.
    #[must_use]
    pub fn keep_processing(worker: &Worker, request: &Request, operation: Operation, now: Timestamp) -> Self {
        if is_new(worker) { Self::started(worker, request, operation, now) } else { Self::default() }
    }

    fn started(worker: &Worker, request: &Request, operation: Operation, now: Timestamp) -> Self {
        Self::of(worker, request, Findings::of(operation, &ReconcileOutcome::Started), now)
    }

    /// Changes to the conditions of a Worker without a requested operation: the given one if it differs, and the
    /// removal of those that an older extension has left behind.
    #[must_use]
    pub fn of_condition(worker: &Worker, condition: Option<&Condition>, now: Timestamp) -> Self {
        let conditions = condition.map_or(&[][..], std::slice::from_ref);
        Self {
            conditions: ConditionsReport::of(&worker.status.conditions, conditions, &seconds(now)),
            ..Self::default()
        }
    }

    /// The merge patch of the Worker with texts of this size; `None` if its status is up to date.
    #[must_use]
    pub fn patch(&self, texts: TextSize) -> Option<Value> {
        let mut status = self.members.clone();
        if let Some(operation) = &self.operation {
            status.extend(operation.members(texts));
        }
        if let Some(conditions) = &self.conditions {
            status.insert("conditions".to_owned(), conditions.document(texts));
        }
        (!status.is_empty()).then(|| json!({ "status": status }))
    }

    /// The JSON patch with full texts that only applies to the Worker with this UID, in any version. The Worker must
    /// have a status. `None` if there is nothing to write, or if a field would have to be merged.
    #[must_use]
    pub fn patch_of_one(&self, uid: &str) -> Option<json_patch::Patch> {
        let Value::Object(mut members) = self.patch(TextSize::Full)?.get_mut("status")?.take() else { return None };
        let at = |path: &[&str]| PointerBuf::from_tokens(path.iter().copied());
        let add = |path: PointerBuf, value: Value| PatchOperation::Add(AddOperation { path, value });
        let mut operations =
            vec![PatchOperation::Test(TestOperation { path: at(&["metadata", "uid"]), value: json!(uid) })];
        // All of its fields are set, so it can be replaced.
        operations.extend(members.remove("lastOperation").map(|last| add(at(&["status", "lastOperation"]), last)));
        for (member, value) in members {
            let path = at(&["status", &member]);
            match value {
                Value::Object(_) => return None,
                // Removing a missing field fails, so add it first.
                Value::Null => {
                    operations.extend([add(path.clone(), json!({})), PatchOperation::Remove(RemoveOperation { path })])
                }
                value => operations.push(add(path, value)),
            }
        }
        Some(json_patch::Patch(operations))
    }
}

/// Since when the Worker has failed, according to its status.
#[must_use]
pub fn failing_since(worker: &Worker) -> Option<Timestamp> {
    let last = worker.status.last_operation.as_ref().filter(|last| last.state == "Error")?;
    last.last_update_time.parse().ok()
}

fn is_new(worker: &Worker) -> bool {
    worker.status.last_operation.is_none()
}

fn is_same_state(worker: &Worker, outcome: &ReconcileOutcome) -> bool {
    let state = worker.status.last_operation.as_ref().map(|last| last.state.as_str());
    match outcome {
        ReconcileOutcome::Waiting(..) => state == Some("Processing"),
        ReconcileOutcome::Failed(_) => {
            state == Some("Error") && worker.status.observed_generation == worker.metadata.generation
        }
        ReconcileOutcome::Started | ReconcileOutcome::Succeeded => false,
    }
}

/// Fields of `lastOperation` and `lastError` except for type and time.
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

/// Operation fields to write, if the status differs.
#[derive(Clone, Debug, PartialEq)]
struct OperationReport {
    /// Fields except for messages.
    members: Map<String, Value>,
    description: String,
    last_error: LastError,
}

/// Change of `lastError`.
#[derive(Clone, Debug, PartialEq)]
enum LastError {
    /// It gets the message of the operation.
    Written,
    /// It is removed.
    Removed,
    /// It stays, with this message.
    Kept(String),
}

impl OperationReport {
    fn of(worker: &Worker, operation: Operation, outcome: &ReconcileOutcome, now: &str, is_due: bool) -> Option<Self> {
        let target = operation_state(operation, outcome);
        if !is_due && is_operation_recorded(worker, operation, outcome, &target) {
            return None;
        }
        let mut members = Map::new();
        let last_operation = json!({
            "lastUpdateTime": now,
            "progress": target.progress,
            "state": target.state,
            "type": operation.as_str(),
        });
        members.insert("lastOperation".to_owned(), last_operation);
        if outcome.is_end() {
            members.insert("observedGeneration".to_owned(), json!(worker.metadata.generation));
        }
        let last_error = match outcome {
            ReconcileOutcome::Failed(_) => {
                // A merge patch replaces lists as a whole; null removes the codes.
                let codes = if target.codes.is_empty() { Value::Null } else { json!(target.codes) };
                members.insert("lastError".to_owned(), json!({"codes": codes, "lastUpdateTime": now}));
                LastError::Written
            }
            ReconcileOutcome::Succeeded => LastError::Removed,
            ReconcileOutcome::Started | ReconcileOutcome::Waiting(..) => {
                let recorded = worker.status.last_error.as_ref();
                LastError::Kept(recorded.map(|error| error.description.clone()).unwrap_or_default())
            }
        };
        Some(Self { members, description: target.description, last_error })
    }

    fn members(&self, texts: TextSize) -> Map<String, Value> {
        let mut members = self.members.clone();
        let description = json!(texts.text(&self.description));
        match &self.last_error {
            LastError::Written => members["lastError"]["description"] = description.clone(),
            LastError::Removed => drop(members.insert("lastError".to_owned(), Value::Null)),
            // A message from an older extension may be too long.
            LastError::Kept(recorded) if size(recorded) > texts.of_text() => {
                members.insert("lastError".to_owned(), json!({"description": texts.text(recorded)}));
            }
            LastError::Kept(_) => {}
        }
        members["lastOperation"]["description"] = description;
        members
    }
}

/// Whether the status is already up to date.
fn is_operation_recorded(
    worker: &Worker,
    operation: Operation,
    outcome: &ReconcileOutcome,
    target: &OperationState,
) -> bool {
    let is_last_operation = worker.status.last_operation.as_ref().is_some_and(|last| {
        last.state == target.state
            && is_same_text(&last.description, &target.description)
            && last.operation_type == operation.as_str()
            && last.progress == target.progress
    });
    let last_error = worker.status.last_error.as_ref();
    let is_last_error = match outcome {
        ReconcileOutcome::Failed(_) => last_error.is_some_and(|error| {
            is_same_text(&error.description, &target.description) && error.codes.iter().eq(target.codes.iter())
        }),
        ReconcileOutcome::Succeeded => last_error.is_none(),
        // The last error stays visible to users until the operation ends.
        ReconcileOutcome::Started | ReconcileOutcome::Waiting(..) => true,
    };
    let is_observed = !outcome.is_end() || worker.status.observed_generation == worker.metadata.generation;
    is_last_operation && is_last_error && is_observed
}

fn published_members(worker: &Worker, published: &Published, now: Timestamp) -> Map<String, Value> {
    let bounds_differ = worker.status.machine_deployments != published.machine_deployments;
    let mut members = Map::new();
    if bounds_differ {
        members.insert("machineDeployments".to_owned(), json!(published.machine_deployments));
    }
    if (bounds_differ || published.renew_time) && !published.machine_deployments.is_empty() {
        let time = seconds(publication_time(worker, now));
        members.insert("machineDeploymentsLastUpdateTime".to_owned(), json!(time));
    }
    if let Some(document) = published.provider_status.patch() {
        members.insert("providerStatus".to_owned(), document);
    }
    members
}

/// `status.inPlaceUpdates` if it differs. The entry of a pool stays unchanged while a user has to select its old
/// machines, and while the pool can't be planned.
fn in_place_updates(worker: &Worker, plan: &Plan, progress: &Progress) -> Option<(String, Value)> {
    let nothing = BTreeMap::new();
    let known = worker.status.in_place_updates.as_ref().map(|updates| &updates.worker_pool_to_hash_map);
    let known = known.unwrap_or(&nothing);
    let mut target = plan.in_place_updates().worker_pool_to_hash_map;
    let unselected = progress.unselected_pools();
    target.retain(|pool, _| !unselected.contains(&pool.as_str()));
    let in_place =
        worker.spec.pools.iter().filter(|pool| pool.update_strategy.is_some_and(UpdateStrategy::is_in_place));
    let in_place: BTreeSet<&str> = in_place.map(|pool| pool.name.as_str()).collect();
    for (pool, hash) in known {
        if in_place.contains(pool.as_str()) {
            target.entry(pool.clone()).or_insert_with(|| hash.clone());
        }
    }
    if target == *known {
        return None;
    }
    let mut map = json!(target);
    for vanished in known.keys().filter(|pool| !target.contains_key(*pool)) {
        map[vanished] = Value::Null;
    }
    Some(("inPlaceUpdates".to_owned(), json!({ "workerPoolToHashMap": map })))
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

/// Converts the first letter to upper case.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::pool::hash::InPlaceHash;
    use crate::provider::PoolPlan;
    use crate::worker::machines::progress::DeploymentProgress;
    use crate::worker::request::TIMESTAMP_ANNOTATION;
    use crate::worker::status::conditions::nothing_deployed;
    use crate::worker::status::published::ProviderStatus;
    use crate::worker::status::reconcile_outcome::Failure;
    use crate::worker::status::status_text::MAX_FAILURE_BYTES;
    use wire::api::gardener::{ErrorCode, MachineDeploymentStatus};

    const NOW: &str = "2026-11-21T10:00:00Z";

    fn worker(status: Value) -> Worker {
        let document = json!({"metadata": {"generation": 3}, "spec": {"type": "azure"}, "status": status});
        serde_json::from_str(&document.to_string()).unwrap()
    }

    fn patch(status: Value, outcome: &ReconcileOutcome, published: Option<&Published>) -> Option<Value> {
        let findings = Findings { published, ..Findings::of(Operation::Reconcile, outcome) };
        let report = report_of(&worker(status), findings, NOW.parse().unwrap());
        report.patch(TextSize::Full).map(|patch| patch["status"].clone())
    }

    fn report_of(worker: &Worker, findings: Findings<'_>, now: Timestamp) -> StatusReport {
        StatusReport::of(worker, &Request::of(worker, now), findings, now)
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
    fn always_writes_awaited_result() {
        let completed_at = |requested: &str, annotation: Option<&str>| {
            let mut annotations = json!({ TIMESTAMP_ANNOTATION: requested });
            annotations["gardener.cloud/operation"] = json!(annotation.unwrap_or_default());
            let mut status = succeeded();
            status["lastOperation"]["lastUpdateTime"] = json!("2026-11-21T09:00:00Z");
            let document = json!({
                "metadata": {"generation": 3, "annotations": annotations}, "spec": {"type": "azure"}, "status": status,
            });
            let worker: Worker = serde_json::from_str(&document.to_string()).unwrap();
            let findings = Findings::of(Operation::Reconcile, &ReconcileOutcome::Succeeded);
            let patch = report_of(&worker, findings, NOW.parse().unwrap()).patch(TextSize::Full);
            patch.map(|patch| patch["status"]["lastOperation"]["lastUpdateTime"].clone())
        };
        let completed = "2026-11-21T09:00:00Z";
        let before = "2026-01-01T00:00:00Z";
        assert_eq!(completed_at(before, None), None, "it was answered long ago");
        assert_eq!(completed_at(completed, None), None, "in that very second");
        assert_eq!(completed_at(completed, Some("reconcile")), Some(json!(NOW)), "the request still stands");
        assert_eq!(completed_at("2026-11-21T09:59:59Z", None), Some(json!(NOW)), "it was taken off");
        assert_eq!(
            completed_at("2026-11-21T10:00:07Z", None),
            Some(json!("2026-11-21T10:00:07Z")),
            "by a clock that is ahead"
        );
    }

    #[test]
    fn always_writes_start() {
        let begun = patch(succeeded(), &ReconcileOutcome::Started, None).unwrap();
        assert_eq!(begun["lastOperation"]["state"], "Processing");
        assert_eq!(begun["lastOperation"]["lastUpdateTime"], NOW);
        let again = patch(json!({"lastOperation": begun["lastOperation"]}), &ReconcileOutcome::Started, None);
        assert!(again.is_some(), "gardenlet waits for a time after its request");
    }

    #[test]
    fn skips_unchanged_status() {
        assert_eq!(patch(succeeded(), &ReconcileOutcome::Succeeded, None), None);
        let waiting = ReconcileOutcome::Waiting("for machines".to_owned(), 40);
        let written = patch(succeeded(), &waiting, None).unwrap();
        assert_eq!(written["observedGeneration"], Value::Null, "what is asked for is not done yet");
        assert_eq!(patch(written, &waiting, None), None);
    }

    #[test]
    fn success_removes_last_error() {
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
    fn writes_any_difference() {
        let last = json!({"type": "Reconcile", "state": "Processing", "description": "For machines", "progress": 40});
        let waiting = |text: &str, progress: i32| {
            patch(json!({"lastOperation": last}), &ReconcileOutcome::Waiting(text.to_owned(), progress), None)
        };
        assert_eq!(waiting("for machines", 40), None);
        assert_eq!(waiting("for other machines", 40).unwrap()["lastOperation"]["description"], "For other machines");
        assert_eq!(waiting("for machines", 41).unwrap()["lastOperation"]["progress"], 41);
        let created = Findings::of(Operation::Create, &ReconcileOutcome::Succeeded);
        let created = report_of(&worker(succeeded()), created, NOW.parse().unwrap()).patch(TextSize::Full);
        assert_eq!(created.unwrap()["status"]["lastOperation"]["type"], "Create", "all else is the same");

        let failure = |codes: &[ErrorCode]| {
            let codes = codes.iter().copied().collect();
            ReconcileOutcome::Failed(Failure { message: "no".to_owned(), codes })
        };
        let failed = patch(json!({}), &failure(&[]), None).unwrap();
        assert_eq!(patch(failed.clone(), &failure(&[]), None), None);
        let with_code = patch(failed, &failure(&[ErrorCode::InfraQuotaExceeded]), None).unwrap();
        assert_eq!(with_code["lastError"]["codes"], json!(["ERR_INFRA_QUOTA_EXCEEDED"]), "in the same words");
    }

    #[test]
    fn shortens_kept_error_if_too_long() {
        let started = |status: Value| patch(status, &ReconcileOutcome::Started, None).unwrap();
        assert!(started(json!({})).get("lastError").is_none(), "there is none");
        let with_error = |length: usize| started(json!({"lastError": {"description": "x".repeat(length)}}));
        assert!(with_error(TextSize::Full.of_text()).get("lastError").is_none(), "it fits and stays");
        let shortened = with_error(TextSize::Full.of_text() + 1);
        assert!(shortened["lastError"]["description"].as_str().unwrap().contains(" … "));
    }

    #[test]
    fn longest_failure_fits_status() {
        let message = "x".repeat(MAX_FAILURE_BYTES);
        let failed = patch(json!({}), &ReconcileOutcome::Failed(Failure::new(message.as_str())), None).unwrap();
        let description = format!("Error reconciling Worker: {message}");
        assert_eq!(failed["lastOperation"]["description"], description);
        assert_eq!(failed["lastError"]["description"], description);
    }

    #[test]
    fn updates_time_for_each_operation() {
        let bounds = vec![MachineDeploymentStatus { name: "a".to_owned(), minimum: 1, maximum: 2, priority: None }];
        let mut published = Published { machine_deployments: bounds.clone(), renew_time: true, ..Published::default() };
        let mut status = succeeded();
        status["machineDeployments"] = json!(bounds);
        let begun = patch(status.clone(), &ReconcileOutcome::Succeeded, Some(&published)).unwrap();
        assert_eq!(begun, json!({"machineDeploymentsLastUpdateTime": NOW}));
        for (last, next) in [(-30, 0), (0, 1), (5, 6), (3600, 0)] {
            let after = |seconds: i64| NOW.parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds);
            status["machineDeploymentsLastUpdateTime"] = json!(after(last).to_string());
            let written = patch(status.clone(), &ReconcileOutcome::Succeeded, Some(&published)).unwrap();
            let target = json!({"machineDeploymentsLastUpdateTime": after(next).to_string()});
            assert_eq!(written, target, "two requests within a second, last published after {last} s");
        }
        published.renew_time = false;
        assert_eq!(patch(status, &ReconcileOutcome::Succeeded, Some(&published)), None);
    }

    #[test]
    fn removes_obsolete_provider_status_fields() {
        let mut status = succeeded();
        status["providerStatus"] = json!({"kind": "WorkerStatus", "vmoDependencies": [{"name": "v"}]});
        let provider_status =
            ProviderStatus { recorded: status["providerStatus"].clone(), target: json!({"kind": "WorkerStatus"}) };
        let published = Published { provider_status, ..Published::default() };
        let written = patch(status, &ReconcileOutcome::Succeeded, Some(&published)).unwrap();
        assert_eq!(written["providerStatus"], json!({"kind": "WorkerStatus", "vmoDependencies": null}));
    }

    #[test]
    fn does_not_rewrite_shortened_status() {
        let failure = Failure::new(format!("1200 errors occurred: [{}, and 1100 more]", "no quota ".repeat(1000)));
        let failed = ReconcileOutcome::Failed(failure);
        let now: Timestamp = NOW.parse().unwrap();
        let written = |status: Value, outcome: &ReconcileOutcome, texts: TextSize| {
            let report = report_of(&worker(status), Findings::of(Operation::Reconcile, outcome), now);
            report.patch(texts).map(|patch| patch["status"].clone())
        };
        let mut lengths = Vec::new();
        for texts in TextSize::ALL {
            let status = written(json!({}), &failed, texts).unwrap();
            let text = status["lastError"]["description"].as_str().unwrap().to_owned();
            assert!(
                text.starts_with("Error reconciling Worker: 1200 errors occurred") && text.ends_with("and 1100 more]")
            );
            lengths.push(text.len());
            assert_eq!(written(status.clone(), &failed, TextSize::Full), None, "it is recorded in {texts:?}");
            let started = written(status, &ReconcileOutcome::Started, TextSize::Shortest).unwrap();
            let kept = started["lastError"]["description"].as_str().unwrap_or(&text).len();
            assert!(kept <= 256, "what is there leaves {kept} bytes of no room");
        }
        assert!(lengths.is_sorted_by(|longer, shorter| longer > shorter) && lengths[2] <= 256, "{lengths:?}");
    }

    #[test]
    fn delays_only_message_changes() {
        let last = json!({"type": "Reconcile", "state": "Processing", "description": "", "progress": 1});
        let worker = json!({"spec": {"type": "azure"}, "status": {"lastOperation": last}});
        let worker: Worker = serde_json::from_str(&worker.to_string()).unwrap();
        let waiting = ReconcileOutcome::Waiting("2 of 3".to_owned(), 50);
        let findings = Findings::of(Operation::Reconcile, &waiting);
        let is_only_text = |findings: Findings<'_>| report_of(&worker, findings, Timestamp::UNIX_EPOCH).is_only_text;
        assert!(is_only_text(findings));
        assert!(!is_only_text(Findings { has_events: true, ..findings }), "its event would be written again");
        let provider_status = ProviderStatus { recorded: Value::Null, target: json!({"a": 1}) };
        let published = Published { provider_status, ..Published::default() };
        let changed = Findings { published: Some(&published), ..findings };
        assert!(!is_only_text(changed), "somebody acts on it");
        assert!(!is_only_text(Findings { outcome: &ReconcileOutcome::Succeeded, ..findings }), "gardenlet acts on it");
    }

    #[test]
    fn writes_failure_of_new_generation_immediately() {
        let failed = ReconcileOutcome::Failed(Failure::new("no quota"));
        let is_only_text = |observed: i64, state: &str| {
            let last = json!({"type": "Reconcile", "state": state, "description": "", "progress": 50});
            let worker = worker(json!({"observedGeneration": observed, "lastOperation": last}));
            report_of(&worker, Findings::of(Operation::Reconcile, &failed), NOW.parse().unwrap()).is_only_text
        };
        assert!(is_only_text(3, "Error"));
        assert!(!is_only_text(2, "Error"), "gardenlet waits for the generation");
        assert!(!is_only_text(3, "Processing"), "gardenlet waits for the end");
    }

    #[test]
    fn updates_hash_after_all_machines_are_selected() {
        let plan = |hash: Option<&str>| {
            let in_place_hash = hash.map(|hash| InPlaceHash(hash.to_owned()));
            let pool = PoolPlan { pool: "a".to_owned(), machines: vec![], status_image: Value::Null, in_place_hash };
            Plan { pools: vec![Ok(pool)], provider_status: Value::Null, ..Plan::default() }
        };
        let written = |known: Value, hash: Option<&str>, unselected: i32| {
            let pool = json!({"name": "a", "updateStrategy": "ManualInPlaceUpdate", "machineType": "t",
                "machineImage": {"name": "i", "version": "1"}});
            let status = json!({"inPlaceUpdates": {"workerPoolToHashMap": known}});
            let document = json!({"metadata": {}, "spec": {"type": "azure", "pools": [pool]}, "status": status});
            let worker = serde_json::from_str(&document.to_string()).unwrap();
            let deployment = DeploymentProgress { pool: "a".to_owned(), unselected, ..DeploymentProgress::ready() };
            let progress = Progress { deployments: vec![deployment], ..Progress::default() };
            let (member, document) = in_place_updates(&worker, &plan(hash), &progress)?;
            assert_eq!(member, "inPlaceUpdates");
            Some(document["workerPoolToHashMap"].clone())
        };
        let old = json!({"a": "old"});
        let new = json!({"a": "new"});
        assert_eq!(written(old.clone(), Some("new"), 0), Some(new.clone()));
        assert_eq!(written(new, Some("new"), 0), None, "it is recorded");
        assert_eq!(written(old.clone(), Some("new"), 1), None, "an old machine is left");
        assert_eq!(written(json!({}), Some("new"), 1), None);
        assert_eq!(written(json!({}), Some("new"), 0), Some(json!({"a": "new"})));
        assert_eq!(written(old, None, 0), None, "it is not planned");
        assert_eq!(written(json!({"gone": "old"}), None, 0), Some(json!({"gone": null})));
    }

    #[test]
    fn uid_patch_equals_merge_patch() {
        let failed = json!({"lastOperation": {"state": "Error"}, "lastError": {"description": "no quota"}});
        let bounds = MachineDeploymentStatus { name: "d".to_owned(), minimum: 1, maximum: 2, priority: None };
        let published = Published { machine_deployments: vec![bounds], renew_time: true, ..Published::default() };
        let conditions = [nothing_deployed("no quota", BTreeSet::new())];
        for (status, uid) in [(succeeded(), "meant"), (failed.clone(), "meant"), (failed, "another")] {
            let outcome = ReconcileOutcome::Succeeded;
            let findings = Findings::of(Operation::Reconcile, &outcome);
            let findings = Findings { published: Some(&published), conditions: &conditions, ..findings };
            let report = report_of(&worker(status.clone()), findings, NOW.parse().unwrap());
            let mut merged = json!({"metadata": {"uid": uid}, "status": status});
            let mut patched = merged.clone();
            json_patch::merge(&mut merged, &report.patch(TextSize::Full).unwrap());
            let result = json_patch::patch(&mut patched, &report.patch_of_one("meant").unwrap());
            assert_eq!(result.is_ok(), uid == "meant");
            assert_eq!(patched == merged, uid == "meant", "{patched}");
        }
    }

    #[test]
    fn no_uid_patch_for_merged_fields() {
        let report = |provider_status: ProviderStatus, outcome: &ReconcileOutcome| {
            let published = Published { provider_status, ..Published::default() };
            let findings = Findings { published: Some(&published), ..Findings::of(Operation::Reconcile, outcome) };
            report_of(&worker(succeeded()), findings, NOW.parse().unwrap()).patch_of_one("meant").is_some()
        };
        let recorded = || ProviderStatus { recorded: Value::Null, target: json!({"a": 1}) };
        assert!(report(ProviderStatus::default(), &ReconcileOutcome::Started));
        assert!(!report(recorded(), &ReconcileOutcome::Started), "somebody may have recorded more");
        assert!(!report(ProviderStatus::default(), &ReconcileOutcome::Failed(Failure::new("no quota"))));
        assert!(!report(ProviderStatus::default(), &ReconcileOutcome::Succeeded), "there is nothing to write");
    }

    #[test]
    fn description_starts_with_capital() {
        assert_eq!(sentence("waiting until äpfel ripen"), "Waiting until äpfel ripen");
        assert_eq!((sentence("über"), sentence("")), ("Über".to_owned(), String::new()));
    }

    #[test]
    fn clamps_progress() {
        let progress = |percent| {
            operation_state(Operation::Reconcile, &ReconcileOutcome::Waiting("a".to_owned(), percent)).progress
        };
        assert_eq!(
            [-1, 0, 1, 50, 100].map(progress),
            [PROGRESS_AT_START + 1, PROGRESS_AT_START + 1, PROGRESS_AT_START + 1, 50, 99]
        );
    }

    #[test]
    fn new_worker_keeps_processing() {
        let now = NOW.parse().unwrap();
        let operation = Operation::Reconcile;
        let is_reported = |report: StatusReport| report.patch(TextSize::Full).is_some();
        let new = worker(json!({}));
        let old = worker(succeeded());
        assert!(is_reported(StatusReport::keep_processing(&new, &Request::of(&new, now), operation, now)));
        assert!(!is_reported(StatusReport::keep_processing(&old, &Request::of(&old, now), operation, now)));
        assert!(is_reported(StatusReport::beginning(&old, &Request::of(&old, now), operation, now)));
        assert!(!is_reported(StatusReport::beginning(&new, &Request::of(&new, now), operation, now)));
    }

    #[test]
    fn reads_failing_since_from_status() {
        let since = |state: &str| {
            let last = json!({"type": "Reconcile", "state": state, "lastUpdateTime": "2026-11-21T09:00:00Z"});
            failing_since(&worker(json!({ "lastOperation": last })))
        };
        assert_eq!(since("Error"), Some("2026-11-21T09:00:00Z".parse().unwrap()));
        assert_eq!((since("Processing"), since("Succeeded"), failing_since(&worker(json!({})))), (None, None, None));
    }
}
