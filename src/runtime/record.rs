//! What a look writes into the Worker itself: that an operation begins, the status, and that it lets go.

use std::time::Instant;

use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::Value;

use super::controller::Shared;
use super::look::LookError;
use crate::api::gardener::Worker;
use crate::worker::operation::{Operation, begin_patch, end_patch};
use crate::worker::report::{Outcome, status_patch};

/// Takes the request off the Worker, holds it with the finalizer, and says so in the status: two writes.
pub(super) async fn begin(worker: &Worker, operation: Operation, shared: &Shared) -> Result<Worker, LookError> {
    let api = workers(worker, shared);
    let name = worker.name_any();
    let mut fresh = None;
    if let Some(patch) = begin_patch(worker, operation) {
        let written = api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        shared.written.remember(&written);
        fresh = Some(written);
    }
    let worker = fresh.as_ref().unwrap_or(worker);
    let patch = status_patch(worker, operation, &Outcome::Begun, None, Timestamp::now());
    let written = status(worker, patch, shared).await?;
    // A beginning always has a patch; without one the Worker is as it was.
    Ok(written.unwrap_or_else(|| worker.clone()))
}

/// Writes the status; nothing without a patch, or when the Worker is gone.
pub(super) async fn status(
    worker: &Worker,
    patch: Option<Value>,
    shared: &Shared,
) -> Result<Option<Worker>, LookError> {
    let Some(patch) = patch else { return Ok(None) };
    let api = workers(worker, shared);
    match api.patch_status(&worker.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await {
        Ok(written) => {
            shared.written.remember(&written);
            Ok(Some(written))
        }
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error.into()),
    }
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
                if written.metadata.deletion_timestamp.is_some() && !is_held {
                    latest = None;
                } else {
                    shared.written.remember(&written);
                    return Ok(());
                }
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
        shared.written.gone(&uid, Instant::now());
        shared.pace.forget(&uid);
        shared.pool_states.forget(&uid);
        if let Some(cloud) = shared.clouds.for_worker_type(&worker.spec.worker_type) {
            cloud.forget(&uid);
        }
    }
    Ok(())
}

fn workers(worker: &Worker, shared: &Shared) -> Api<Worker> {
    Api::namespaced(shared.client.clone(), &worker.namespace().unwrap_or_default())
}
