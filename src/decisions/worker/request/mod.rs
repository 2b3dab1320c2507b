//! Pure step: the operation that is requested for a Worker, by the protocol between gardenlet and extensions
//! (docs/contract.md).

pub mod decode;
pub mod other_workers;
pub mod reconcile_state;
pub mod steady;

use jiff::{SignedDuration, Timestamp};
use json_patch::jsonptr::PointerBuf;
use json_patch::{Patch, PatchOperation, RemoveOperation, TestOperation};
use serde_json::{Value, json};

use wire::api::gardener::Worker;

/// Annotation by which gardenlet requests an operation.
pub const OPERATION_ANNOTATION: &str = "gardener.cloud/operation";
/// Annotation with the time of gardenlet's request.
pub const TIMESTAMP_ANNOTATION: &str = "gardener.cloud/timestamp";
/// Tolerated clock skew of gardenlet. Request times further ahead are ignored.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(1);
/// Finalizer of this extension on Workers.
pub const FINALIZER: &str = "extensions.gardener.cloud/worker";

/// An operation of the contract, named in `lastOperation.type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The first reconciliation.
    Create,
    /// Every later reconciliation.
    Reconcile,
    /// The Worker is being deleted.
    Delete,
    /// The control plane moves to another seed.
    Migrate,
    /// The control plane has moved to this seed.
    Restore,
}

impl Operation {
    /// Its name in `lastOperation.type`.
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

/// What to do with a Worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Do nothing.
    Nothing,
    /// Start an operation.
    Begin(Operation),
    /// Continue an operation.
    Continue(Operation),
}

/// Operation that gardenlet requests with its annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Annotation {
    None,
    Reconcile,
    Migrate,
    Restore,
    /// The state of the machines is not in the status yet, so nothing may start.
    WaitForState,
    /// A migration that the contract does not define, such as one of a newer Gardener.
    UnsupportedMigration,
    /// One that extensions do not act on.
    Other,
}

/// What gardenlet requests of a Worker. It is read once from each version of the Worker and passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    annotation: Annotation,
    /// Time of the request; `None` if the annotation is missing or invalid.
    time: Option<Timestamp>,
    /// Whether the clock of its author is wrong: too far ahead.
    is_in_future: bool,
    /// Whether the time of the request is after that of the last status.
    is_unanswered: bool,
}

impl Request {
    /// Reads the request of a Worker.
    #[must_use]
    pub fn of(worker: &Worker, now: Timestamp) -> Self {
        let time: Option<Timestamp> = worker
            .metadata
            .annotations
            .as_ref()
            .and_then(|annotations| annotations.get(TIMESTAMP_ANNOTATION)?.parse().ok());
        let is_in_future = time.is_some_and(|time| time.duration_since(now) > CLOCK_SKEW);
        let last = worker.status.last_operation.as_ref();
        let completed: Option<Timestamp> = last.and_then(|last| last.last_update_time.parse().ok());
        let is_later = completed.zip(time).is_some_and(|(completed, time)| completed.as_second() < time.as_second());
        Self { annotation: annotation(worker), time, is_in_future, is_unanswered: is_later && !is_in_future }
    }

    /// Its time; `None` if the annotation is missing or invalid.
    #[must_use]
    pub fn time(&self) -> Option<Timestamp> {
        self.time
    }

    /// Its time, unless the clock of its author is wrong.
    #[must_use]
    pub fn plausible_time(&self) -> Option<Timestamp> {
        if self.is_in_future { None } else { self.time }
    }

    /// Whether gardenlet waits for a result: it requests a reconcile that has not started yet, or has made a request
    /// since the status was written.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        self.annotation == Annotation::Reconcile || self.is_unanswered
    }

    /// Time of a result written now: never before the request, because gardenlet, whose clock may be ahead, would not
    /// accept it.
    #[must_use]
    pub fn completed_at(&self, now: Timestamp) -> Timestamp {
        self.plausible_time().map_or(now, |time| time.max(now))
    }

    /// Decides by annotation, deletion timestamp, last operation and finalizer, and whether gardenlet still waits for a
    /// result.
    #[must_use]
    pub fn decide(&self, worker: &Worker) -> Decision {
        let last = worker.status.last_operation.as_ref();
        let last_is = |operation: Operation| last.is_some_and(|last| last.operation_type == operation.as_str());
        let succeeded = last.is_some_and(|last| last.state == "Succeeded");
        // An operation that creates machines requires the finalizer, even if the process ended between the two writes
        // of its start.
        let is_held = |operation: Operation| !creates_machines(operation) || has_finalizer(worker);
        let begun = |operation: Operation| {
            let continues = last_is(operation) && !succeeded && is_held(operation);
            if continues { Decision::Continue(operation) } else { Decision::Begin(operation) }
        };
        match self.annotation {
            // Nothing is deleted either: the machines may run for another seed by then.
            Annotation::WaitForState | Annotation::UnsupportedMigration => return Decision::Nothing,
            Annotation::Migrate => return begun(Operation::Migrate),
            Annotation::None | Annotation::Reconcile | Annotation::Restore | Annotation::Other => {}
        }
        if worker.metadata.deletion_timestamp.is_some() {
            return if has_finalizer(worker) { begun(Operation::Delete) } else { Decision::Nothing };
        }
        if self.annotation == Annotation::Restore {
            return begun(Operation::Restore);
        }
        if last_is(Operation::Migrate) && succeeded {
            return Decision::Nothing;
        }
        let unfinished = [Operation::Create, Operation::Migrate, Operation::Restore]
            .into_iter()
            .find(|operation| last_is(*operation));
        let operation = match unfinished {
            Some(operation) if !succeeded => operation,
            _ if last.is_none() => Operation::Create,
            _ => Operation::Reconcile,
        };
        if self.annotation == Annotation::Reconcile || last.is_none() {
            Decision::Begin(operation)
        } else if succeeded && !self.is_unanswered {
            Decision::Nothing
        } else if is_held(operation) {
            Decision::Continue(operation)
        } else {
            Decision::Begin(operation)
        }
    }

    /// Chooses how to remove the annotation of a no-op reconcile, by the request time that gardenlet has set.
    #[must_use]
    pub fn removal(&self, worker: &Worker) -> RequestRemoval {
        if self.is_unanswered
            && let Some(removal) = remove_operation_annotation(worker)
        {
            return RequestRemoval::Beside(removal);
        }
        RequestRemoval::After(start_patch(worker, Operation::Reconcile))
    }
}

/// What starts an operation of a Worker without an annotation (`--ignore-operation-annotation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// Nothing: an operation is requested, under way or failed.
    None,
    /// Its generation has changed since the last reconcile.
    Generation,
    /// It is reconciled; only its Cluster and Secrets may have changed.
    Cluster,
}

/// What may start an operation of a Worker for which [`Request::decide`] finds no request.
#[must_use]
pub fn trigger(worker: &Worker) -> Trigger {
    let last = worker.status.last_operation.as_ref();
    let is_done = last.is_some_and(|last| {
        last.state == "Succeeded" && !["Migrate", "Delete"].contains(&last.operation_type.as_str())
    });
    if !is_done || annotation(worker) != Annotation::None || worker.metadata.deletion_timestamp.is_some() {
        Trigger::None
    } else if worker.status.observed_generation == worker.metadata.generation {
        Trigger::Cluster
    } else {
        Trigger::Generation
    }
}

/// Whether the control plane is being migrated, according to the requested or the last operation.
#[must_use]
pub fn is_moving(worker: &Worker) -> bool {
    let is_begun = worker.status.last_operation.as_ref().is_some_and(|last| {
        let is_last = |operation: Operation| last.operation_type == operation.as_str();
        is_last(Operation::Migrate) || is_last(Operation::Restore) && last.state != "Succeeded"
    });
    is_begun
        || matches!(
            annotation(worker),
            Annotation::Migrate | Annotation::Restore | Annotation::WaitForState | Annotation::UnsupportedMigration
        )
}

fn creates_machines(operation: Operation) -> bool {
    !matches!(operation, Operation::Delete | Operation::Migrate)
}

/// The metadata patch that starts an operation: removes the annotation that requests a reconcile, and adds the
/// finalizer if the operation creates objects. `None` if there is nothing to write.
#[must_use]
pub fn start_patch(worker: &Worker, operation: Operation) -> Option<Value> {
    let mut metadata = json!({});
    if annotation(worker) == Annotation::Reconcile {
        metadata["annotations"] = json!({ OPERATION_ANNOTATION: null });
    }
    if creates_machines(operation) && !has_finalizer(worker) {
        let mut finalizers = worker.metadata.finalizers.clone().unwrap_or_default();
        finalizers.push(FINALIZER.to_owned());
        metadata["finalizers"] = json!(finalizers);
        // A merge patch writes the whole list, and another controller's finalizer must not be lost.
        metadata["resourceVersion"] = json!(worker.metadata.resource_version);
    }
    metadata_patch(metadata)
}

/// The metadata patch after a successful operation: removes the finalizer of a deleted or migrated Worker, and the
/// annotations that request migrate or restore, which stay until then. One patch, so that no client observes a Worker
/// without its request but with its finalizer. `None` if there is nothing to write.
#[must_use]
pub fn completion_patch(worker: &Worker, operation: Operation) -> Option<Value> {
    let mut metadata = json!({});
    if matches!(operation, Operation::Delete | Operation::Migrate) && has_finalizer(worker) {
        let others = worker.metadata.finalizers.iter().flatten().filter(|finalizer| *finalizer != FINALIZER);
        metadata["finalizers"] = json!(others.collect::<Vec<_>>());
    }
    let request = match operation {
        Operation::Migrate => Some(Annotation::Migrate),
        Operation::Restore => Some(Annotation::Restore),
        Operation::Create | Operation::Reconcile | Operation::Delete => None,
    };
    if request == Some(annotation(worker)) {
        metadata["annotations"] = json!({ OPERATION_ANNOTATION: null });
    }
    // Neither another controller's finalizer nor a newer request must be lost.
    let is_empty = metadata.as_object().is_none_or(serde_json::Map::is_empty);
    if !is_empty {
        metadata["resourceVersion"] = json!(worker.metadata.resource_version);
    }
    metadata_patch(metadata)
}

/// The metadata patch that removes the annotation of a no-op reconcile: only of that very request, regardless of
/// concurrent status writes. `None` if requests can't be distinguished, or if more has to be written.
#[must_use]
pub fn remove_operation_annotation(worker: &Worker) -> Option<Patch> {
    let requested = worker.metadata.annotations.as_ref()?.get(TIMESTAMP_ANNOTATION)?;
    if annotation(worker) != Annotation::Reconcile || !has_finalizer(worker) {
        return None;
    }
    let test = |path: &[&str], value: Value| {
        PatchOperation::Test(TestOperation { path: PointerBuf::from_tokens(path.iter().copied()), value })
    };
    let request = ["metadata", "annotations", OPERATION_ANNOTATION];
    Some(Patch(vec![
        test(&["metadata", "uid"], json!(worker.metadata.uid)),
        test(&["metadata", "generation"], json!(worker.metadata.generation)),
        test(&["metadata", "annotations", TIMESTAMP_ANNOTATION], json!(requested)),
        test(&request, json!("reconcile")),
        PatchOperation::Remove(RemoveOperation { path: PointerBuf::from_tokens(request) }),
    ]))
}

/// How to remove the annotation of a no-op reconcile.
#[derive(Clone, Debug, PartialEq)]
pub enum RequestRemoval {
    /// Concurrently with the status, because gardenlet's request time shows whether it was completed. Only that very
    /// request is removed.
    Beside(Patch),
    /// After the status, so that the request is not lost if the process ends in between, and with the known resource
    /// version, so that no later request is removed.
    After(Option<Value>),
}

fn metadata_patch(metadata: Value) -> Option<Value> {
    let is_empty = metadata.as_object().is_none_or(serde_json::Map::is_empty);
    (!is_empty).then(|| json!({ "metadata": metadata }))
}

/// The requested operation if it is a migration that the contract does not define.
#[must_use]
pub fn unsupported_migration(worker: &Worker) -> Option<&str> {
    if annotation(worker) == Annotation::UnsupportedMigration { annotation_value(worker) } else { None }
}

fn annotation_value(worker: &Worker) -> Option<&str> {
    worker.metadata.annotations.as_ref()?.get(OPERATION_ANNOTATION).map(String::as_str)
}

fn annotation(worker: &Worker) -> Annotation {
    match annotation_value(worker) {
        Some("reconcile") => Annotation::Reconcile,
        Some("migrate") => Annotation::Migrate,
        Some("restore") => Annotation::Restore,
        Some("wait-for-state") => Annotation::WaitForState,
        Some(value) if value.contains("migrate") => Annotation::UnsupportedMigration,
        Some(_) => Annotation::Other,
        None => Annotation::None,
    }
}

/// Whether the Worker has the finalizer of this extension.
#[must_use]
pub fn has_finalizer(worker: &Worker) -> bool {
    worker.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == FINALIZER)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// 2026-01-01T00:00:00Z
    const NOW: Timestamp = Timestamp::constant(1_767_225_600, 0);

    fn worker(metadata: Value, status: Value) -> Worker {
        let document = json!({"metadata": metadata, "spec": {"type": "azure"}, "status": status});
        serde_json::from_str(&document.to_string()).unwrap()
    }

    fn decided(worker: &Worker) -> Decision {
        Request::of(worker, NOW).decide(worker)
    }

    fn last(operation: &str, state: &str) -> Value {
        json!({"lastOperation": {"type": operation, "state": state, "description": "", "progress": 1}})
    }

    #[test]
    fn new_generation_triggers_operation() {
        let done = |metadata: Value, operation: &str, state: &str| {
            let mut status = last(operation, state);
            status["observedGeneration"] = json!(2);
            let worker = worker(metadata, status);
            (decided(&worker), trigger(&worker))
        };
        for (metadata, operation, expected) in [
            (json!({"generation": 2}), "Create", Trigger::Cluster),
            (json!({"generation": 3}), "Reconcile", Trigger::Generation),
            (json!({"generation": 3}), "Migrate", Trigger::None),
            (
                json!({"generation": 3, "annotations": {"gardener.cloud/operation": "wait-for-state"}}),
                "Restore",
                Trigger::None,
            ),
            (json!({"generation": 3, "deletionTimestamp": "2026-01-01T00:00:00Z"}), "Reconcile", Trigger::None),
        ] {
            let found = done(metadata.clone(), operation, "Succeeded");
            assert_eq!(found, (Decision::Nothing, expected), "{metadata} {operation}");
        }
        assert_eq!(done(json!({"generation": 3}), "Reconcile", "Error").1, Trigger::None, "it goes on anyway");
    }

    #[test]
    fn decides_operation_by_contract() {
        let annotated = |operation: &str| json!({"annotations": {"gardener.cloud/operation": operation}});
        let held = |mut metadata: Value| {
            metadata["finalizers"] = json!([FINALIZER]);
            metadata
        };
        let deleted = json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [FINALIZER]});
        let deleted_by = |operation: &str| {
            let mut metadata = held(annotated(operation));
            metadata["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            metadata
        };
        for (metadata, status, expected) in [
            (json!({}), json!({}), Decision::Begin(Operation::Create)),
            (annotated("reconcile"), json!({}), Decision::Begin(Operation::Create)),
            (annotated("reconcile"), last("Create", "Succeeded"), Decision::Begin(Operation::Reconcile)),
            (annotated("reconcile"), last("Create", "Error"), Decision::Begin(Operation::Create)),
            (held(json!({})), last("Create", "Processing"), Decision::Continue(Operation::Create)),
            // The process ended between the two writes of a start, or the request is for another operation.
            (annotated("restore"), last("Restore", "Processing"), Decision::Begin(Operation::Restore)),
            (json!({}), last("Create", "Processing"), Decision::Begin(Operation::Create)),
            (annotated("reconcile"), last("Reconcile", "Processing"), Decision::Begin(Operation::Reconcile)),
            (held(json!({})), last("Reconcile", "Error"), Decision::Continue(Operation::Reconcile)),
            (held(annotated("restore")), last("Restore", "Processing"), Decision::Continue(Operation::Restore)),
            (annotated("migrate"), last("Migrate", "Processing"), Decision::Continue(Operation::Migrate)),
            (json!({}), last("Reconcile", "Succeeded"), Decision::Nothing),
            (json!({}), last("Migrate", "Succeeded"), Decision::Nothing),
            (annotated("wait-for-state"), json!({}), Decision::Nothing),
            (annotated("migrate"), last("Reconcile", "Succeeded"), Decision::Begin(Operation::Migrate)),
            (annotated("restore"), last("Migrate", "Succeeded"), Decision::Begin(Operation::Restore)),
            (deleted.clone(), last("Reconcile", "Succeeded"), Decision::Begin(Operation::Delete)),
            (deleted, last("Delete", "Processing"), Decision::Continue(Operation::Delete)),
            (json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}), json!({}), Decision::Nothing),
            (annotated("live-migrate"), json!({}), Decision::Nothing),
            (annotated("live-migrate"), last("Reconcile", "Succeeded"), Decision::Nothing),
            (held(annotated("live-migrate")), last("Reconcile", "Processing"), Decision::Nothing),
            (deleted_by("live-migrate"), last("Migrate", "Succeeded"), Decision::Nothing),
            (deleted_by("unknown"), last("Reconcile", "Succeeded"), Decision::Begin(Operation::Delete)),
        ] {
            assert_eq!(decided(&worker(metadata.clone(), status.clone())), expected, "{metadata} {status}");
        }
    }

    #[test]
    fn is_moving_until_restored() {
        let annotated = |operation: &str| json!({"annotations": {OPERATION_ANNOTATION: operation}});
        for (metadata, status, moves) in [
            (annotated("migrate"), last("Reconcile", "Succeeded"), true),
            (json!({}), last("Migrate", "Processing"), true),
            (json!({}), last("Migrate", "Succeeded"), true),
            (annotated("wait-for-state"), json!({}), true),
            (annotated("restore"), json!({}), true),
            (json!({}), last("Restore", "Error"), true),
            (json!({}), last("Restore", "Succeeded"), false),
            (annotated("reconcile"), last("Reconcile", "Succeeded"), false),
            (json!({}), json!({}), false),
        ] {
            assert_eq!(is_moving(&worker(metadata.clone(), status.clone())), moves, "{metadata} {status}");
        }
    }

    #[test]
    fn continues_removed_unanswered_request() {
        let found = |requested: &str, completed: &str, state: &str| {
            let metadata = json!({"finalizers": [FINALIZER], "annotations": {TIMESTAMP_ANNOTATION: requested}});
            let last = json!({
                "type": "Create", "state": state, "description": "", "progress": 100, "lastUpdateTime": completed,
            });
            let worker = worker(metadata, json!({ "lastOperation": last }));
            (decided(&worker), Request::of(&worker, NOW).completed_at(NOW).to_string())
        };
        let before = "2025-12-31T23:59:50Z";
        let now = "2026-01-01T00:00:00Z";
        for (requested, completed, state, decision, result) in [
            ("2025-12-31T23:59:58.9Z", before, "Succeeded", Decision::Continue(Operation::Reconcile), now),
            ("2025-12-31T23:59:58.9Z", before, "Error", Decision::Continue(Operation::Create), now),
            ("2025-12-31T23:59:50.9Z", before, "Succeeded", Decision::Nothing, now),
            // gardenlet's clock is ahead, is too far ahead, or its time is invalid.
            (
                "2026-01-01T00:00:30Z",
                before,
                "Succeeded",
                Decision::Continue(Operation::Reconcile),
                "2026-01-01T00:00:30Z",
            ),
            (
                "2026-01-01T00:01:00Z",
                before,
                "Succeeded",
                Decision::Continue(Operation::Reconcile),
                "2026-01-01T00:01:00Z",
            ),
            ("2026-01-01T00:01:01Z", before, "Succeeded", Decision::Nothing, now),
            ("2026-01-01T00:00:30Z", "2026-01-01T00:00:30Z", "Succeeded", Decision::Nothing, "2026-01-01T00:00:30Z"),
            ("2027-01-01T00:00:00Z", before, "Succeeded", Decision::Nothing, now),
            ("yesterday", before, "Succeeded", Decision::Nothing, now),
            ("2025-12-31T23:59:58.9Z", "", "Succeeded", Decision::Nothing, now),
        ] {
            let expected = (decision, result.to_owned());
            assert_eq!(found(requested, completed, state), expected, "{requested} {completed} {state}");
        }
    }

    #[test]
    fn removes_only_known_request() {
        let document = |requested: &str, generation: u32| {
            json!({
                "metadata": {
                    "uid": "u", "generation": generation, "finalizers": [FINALIZER], "resourceVersion": "7",
                    "annotations": {OPERATION_ANNOTATION: "reconcile", TIMESTAMP_ANNOTATION: requested},
                },
                "spec": {"type": "azure"},
            })
        };
        let read: Worker = serde_json::from_str(&document("2026-01-01T00:00:00Z", 3).to_string()).unwrap();
        let patch = remove_operation_annotation(&read).unwrap();
        let removed = |mut document: Value| json_patch::patch(&mut document, &patch).map(|()| document);
        let mut expected = document("2026-01-01T00:00:00Z", 3);
        expected["metadata"]["resourceVersion"] = json!("8");
        let mut written = expected.clone();
        written["status"] = json!({"lastOperation": {"state": "Succeeded"}});
        let left = removed(written).unwrap();
        assert_eq!(left["metadata"]["annotations"], json!({TIMESTAMP_ANNOTATION: "2026-01-01T00:00:00Z"}));
        assert!(removed(document("2026-01-01T00:00:01Z", 3)).is_err(), "a later request");
        assert!(removed(document("2026-01-01T00:00:00Z", 4)).is_err(), "another specification");
        assert!(removed(left).is_err(), "none");
        let without = |member: &str| {
            let mut document = document("2026-01-01T00:00:00Z", 3);
            document["metadata"][member] = Value::Null;
            remove_operation_annotation(&serde_json::from_str(&document.to_string()).unwrap())
        };
        assert_eq!(without("annotations"), None);
        assert_eq!(without("finalizers"), None, "the finalizer has to be written as well");
    }

    /// Metadata changes at the start and the end of an operation, with another controller's finalizer on the Worker.
    #[test]
    fn patches_follow_contract() {
        let held = json!(["foreign", FINALIZER]);
        let removed = json!({"annotations": {OPERATION_ANNOTATION: null}});
        let release = json!({"finalizers": ["foreign"]});
        let both = json!({"annotations": {OPERATION_ANNOTATION: null}, "finalizers": ["foreign"]});
        for (operation, request, begins, ends) in [
            (Operation::Reconcile, "reconcile", Some(&removed), None),
            (Operation::Restore, "restore", None, Some(&removed)),
            (Operation::Migrate, "migrate", None, Some(&both)),
            (Operation::Delete, "", None, Some(&release)),
            // Gardener has requested another operation in the meantime, which must not be lost.
            (Operation::Restore, "wait-for-state", None, None),
            (Operation::Migrate, "restore", None, Some(&release)),
        ] {
            let worker = worker(
                json!({"annotations": {OPERATION_ANNOTATION: request}, "finalizers": held, "resourceVersion": "7"}),
                json!({}),
            );
            let changed = |patch: Option<Value>| {
                let mut metadata = patch?["metadata"].clone();
                if operation != Operation::Reconcile {
                    assert_eq!(metadata["resourceVersion"], "7", "{operation:?}");
                    metadata.as_object_mut()?.remove("resourceVersion");
                }
                Some(metadata)
            };
            assert_eq!(changed(start_patch(&worker, operation)).as_ref(), begins, "{operation:?} {request}");
            assert_eq!(changed(completion_patch(&worker, operation)).as_ref(), ends, "{operation:?} {request}");
        }
    }

    #[test]
    fn adds_finalizer_only_if_creating_machines() {
        for (operation, holds) in [
            (Operation::Create, true),
            (Operation::Reconcile, true),
            (Operation::Restore, true),
            (Operation::Migrate, false),
            (Operation::Delete, false),
        ] {
            let patch = start_patch(&worker(json!({"finalizers": ["foreign"]}), json!({})), operation);
            let finalizers = patch.map(|patch| patch["metadata"]["finalizers"].clone());
            assert_eq!(finalizers, holds.then(|| json!(["foreign", FINALIZER])), "{operation:?}");
        }
    }
}
