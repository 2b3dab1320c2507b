//! What a reconcile writes into the Worker itself: that an operation begins, the status, and that it lets go.
//!
//! A status that the API server refuses for its size is written with shorter texts, so that somebody is told whatever the size.

use std::sync::Arc;

use futures::join;
use jiff::Timestamp;
use kube::api::{Api, Patch, PatchParams};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};
use tracing::warn;

use crate::api::gardener::Worker;
use crate::cluster::too_large::is_too_large;
use crate::controller::context::ControllerContext;
use crate::controller::error::ReconcileError;
use crate::controller::events::status_too_large;
use crate::worker::request::{Operation, RequestRemoval, begin_patch, end_patch};
use crate::worker::status_report::begin_status_patch;
use crate::worker::status_text::TextSize;

/// Writes that an operation begins: `Processing` into the status, then the request off and the finalizer on. In this order, so
/// that a request is never lost: what ends between them begins again. Returns the Worker after it; `None` when somebody has
/// changed the Worker meanwhile: what it asks for now has not been read.
pub(crate) async fn mark_processing(
    worker: &Worker,
    operation: Operation,
    controller: &ControllerContext,
) -> Result<Option<Arc<Worker>>, ReconcileError> {
    let now = Timestamp::now();
    let status = |texts: TextSize| begin_status_patch(worker, operation, now, texts);
    patch_in_order(worker, status, begin_patch(worker, operation), controller).await
}

/// Answers a request that found everything as wanted, and removes it. `None` when somebody has changed the Worker meanwhile.
pub(crate) async fn answer_no_op(
    worker: &Worker,
    patch: impl Fn(TextSize) -> Option<Value>,
    removal: RequestRemoval,
    controller: &ControllerContext,
) -> Result<Option<Arc<Worker>>, ReconcileError> {
    match removal {
        RequestRemoval::Beside(removal) => {
            let (answered, is_removed) =
                join!(patch_status(worker, patch, controller), remove_request(worker, removal, controller));
            let is_removed = is_removed?;
            Ok(answered?.filter(|_| is_removed))
        }
        RequestRemoval::After(metadata) => patch_in_order(worker, patch, metadata, controller).await,
    }
}

/// Patches the status, then the metadata, each of the version before; `None` when somebody has changed the Worker meanwhile.
async fn patch_in_order(
    worker: &Worker,
    status: impl Fn(TextSize) -> Option<Value>,
    metadata: Option<Value>,
    controller: &ControllerContext,
) -> Result<Option<Arc<Worker>>, ReconcileError> {
    let latest = match patch_status_of_version(worker, status, controller).await? {
        StatusWrite::Outdated => return Ok(None),
        StatusWrite::Unchanged => Arc::new(worker.clone()),
        StatusWrite::Written(written) => written,
    };
    let Some(patch) = metadata else { return Ok(Some(latest)) };
    let patch = Patch::Merge(of_version(patch, &latest));
    match workers(worker, controller).patch(&worker.name_any(), &PatchParams::default(), &patch).await {
        Ok(written) => Ok(Some(controller.cache.workers.own_write(written))),
        Err(error) if is_outdated(&error) => Ok(None),
        Err(error) => Err(ReconcileError::of_worker(error)),
    }
}

/// Removes the operation annotation; false when it is another request by now.
async fn remove_request(
    worker: &Worker,
    removal: json_patch::Patch,
    controller: &ControllerContext,
) -> Result<bool, ReconcileError> {
    let patch: Patch<()> = Patch::Json(removal);
    match workers(worker, controller).patch(&worker.name_any(), &PatchParams::default(), &patch).await {
        Ok(written) => {
            controller.cache.workers.own_write(written);
            Ok(true)
        }
        // 422: a test of the patch has failed.
        Err(kube::Error::Api(status)) if [404, 409, 422].contains(&status.code) => Ok(false),
        Err(error) => Err(ReconcileError::of_worker(error)),
    }
}

/// Patches the status; nothing without a patch, or when the Worker is gone.
pub(crate) async fn patch_status(
    worker: &Worker,
    patch: impl Fn(TextSize) -> Option<Value>,
    controller: &ControllerContext,
) -> Result<Option<Arc<Worker>>, ReconcileError> {
    match patch_status_that_fits(worker, patch, controller).await {
        Ok(written) => Ok(written),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        Err(error) => Err(ReconcileError::of_worker(error)),
    }
}

/// What has become of the status of the version that was read.
pub(crate) enum StatusWrite {
    /// There was nothing to write.
    Unchanged,
    /// The Worker as it is now.
    Written(Arc<Worker>),
    /// Somebody else has changed the Worker meanwhile.
    Outdated,
}

/// Patches the status of the version that was read.
pub(crate) async fn patch_status_of_version(
    worker: &Worker,
    patch: impl Fn(TextSize) -> Option<Value>,
    controller: &ControllerContext,
) -> Result<StatusWrite, ReconcileError> {
    let patch = |texts: TextSize| Some(of_version(patch(texts)?, worker));
    match patch_status_that_fits(worker, patch, controller).await {
        Ok(written) => Ok(written.map_or(StatusWrite::Unchanged, StatusWrite::Written)),
        Err(error) if is_outdated(&error) => Ok(StatusWrite::Outdated),
        Err(error) => Err(ReconcileError::of_worker(error)),
    }
}

/// Patches the status with the longest texts that the API server takes; an event tells when it takes none. `None` without a
/// patch.
async fn patch_status_that_fits(
    worker: &Worker,
    patch: impl Fn(TextSize) -> Option<Value>,
    controller: &ControllerContext,
) -> Result<Option<Arc<Worker>>, kube::Error> {
    let (api, name) = (workers(worker, controller), worker.name_any());
    let mut refusal = None;
    for texts in TextSize::ALL {
        let Some(patch) = patch(texts) else { return Ok(None) };
        match api.patch_status(&name, &PatchParams::default(), &Patch::Merge(patch)).await {
            Ok(written) => return Ok(Some(controller.cache.workers.own_write(written))),
            Err(error) if is_too_large(&error) => {
                warn!(%error, ?texts, "the status is too large");
                refusal = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    let Some(error) = refusal else { return Ok(None) };
    controller.events.publish(&worker.object_ref(&()), status_too_large(&error.to_string())).await;
    Err(error)
}

/// The patch of that version only.
fn of_version(mut patch: Value, worker: &Worker) -> Value {
    patch["metadata"]["resourceVersion"] = json!(worker.metadata.resource_version);
    patch
}

/// Whether somebody else has changed or deleted the Worker since it was read.
fn is_outdated(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_conflict() || status.is_not_found())
}

/// Lets a Worker go that is deleted or moved away, and takes off a request that stays until its end. `worker` is as it was
/// after the last write.
pub(crate) async fn let_go(
    worker: &Worker,
    operation: Operation,
    controller: &ControllerContext,
) -> Result<(), ReconcileError> {
    let api = workers(worker, controller);
    let mut latest = worker.clone();
    while let Some(patch) = end_patch(&latest, operation) {
        match api.patch(&worker.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await {
            Ok(written) => {
                let is_held = written.metadata.finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty());
                if is_held || written.metadata.deletion_timestamp.is_none() {
                    controller.cache.workers.own_write(written);
                } else {
                    controller.cache.workers.own_deletion(worker);
                }
                return Ok(());
            }
            // Somebody else has written the Worker; what they ask for decides.
            Err(kube::Error::Api(status)) if status.is_conflict() => {
                let read = api.get_opt(&worker.name_any()).await.map_err(ReconcileError::of_worker)?;
                // A watch shows that it is gone, if that is so.
                let Some(read) = read else { return Ok(()) };
                latest = read;
            }
            Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(()),
            Err(error) => return Err(ReconcileError::of_worker(error)),
        }
    }
    Ok(())
}

fn workers(worker: &Worker, controller: &ControllerContext) -> Api<Worker> {
    Api::namespaced(controller.client.clone(), &worker.namespace().unwrap_or_default())
}
