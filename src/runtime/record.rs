//! What a look writes into the Worker itself: that an operation begins, the status, and that it lets go.

use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use futures::{FutureExt, join};
use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use super::controller::Shared;
use super::look::LookError;
use crate::api::gardener::Worker;
use crate::worker::operation::{Operation, begin_patch, end_patch, has_finalizer, is_unanswered, take_off_patch};
use crate::worker::reconcile::{Opening, PassError};
use crate::worker::report::{Outcome, status_patch};

/// The beginning of an operation, which is said in two writes: in the status, then by taking the request off and holding the
/// Worker with the finalizer. In this order, so that a request is never lost: what ends between them begins again. A new
/// Worker has no status that somebody could take for the end of its request: the end of its first pass is the first that is
/// said.
pub(super) struct Beginning<'a> {
    worker: &'a Worker,
    operation: Operation,
    shared: &'a Shared,
    begun: OnceLock<Arc<Worker>>,
}

impl<'a> Beginning<'a> {
    pub(super) fn of(worker: &'a Worker, operation: Operation, shared: &'a Shared) -> Self {
        Self { worker, operation, shared, begun: OnceLock::new() }
    }

    /// The Worker as it was after the beginning was said; `None` where it was not.
    pub(super) fn begun(&self) -> Option<&Worker> {
        self.begun.get().map(|begun| &**begun)
    }

    /// Says it; false when somebody has changed the Worker meanwhile: what it says now has not been looked at.
    pub(super) async fn try_say(&self) -> Result<bool, kube::Error> {
        let Some(begun) = begin(self.worker, self.operation, self.shared).await? else { return Ok(false) };
        // It is said once.
        let _ = self.begun.set(begun);
        Ok(true)
    }
}

impl Opening for Beginning<'_> {
    fn say(&self) -> BoxFuture<'_, Result<(), PassError>> {
        async {
            match self.try_say().await {
                Ok(true) => Ok(()),
                Ok(false) => Err(PassError::Overtaken),
                Err(source) => Err(PassError::Write { what: "Worker".to_owned(), source: source.into() }),
            }
        }
        .boxed()
    }
}

async fn begin(worker: &Worker, operation: Operation, shared: &Shared) -> Result<Option<Arc<Worker>>, kube::Error> {
    let api = workers(worker, shared);
    let (name, parameters) = (worker.name_any(), PatchParams::default());
    let mut begun = None;
    if !is_new(worker)
        && let Some(patch) = status_patch(worker, operation, &Outcome::Begun, None, Timestamp::now())
    {
        let written = api.patch_status(&name, &parameters, &Patch::Merge(of_version(patch, worker))).await;
        let Some(written) = unless_outdated(written)? else { return Ok(None) };
        begun = Some(shared.newest.written(written));
    }
    let latest = begun.as_deref().unwrap_or(worker);
    if let Some(patch) = begin_patch(latest, operation) {
        let written = api.patch(&name, &parameters, &Patch::Merge(of_version(patch, latest))).await;
        let Some(written) = unless_outdated(written)? else { return Ok(None) };
        begun = Some(shared.newest.written(written));
    }
    Ok(Some(begun.unwrap_or_else(|| Arc::new(worker.clone()))))
}

/// Whether the beginning may wait until it is known whether anything is to be done: of a Worker that was done and is held.
pub(super) fn may_be_settled(worker: &Worker, operation: Operation) -> bool {
    let last = worker.status.last_operation.as_ref();
    operation == Operation::Reconcile && has_finalizer(worker) && last.is_some_and(|last| last.state == "Succeeded")
}

/// Says that everything was found as it shall be, and takes the request off. Side by side where gardenlet's time of the request
/// tells whether it was answered; else the answer comes first, so that the request is not lost when the process ends, and in
/// the version that was looked at, so that no later request is taken off. `None` when somebody has changed the Worker meanwhile.
pub(super) async fn settled(
    worker: &Worker,
    patch: Option<Value>,
    shared: &Shared,
) -> Result<Option<Arc<Worker>>, LookError> {
    if let Some(operations) = take_off_patch(worker).filter(|_| is_unanswered(worker, Timestamp::now())) {
        let (answered, is_taken_off) = join!(status(worker, patch, shared), take_off(worker, operations, shared));
        let is_taken_off = is_taken_off?;
        return Ok(answered?.filter(|_| is_taken_off));
    }
    let (api, name, parameters) = (workers(worker, shared), worker.name_any(), PatchParams::default());
    let mut latest = None;
    if let Some(patch) = patch {
        let written = api.patch_status(&name, &parameters, &Patch::Merge(of_version(patch, worker))).await;
        let Some(written) = unless_outdated(written)? else { return Ok(None) };
        latest = Some(shared.newest.written(written));
    }
    let latest = latest.unwrap_or_else(|| Arc::new(worker.clone()));
    let Some(patch) = begin_patch(&latest, Operation::Reconcile) else { return Ok(Some(latest)) };
    let written = api.patch(&name, &parameters, &Patch::Merge(of_version(patch, &latest))).await;
    Ok(unless_outdated(written)?.map(|written| shared.newest.written(written)))
}

/// Takes a request off; false when it is another one by now.
async fn take_off(worker: &Worker, operations: json_patch::Patch, shared: &Shared) -> Result<bool, LookError> {
    let patch: Patch<()> = Patch::Json(operations);
    match workers(worker, shared).patch(&worker.name_any(), &PatchParams::default(), &patch).await {
        Ok(written) => {
            shared.newest.written(written);
            Ok(true)
        }
        // 422: a test of the patch has failed.
        Err(kube::Error::Api(status)) if [404, 409, 422].contains(&status.code) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Says of a new Worker that its operation goes on, where its first pass has nothing else to say: else the next would begin
/// anew.
pub(super) async fn goes_on(worker: &Worker, operation: Operation, shared: &Shared) -> Result<(), LookError> {
    if is_new(worker) {
        let patch = status_patch(worker, operation, &Outcome::Begun, None, Timestamp::now());
        status(worker, patch, shared).await?;
    }
    Ok(())
}

/// Whether nothing was ever said of its operations.
fn is_new(worker: &Worker) -> bool {
    worker.status.last_operation.is_none()
}

/// The patch of that version only.
fn of_version(mut patch: Value, worker: &Worker) -> Value {
    patch["metadata"]["resourceVersion"] = json!(worker.metadata.resource_version);
    patch
}

fn unless_outdated<T>(written: Result<T, kube::Error>) -> Result<Option<T>, kube::Error> {
    match written {
        Ok(written) => Ok(Some(written)),
        Err(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes the status; nothing without a patch, or when the Worker is gone.
pub(super) async fn status(
    worker: &Worker,
    patch: Option<Value>,
    shared: &Shared,
) -> Result<Option<Arc<Worker>>, LookError> {
    let Some(patch) = patch else { return Ok(None) };
    let api = workers(worker, shared);
    match api.patch_status(&worker.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await {
        Ok(written) => Ok(Some(shared.newest.written(written))),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Writes conditions of a Worker that rests, in the version that was looked at: another one is looked at as well.
pub(super) async fn at_rest(worker: &Worker, patch: Value, shared: &Shared) -> Result<(), LookError> {
    let patch = Patch::Merge(of_version(patch, worker));
    let written = workers(worker, shared).patch_status(&worker.name_any(), &PatchParams::default(), &patch).await;
    if let Some(written) = unless_outdated(written)? {
        shared.newest.written(written);
    }
    Ok(())
}

/// Lets a Worker go that is deleted or moved away, and takes off a request that stays until its end. `worker` is as it was
/// after the last write.
pub(super) async fn end(worker: &Worker, operation: Operation, shared: &Shared) -> Result<(), LookError> {
    let api = workers(worker, shared);
    let (uid, mut latest) = (worker.uid().unwrap_or_default(), Some(worker.clone()));
    while let Some(patch) = latest.as_ref().and_then(|latest| end_patch(latest, operation)) {
        match api.patch(&worker.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await {
            Ok(written) => {
                let is_held = written.metadata.finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty());
                if is_held || written.metadata.deletion_timestamp.is_none() {
                    shared.newest.written(written);
                    return Ok(());
                }
                latest = None;
            }
            // Somebody else has written the Worker; what they ask for decides.
            Err(kube::Error::Api(status)) if status.is_conflict() => {
                latest = api.get_opt(&worker.name_any()).await?;
            }
            Err(kube::Error::Api(status)) if status.is_not_found() => latest = None,
            Err(error) => return Err(error.into()),
        }
    }
    if latest.is_none() {
        shared.newest.gone(&uid);
    }
    Ok(())
}

fn workers(worker: &Worker, shared: &Shared) -> Api<Worker> {
    Api::namespaced(shared.client.clone(), &worker.namespace().unwrap_or_default())
}
