//! Where a reconcile of a Worker stands: named states, and one function that leads from one to the next.
//!
//! ```text
//!              ┌─ nothing asked ──► Steady ── something asked after all ──┐
//!  Worker ─────┼─ asked, was done ──────────► Checking ── all as wanted ──┼──► NoOp        answered without Processing
//!              │                                 │ work found             │
//!              ├─ asked ────────────────────► Requested ── marked ────────┴──► Started     Processing is written
//!              └─ begun before ─────────────► Continued
//! ```
//!
//! Somebody else's write of the Worker leads to `Overtaken`, whatever the state: the next reconcile sees what they ask for.

use jiff::Timestamp;

use crate::api::gardener::Worker;
use crate::worker::request::{Decision, Operation, decide, has_finalizer};

/// Where a reconcile stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReconcileState {
    /// Nothing is asked of the Worker; its machines are only followed.
    Steady,
    /// An operation is asked for of a Worker that was done: whether there is anything to do is found out before the status
    /// says that it begins.
    Checking(Operation),
    /// An operation is asked for; the status has to say so before anything else is written.
    Requested(Operation),
    /// This reconcile has written that the operation begins.
    Started(Operation),
    /// An earlier reconcile has.
    Continued(Operation),
    /// Everything was found as wanted: the request is answered as it is removed.
    NoOp(Operation),
    /// Somebody else has changed the Worker meanwhile.
    Overtaken,
}

/// What happens to a reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReconcileEvent {
    /// Something is to be written, to be waited for or to be reported.
    WorkFound,
    /// Everything was found as wanted.
    NothingToDo,
    /// The status says `Processing` now.
    Marked,
    /// The Worker is not as it was read.
    Conflict,
}

impl ReconcileState {
    /// How a reconcile begins.
    #[must_use]
    pub fn of(worker: &Worker, now: Timestamp) -> Self {
        match decide(worker, now) {
            Decision::Nothing => Self::Steady,
            Decision::Begin(operation) => Self::beginning(worker, operation),
            Decision::Continue(operation) => Self::Continued(operation),
        }
    }

    /// How an operation begins.
    #[must_use]
    pub fn beginning(worker: &Worker, operation: Operation) -> Self {
        let was_done = worker.status.last_operation.as_ref().is_some_and(|last| last.state == "Succeeded");
        let may_be_done = operation == Operation::Reconcile && has_finalizer(worker) && was_done;
        if may_be_done { Self::Checking(operation) } else { Self::Requested(operation) }
    }

    /// The operation; none where nothing is asked, or asked of somebody else by now.
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

    /// Whether the operation begins with this reconcile.
    #[must_use]
    pub fn is_beginning(self) -> bool {
        matches!(self, Self::Checking(_) | Self::Requested(_) | Self::Started(_) | Self::NoOp(_))
    }

    /// Whether the status has to say that the operation begins before anything else is written.
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
    use serde_json::json;

    use super::ReconcileEvent::{Conflict, Marked, NothingToDo, WorkFound};
    use super::ReconcileState::{Checking, Continued, NoOp, Overtaken, Requested, Started, Steady};
    use super::*;

    const RECONCILE: Operation = Operation::Reconcile;

    #[test]
    fn each_event_leads_to_the_state_of_the_table() {
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
    fn an_operation_begins_once_and_only_a_request_is_marked_first() {
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
    fn only_a_worker_that_was_done_and_is_held_is_checked_first() {
        let state = |operation: &str, state: &str, annotation: Option<&str>, finalizers: &[&str]| {
            let annotations = annotation.map(|value| json!({"gardener.cloud/operation": value}));
            let last = json!({"type": operation, "state": state, "description": "", "progress": 1});
            let worker = json!({
                "metadata": {"annotations": annotations, "finalizers": finalizers},
                "spec": {"type": "azure"},
                "status": {"lastOperation": last},
            });
            let worker: Worker = serde_json::from_str(&worker.to_string()).unwrap();
            ReconcileState::of(&worker, Timestamp::UNIX_EPOCH)
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
