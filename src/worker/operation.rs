//! Pure step: what a Worker asks for, by the protocol between gardenlet and extensions
//! (spec/azure-worker.md section 2, spec/gardener-core.md section 5.1).

use crate::api::gardener::Worker;

/// Annotation by which gardenlet asks for an operation.
pub const OPERATION_ANNOTATION: &str = "gardener.cloud/operation";
/// Finalizer of this extension on Workers.
pub const FINALIZER: &str = "extensions.gardener.cloud/worker";

/// An operation of the contract; its name stands in `lastOperation.type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// First time.
    Create,
    /// Every later time.
    Reconcile,
    /// The Worker is being deleted.
    Delete,
    /// The control plane moves away.
    Migrate,
    /// The control plane has moved here.
    Restore,
}

impl Operation {
    /// As in `lastOperation.type`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "Create",
            Self::Reconcile => "Reconcile",
            Self::Delete => "Delete",
            Self::Migrate => "Migrate",
            Self::Restore => "Restore",
        }
    }
}

/// What is to be done with a Worker now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nothing.
    Nothing,
    /// A new operation begins.
    Begin(Operation),
    /// An operation that has begun goes on.
    GoOn(Operation),
}

/// Decides by annotation, deletion timestamp, last operation and finalizer.
#[must_use]
pub fn decide(worker: &Worker) -> Decision {
    let annotation = worker.metadata.annotations.as_ref().and_then(|annotations| annotations.get(OPERATION_ANNOTATION));
    let annotation = annotation.map(String::as_str);
    let last = worker.status.last_operation.as_ref();
    let last_is = |operation: Operation| last.is_some_and(|last| last.operation_type == operation.as_str());
    let succeeded = last.is_some_and(|last| last.state == "Succeeded");
    let begun = |operation: Operation| {
        if last_is(operation) && !succeeded { Decision::GoOn(operation) } else { Decision::Begin(operation) }
    };
    match annotation {
        Some("wait-for-state") => return Decision::Nothing,
        Some("migrate") => return begun(Operation::Migrate),
        _ => {}
    }
    if worker.metadata.deletion_timestamp.is_some() {
        return if has_finalizer(worker) { begun(Operation::Delete) } else { Decision::Nothing };
    }
    if annotation == Some("restore") {
        return begun(Operation::Restore);
    }
    if last_is(Operation::Migrate) && succeeded {
        return Decision::Nothing;
    }
    let unfinished =
        [Operation::Create, Operation::Migrate, Operation::Restore].into_iter().find(|operation| last_is(*operation));
    let operation = match unfinished {
        Some(operation) if !succeeded => operation,
        _ if last.is_none() => Operation::Create,
        _ => Operation::Reconcile,
    };
    if annotation == Some("reconcile") || last.is_none() {
        Decision::Begin(operation)
    } else if succeeded {
        Decision::Nothing
    } else {
        Decision::GoOn(operation)
    }
}

/// Whether this extension holds the Worker.
#[must_use]
pub fn has_finalizer(worker: &Worker) -> bool {
    worker.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == FINALIZER)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn worker(metadata: Value, status: Value) -> Worker {
        let document = json!({"metadata": metadata, "spec": {"type": "azure"}, "status": status});
        serde_json::from_str(&document.to_string()).unwrap()
    }

    fn last(operation: &str, state: &str) -> Value {
        json!({"lastOperation": {"type": operation, "state": state, "description": "", "progress": 1}})
    }

    #[test]
    fn the_protocol_of_operations() {
        let annotated = |operation: &str| json!({"annotations": {"gardener.cloud/operation": operation}});
        let deleted = json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [FINALIZER]});
        for (metadata, status, expected) in [
            (json!({}), json!({}), Decision::Begin(Operation::Create)),
            (annotated("reconcile"), json!({}), Decision::Begin(Operation::Create)),
            (annotated("reconcile"), last("Create", "Succeeded"), Decision::Begin(Operation::Reconcile)),
            (annotated("reconcile"), last("Create", "Error"), Decision::Begin(Operation::Create)),
            (json!({}), last("Create", "Processing"), Decision::GoOn(Operation::Create)),
            (json!({}), last("Reconcile", "Error"), Decision::GoOn(Operation::Reconcile)),
            (json!({}), last("Reconcile", "Succeeded"), Decision::Nothing),
            (json!({}), last("Migrate", "Succeeded"), Decision::Nothing),
            (annotated("wait-for-state"), json!({}), Decision::Nothing),
            (annotated("migrate"), last("Reconcile", "Succeeded"), Decision::Begin(Operation::Migrate)),
            (annotated("restore"), last("Migrate", "Succeeded"), Decision::Begin(Operation::Restore)),
            (deleted.clone(), last("Reconcile", "Succeeded"), Decision::Begin(Operation::Delete)),
            (deleted, last("Delete", "Processing"), Decision::GoOn(Operation::Delete)),
            (json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}), json!({}), Decision::Nothing),
        ] {
            assert_eq!(decide(&worker(metadata.clone(), status.clone())), expected, "{metadata} {status}");
        }
    }
}
