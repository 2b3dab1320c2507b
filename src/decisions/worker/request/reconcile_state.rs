//! States of a reconcile, and the transitions between them.
//!
//! ```text
//!              ┌─ no request ─────► Steady ── operation starts anyway ────┐
//!  Worker ─────┼─ request, was done ────────► Checking ── no-op ──────────┼──► NoOp        completed without Processing
//!              │                                 │ work found             │
//!              ├─ request ──────────────────► Requested ── marked ────────┴──► Started     Processing is written
//!              └─ started before ───────────► Continued
//! ```
//!
//! When another client writes the Worker, any state changes to `Overtaken`, and the next reconcile observes the new
//! request.

use crate::worker::request::{Decision, Operation, Request, has_finalizer};
use wire::api::gardener::Worker;

/// State of a reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReconcileState {
    /// No operation is requested; the machines are only observed.
    Steady,
    /// An operation is requested and the last one has succeeded. The reconcile checks whether there is anything to do
    /// before it marks the operation as started.
    Checking(Operation),
    /// An operation is requested. It must be marked as started in the status before anything else is written.
    Requested(Operation),
    /// This reconcile has marked the operation as started.
    Started(Operation),
    /// An earlier reconcile has marked the operation as started.
    Continued(Operation),
    /// Nothing has to change: the operation completes and its annotation is removed.
    NoOp(Operation),
    /// Another client has changed the Worker in the meantime.
    Overtaken,
}

/// Event during a reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReconcileEvent {
    /// There is something to write, to wait for or to report.
    WorkFound,
    /// Nothing has to change.
    NothingToDo,
    /// The status is `Processing`.
    Marked,
    /// The Worker has changed since it was read.
    Conflict,
}

impl ReconcileState {
    /// Initial state of a reconcile.
    #[must_use]
    pub fn of(worker: &Worker, request: &Request) -> Self {
        match request.decide(worker) {
            Decision::Nothing => Self::Steady,
            Decision::Begin(operation) => Self::beginning(worker, operation),
            Decision::Continue(operation) => Self::Continued(operation),
        }
    }

    /// Initial state of an operation.
    #[must_use]
    pub fn beginning(worker: &Worker, operation: Operation) -> Self {
        let was_done = worker.status.last_operation.as_ref().is_some_and(|last| last.state == "Succeeded");
        let may_be_done = operation == Operation::Reconcile && has_finalizer(worker) && was_done;
        if may_be_done { Self::Checking(operation) } else { Self::Requested(operation) }
    }

    /// The operation; `None` if none is requested or another client has changed the Worker.
    #[must_use]
    pub fn operation(self) -> Option<Operation> {
        match self {
            Self::Steady | Self::Overtaken => None,
            Self::Checking(operation)
            | Self::Requested(operation)
            | Self::Started(operation)
            | Self::Continued(operation)
            | Self::NoOp(operation) => Some(operation),
        }
    }

    /// Whether the operation starts with this reconcile.
    #[must_use]
    pub fn is_beginning(self) -> bool {
        matches!(self, Self::Checking(_) | Self::Requested(_) | Self::Started(_) | Self::NoOp(_))
    }

    /// Whether the operation must be marked as started before anything else is written.
    #[must_use]
    pub fn must_mark_processing(self) -> bool {
        matches!(self, Self::Requested(_))
    }

    /// The state after an event.
    #[must_use]
    pub fn next(self, event: ReconcileEvent) -> Self {
        match (self, event) {
            (_, ReconcileEvent::Conflict) => Self::Overtaken,
            (Self::Checking(operation), ReconcileEvent::WorkFound) => Self::Requested(operation),
            (Self::Checking(operation), ReconcileEvent::NothingToDo) => Self::NoOp(operation),
            (Self::Requested(operation), ReconcileEvent::Marked) => Self::Started(operation),
            (state, _) => state,
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::ReconcileEvent::{Conflict, Marked, NothingToDo, WorkFound};
    use super::ReconcileState::{Checking, Continued, NoOp, Overtaken, Requested, Started, Steady};
    use super::*;

    const RECONCILE: Operation = Operation::Reconcile;

    #[test]
    fn events_follow_transition_table() {
        let table = [
            (Steady, [Steady, Steady, Steady, Overtaken]),
            (Checking(RECONCILE), [Requested(RECONCILE), NoOp(RECONCILE), Checking(RECONCILE), Overtaken]),
            (Requested(RECONCILE), [Requested(RECONCILE), Requested(RECONCILE), Started(RECONCILE), Overtaken]),
            (Started(RECONCILE), [Started(RECONCILE), Started(RECONCILE), Started(RECONCILE), Overtaken]),
            (Continued(RECONCILE), [Continued(RECONCILE), Continued(RECONCILE), Continued(RECONCILE), Overtaken]),
            (NoOp(RECONCILE), [NoOp(RECONCILE), NoOp(RECONCILE), NoOp(RECONCILE), Overtaken]),
            (Overtaken, [Overtaken, Overtaken, Overtaken, Overtaken]),
        ];
        for (state, expected) in table {
            assert_eq!(
                [WorkFound, NothingToDo, Marked, Conflict].map(|event| state.next(event)),
                expected,
                "{state:?}"
            );
        }
    }

    #[test]
    fn only_requested_is_marked_processing() {
        for (state, begins, is_marked) in [
            (Steady, false, false),
            (Checking(RECONCILE), true, false),
            (Requested(RECONCILE), true, true),
            (Started(RECONCILE), true, false),
            (Continued(RECONCILE), false, false),
            (NoOp(RECONCILE), true, false),
            (Overtaken, false, false),
        ] {
            assert_eq!((state.is_beginning(), state.must_mark_processing()), (begins, is_marked), "{state:?}");
        }
    }

    #[test]
    fn checks_only_succeeded_worker_with_finalizer() {
        let state = |operation: &str, state: &str, annotation: Option<&str>, finalizers: &[&str]| {
            let annotations = annotation.map(|value| json!({"gardener.cloud/operation": value}));
            let last = json!({"type": operation, "state": state, "description": "", "progress": 1});
            let worker = json!({
                "metadata": {"annotations": annotations, "finalizers": finalizers},
                "spec": {"type": "azure"},
                "status": {"lastOperation": last},
            });
            let worker: Worker = serde_json::from_str(&worker.to_string()).unwrap();
            ReconcileState::of(&worker, &Request::of(&worker, Timestamp::UNIX_EPOCH))
        };
        let held = [crate::worker::request::FINALIZER];
        assert_eq!(state("Reconcile", "Succeeded", Some("reconcile"), &held), Checking(RECONCILE));
        assert_eq!(state("Reconcile", "Succeeded", Some("reconcile"), &[]), Requested(RECONCILE));
        assert_eq!(state("Reconcile", "Error", Some("reconcile"), &held), Requested(RECONCILE));
        assert_eq!(state("Reconcile", "Processing", None, &held), Continued(RECONCILE));
        assert_eq!(state("Reconcile", "Succeeded", None, &held), Steady);
        assert_eq!(state("Restore", "Succeeded", Some("restore"), &held), Requested(Operation::Restore));
    }
}
