//! What a look writes into the Worker itself: that an operation begins, the status, and that it lets go.

use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use super::controller::Shared;
use super::look::LookError;
use crate::api::gardener::Worker;
use crate::worker::operation::{FINALIZER, OPERATION_ANNOTATION, Operation, has_finalizer};
use crate::worker::report::{Outcome, status_patch};

/// Takes the request off the Worker, holds it with the finalizer, and says so in the status: two writes.
pub(super) async fn begin(worker: &Worker, operation: Operation, shared: &Shared) -> Result<Worker, LookError> {
    let api = workers(worker, shared);
    let name = worker.name_any();
    let mut fresh = None;
    if let Some(patch) = metadata_patch(worker, operation) {
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

fn metadata_patch(worker: &Worker, operation: Operation) -> Option<Value> {
    let mut metadata = json!({});
    let asked = worker.metadata.annotations.as_ref().and_then(|annotations| annotations.get(OPERATION_ANNOTATION));
    if asked.is_some_and(|asked| asked == "reconcile") {
        metadata["annotations"] = json!({ OPERATION_ANNOTATION: null });
    }
    if operation != Operation::Delete && !has_finalizer(worker) {
        let mut finalizers = worker.metadata.finalizers.clone().unwrap_or_default();
        finalizers.push(FINALIZER.to_owned());
        metadata["finalizers"] = json!(finalizers);
        // A merge patch writes the whole list: nobody else's finalizer may get lost.
        metadata["resourceVersion"] = json!(worker.metadata.resource_version);
    }
    let is_empty = metadata.as_object().is_none_or(serde_json::Map::is_empty);
    (!is_empty).then(|| json!({ "metadata": metadata }))
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

/// Lets a deleted Worker go.
pub(super) async fn release(worker: &Worker, shared: &Shared) -> Result<(), LookError> {
    let api: Api<Worker> = workers(worker, shared);
    let latest = match api.get_opt(&worker.name_any()).await? {
        Some(latest) => latest,
        None => return Ok(()),
    };
    let mut finalizers = latest.metadata.finalizers.clone().unwrap_or_default();
    finalizers.retain(|finalizer| finalizer != FINALIZER);
    let patch = json!({"metadata": {
        "finalizers": finalizers,
        "resourceVersion": latest.metadata.resource_version,
    }});
    match api.patch(&worker.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        Err(error) => return Err(error.into()),
    }
    let uid = worker.uid().unwrap_or_default();
    shared.written.forget(&uid);
    shared.pace.forget(&uid);
    Ok(())
}

fn workers(worker: &Worker, shared: &Shared) -> Api<Worker> {
    Api::namespaced(shared.client.clone(), &worker.namespace().unwrap_or_default())
}
