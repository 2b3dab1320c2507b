//! Findings from the status of the Worker itself: requests that no controller has started, conditions, the last error.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use super::facts::{Facts, ObjectKind};
use super::finding::{Finding, FindingKind, Severity};
use super::machine_document::moment;
use decisions::worker::plan::roll_budget::BUDGET_USED_UP;
use decisions::worker::plan::stops::STOPPED;
use decisions::worker::plan::zone_waits::ZONE_FAILS;
use decisions::worker::request::{Request, unsupported_migration};
use decisions::worker::status::conditions::{ConditionType, WITHOUT_IMAGE};
use wire::api::bounded_text::shortened;
use wire::api::gardener::ErrorCode;

/// Time within which a controller should start a requested operation.
const TAKEN_UP_WITHIN: SignedDuration = SignedDuration::from_mins(1);

/// Maximum length of the text about an unknown request, in bytes.
const LONGEST_REQUEST: usize = 200;

/// After which time an operation without news should have become an error.
const ABANDONED_AFTER: SignedDuration = SignedDuration::from_mins(15);

/// Findings from the status of a Worker. `known` are earlier findings, which may already explain its error.
pub(super) fn findings(facts: &Facts<'_>, known: &[Finding]) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(not_taken_up(facts));
    findings.extend(conditions(facts));
    findings.extend(waiting_zones(facts));
    findings.extend(deletion(facts));
    let is_explained = |severity| known.iter().chain(&findings).any(|finding: &Finding| finding.severity <= severity);
    let status = &facts.worker.status;
    let operation = status.last_operation.as_ref();
    let updated = operation.and_then(|last| last.last_update_time.parse().ok());
    if let Some(error) = status.last_error.as_ref()
        && !is_explained(Severity::Error)
    {
        let found = FindingKind::OperationFailed.found("the last operation", error.description.clone());
        findings.push(found.codes(codes(error.codes.iter().map(String::as_str))).since(updated));
    } else if let Some(last) = operation
        && ["Processing", "Pending"].contains(&last.state.as_str())
        && !is_explained(Severity::Waiting)
    {
        findings.push(unfinished(last.description.clone(), updated, facts.now));
    }
    findings
}

/// An operation that nothing else explains. A controller reports an error long before an operation is that old.
fn unfinished(description: String, updated: Option<Timestamp>, now: Timestamp) -> Finding {
    let found = FindingKind::Operation.found("the operation", description).since(updated);
    if updated.is_none_or(|updated| now.duration_since(updated) <= ABANDONED_AFTER) {
        return found;
    }
    let step = "No controller has reported an error meanwhile: see whether one for Workers of this type runs and leads (its \
                pods, its Lease, its logs), and what the text waits for.";
    Finding { severity: Severity::Error, ..found.next(step) }
}

fn not_taken_up(facts: &Facts<'_>) -> Option<Finding> {
    let worker = &facts.worker;
    let now = facts.now;
    let request = Request::of(worker, now);
    if let Some(operation) = unsupported_migration(worker) {
        let message =
            format!("gardener.cloud/operation requests {operation:?}, which no controller for Workers supports");
        let found = FindingKind::NotTakenUp.found("the Worker", shortened(&message, LONGEST_REQUEST));
        let step = "Nothing is done for the Worker, not even a deletion. See which program has written the annotation; if it was a \
                    mistake, remove it and reconcile the Shoot.";
        return Some(found.next(step).since(request.time()));
    }
    let annotation = |name: &str| worker.metadata.annotations.as_ref().and_then(|annotations| annotations.get(name));
    if worker.status.last_operation.is_none() || request.is_awaited() {
        let since = request.time().or_else(|| moment(worker.metadata.creation_timestamp.as_ref()));
        let requested = annotation("gardener.cloud/operation").map_or("an operation", String::as_str);
        let message = format!("gardenlet has asked for {requested}, and no controller has taken it up");
        let found = FindingKind::NotTakenUp.found("the Worker", message).since(since);
        let is_late = since.is_none_or(|since| now.duration_since(since) > TAKEN_UP_WITHIN);
        return Some(if is_late { found } else { Finding { severity: Severity::Waiting, ..found } });
    }
    let seen = worker.status.observed_generation;
    let generation = worker.metadata.generation;
    let is_done = worker.status.last_operation.as_ref().is_some_and(|last| last.state == "Succeeded");
    (is_done && seen.zip(generation).is_some_and(|(seen, generation)| seen < generation)).then(|| {
        let message = "its specification has changed since the last reconcile, and gardenlet has not asked for another";
        FindingKind::NotRequested.found("the Worker", message)
    })
}

/// The fields of a condition that findings use.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
pub(super) struct Condition {
    #[serde(rename = "type")]
    condition_type: String,
    pub(super) status: String,
    reason: String,
    pub(super) message: String,
    pub(super) last_transition_time: Option<Timestamp>,
    codes: Vec<String>,
}

/// The recorded condition of this type.
pub(super) fn condition_of_type(facts: &Facts<'_>, of_type: ConditionType) -> Option<Condition> {
    let conditions = facts.worker.status.conditions.iter();
    let mut conditions = conditions.filter_map(|condition| serde_json::from_value::<Condition>(condition.clone()).ok());
    conditions.find(|condition| condition.condition_type == of_type.as_str())
}

/// The conditions about pools that can't be planned. Problems in other conditions are visible in the machines
/// themselves.
fn conditions(facts: &Facts<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    let read = |condition: &Value| serde_json::from_value::<Condition>(condition.clone()).ok();
    let unmet: Vec<Condition> = facts
        .worker
        .status
        .conditions
        .iter()
        .filter_map(read)
        .filter(|condition| condition.status == "False")
        .collect();
    for (of_type, kind) in
        [("ImageResolved", FindingKind::ImageNotResolved), ("PoolsDeployed", FindingKind::PoolInvalid)]
    {
        let Some(condition) = unmet.iter().find(|condition| condition.condition_type == of_type) else { continue };
        let is_repeated = condition.message.starts_with(WITHOUT_IMAGE);
        if !is_repeated && findings.iter().all(|known| known.message != condition.message) {
            let found = kind.found(of_type, condition.message.clone());
            let step = found.next_step.clone();
            let found = found.codes(codes(condition.codes.iter().map(String::as_str)));
            findings.push(found.next(step).since(condition.last_transition_time));
        }
    }
    findings
}

/// Zones that wait, stopped pools and pools on hold, as the condition `RollsHeld` reports them.
fn waiting_zones(facts: &Facts<'_>) -> Option<Finding> {
    let held = condition_of_type(facts, ConditionType::RollsHeld).filter(|held| held.status == "True")?;
    let kind = match held.reason.as_str() {
        ZONE_FAILS => FindingKind::ZoneFails,
        STOPPED => FindingKind::RollsStopped,
        BUDGET_USED_UP => FindingKind::RollsOnHold,
        _ => FindingKind::ZonesWait,
    };
    Some(kind.found(ConditionType::RollsHeld.as_str(), held.message).since(held.last_transition_time))
}

fn deletion(facts: &Facts<'_>) -> Option<Finding> {
    let since = moment(facts.worker.metadata.deletion_timestamp.as_ref())?;
    const LEFT: [(ObjectKind, &str); 4] = [
        (ObjectKind::Machine, "machines"),
        (ObjectKind::MachineSet, "machine sets"),
        (ObjectKind::MachineDeployment, "machine deployments"),
        (ObjectKind::MachineClass, "machine classes"),
    ];
    let left = LEFT.map(|(kind, words)| (facts.count(kind), words)).into_iter().filter(|(count, _)| *count > 0);
    let left: Vec<String> = left.map(|(count, words)| format!("{count} {words}")).collect();
    let left = if left.is_empty() { "no machine object".to_owned() } else { left.join(", ") };
    Some(FindingKind::Deletion.found("the Worker", format!("is being deleted; left: {left}")).since(Some(since)))
}

fn codes<'a>(texts: impl Iterator<Item = &'a str>) -> BTreeSet<ErrorCode> {
    texts.filter_map(|text| serde_json::from_value(Value::from(text)).ok()).collect()
}
