//! Pure: what a reconcile writes into the status of its Worker, put together from everything that it has found.

use jiff::Timestamp;
use serde_json::Value;

use crate::api::gardener::Worker;
use crate::worker::conditions::Condition;
use crate::worker::plan::Plan;
use crate::worker::progress::Progress;
use crate::worker::request::Operation;
use crate::worker::status::{
    Failure, Published, ReconcileOutcome, status_patch, with_conditions, with_in_place_updates,
};
use crate::worker::status_text::TextSize;

/// What a reconcile has found, as far as the status says it.
#[derive(Clone, Copy)]
pub struct Findings<'a> {
    /// The operation.
    pub operation: Operation,
    /// How it stands.
    pub outcome: &'a ReconcileOutcome,
    /// What gardenlet and the autoscaler read besides.
    pub published: Option<&'a Published>,
    /// The plan and how its machines stand, where both are known.
    pub deployed: Option<(&'a Plan, &'a Progress)>,
    /// Conditions that were found out.
    pub conditions: &'a [Condition],
    /// Whether events are published about it.
    pub has_events: bool,
}

/// What is to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusReport {
    /// Patch of the status; none where it says all of it.
    pub patch: Option<Value>,
    /// Whether it only says in other words how the operation stands: nobody acts on it, so it may wait for a moment.
    pub is_only_text: bool,
}

/// What is to be written into the status of a Worker, with texts of that size.
#[must_use]
pub fn status_report(worker: &Worker, findings: Findings<'_>, now: Timestamp, texts: TextSize) -> StatusReport {
    let Findings { operation, outcome, published, deployed, conditions, has_events } = findings;
    let mut patch = status_patch(worker, operation, outcome, published, now, texts);
    if let (Some((plan, progress)), ReconcileOutcome::Succeeded) = (deployed, outcome) {
        patch = with_in_place_updates(worker, plan, progress, patch);
    }
    let patch = with_conditions(worker, conditions, now, texts, patch);
    // What events were published about is written at once, or the next reconcile would publish them again.
    let is_only_text = !has_events && is_same_state(worker, outcome) && patch.as_ref().is_some_and(has_only_texts);
    StatusReport { patch, is_only_text }
}

/// What is written into the status when an operation begins; nothing for a new Worker, whose status nobody could take for the
/// end of its request.
#[must_use]
pub fn begin_status_patch(worker: &Worker, operation: Operation, now: Timestamp, texts: TextSize) -> Option<Value> {
    let is_new = worker.status.last_operation.is_none();
    if is_new { None } else { status_patch(worker, operation, &ReconcileOutcome::Started, None, now, texts) }
}

/// What keeps the operation of a new Worker going, whose first reconcile has nothing else to report: else the next would begin
/// anew.
#[must_use]
pub fn keep_processing_patch(worker: &Worker, operation: Operation, now: Timestamp, texts: TextSize) -> Option<Value> {
    let is_new = worker.status.last_operation.is_none();
    if is_new { status_patch(worker, operation, &ReconcileOutcome::Started, None, now, texts) } else { None }
}

/// What is written where no report fits into the Worker: that it does not fit, and nothing else.
#[must_use]
pub fn too_large_patch(
    worker: &Worker,
    operation: Operation,
    refusal: &str,
    now: Timestamp,
    texts: TextSize,
) -> Option<Value> {
    let failed = ReconcileOutcome::Failed(Failure::new(format!("the status does not fit into the Worker: {refusal}")));
    status_patch(worker, operation, &failed, None, now, texts)
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

fn has_only_texts(patch: &Value) -> bool {
    const TEXTS: [&str; 4] = ["lastOperation", "lastError", "observedGeneration", "conditions"];
    let mut members = patch["status"].as_object().into_iter().flat_map(serde_json::Map::keys);
    members.all(|member| TEXTS.contains(&member.as_str()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_texts_are_delayed() {
        let last = json!({"type": "Reconcile", "state": "Processing", "description": "", "progress": 1});
        let worker = json!({"spec": {"type": "azure"}, "status": {"lastOperation": last}});
        let worker: Worker = serde_json::from_str(&worker.to_string()).unwrap();
        let waiting = ReconcileOutcome::Waiting("2 of 3".to_owned(), 50);
        let findings = Findings {
            operation: Operation::Reconcile,
            outcome: &waiting,
            published: None,
            deployed: None,
            conditions: &[],
            has_events: false,
        };
        let is_only_text = |findings: Findings<'_>| {
            status_report(&worker, findings, Timestamp::UNIX_EPOCH, TextSize::Full).is_only_text
        };
        assert!(is_only_text(findings));
        assert!(!is_only_text(Findings { has_events: true, ..findings }), "its event would be written again");
        let published = Published { provider_status: json!({"a": 1}), ..Published::default() };
        let changed = Findings { published: Some(&published), ..findings };
        assert!(!is_only_text(changed), "somebody acts on it");
        assert!(!is_only_text(Findings { outcome: &ReconcileOutcome::Succeeded, ..findings }), "gardenlet acts on it");
    }
}
