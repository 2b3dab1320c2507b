//! Workers that can't be decoded: an event and an error in the status say so.

use jiff::Timestamp;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};
use tracing::warn;

use super::controller::Shared;
use super::decode_guard::Guarded;
use super::look::LookError;
use super::worker_events;
use crate::api::gardener::Worker;
use crate::worker::operation::Operation;

/// A Worker that can't be decoded gets an event and an error in its status; nothing else can be done for it.
pub(super) async fn tell_undecodable(
    guarded: &Guarded<Worker>,
    reason: &str,
    shared: &Shared,
) -> Result<Action, LookError> {
    let Some(latest) = latest_if_served(guarded, shared).await? else { return Ok(Action::await_change()) };
    let text = |pointer: &str| latest.data.pointer(pointer).and_then(Value::as_str);
    let description = format!("Error reconciling Worker: the Worker can't be decoded: {reason}");
    if text("/status/lastError/description") == Some(&description) {
        return Ok(Action::await_change());
    }
    warn!(reason, "Worker can't be decoded");
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let patch = json!({"status": {
        "observedGeneration": guarded.meta().generation,
        "lastOperation": {
            "description": description,
            "lastUpdateTime": now,
            "progress": 50,
            "state": "Error",
            "type": Operation::Reconcile.as_str(),
        },
        "lastError": {
            "description": description,
            "codes": [crate::api::gardener::ErrorCode::ConfigurationProblem],
            "lastUpdateTime": now,
        },
    }});
    shared.recorder.tell(&guarded.object_ref(&()), worker_events::undecodable(reason)).await;
    untyped(guarded, shared).patch_status(&guarded.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(Action::await_change())
}

/// The Worker as it is now, untyped; `None` when it is gone or belongs to others.
pub(super) async fn latest_if_served(
    guarded: &Guarded<Worker>,
    shared: &Shared,
) -> Result<Option<DynamicObject>, kube::Error> {
    let latest = untyped(guarded, shared).get_opt(&guarded.name_any()).await?;
    Ok(latest.filter(|latest| {
        let text = |pointer: &str| latest.data.pointer(pointer).and_then(Value::as_str);
        shared.served.includes(text("/spec/type").unwrap_or_default(), text("/spec/class"))
    }))
}

fn untyped(guarded: &Guarded<Worker>, shared: &Shared) -> Api<DynamicObject> {
    let namespace = guarded.namespace().unwrap_or_default();
    Api::namespaced_with(shared.client.clone(), &namespace, &kube::api::ApiResource::erase::<Worker>(&()))
}
