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
    let api: Api<DynamicObject> = Api::namespaced_with(
        shared.client.clone(),
        &guarded.namespace().unwrap_or_default(),
        &kube::api::ApiResource::erase::<Worker>(&()),
    );
    let Some(latest) = api.get_opt(&guarded.name_any()).await? else { return Ok(Action::await_change()) };
    let text = |pointer: &str| latest.data.pointer(pointer).and_then(Value::as_str);
    let is_served = shared.served.includes(text("/spec/type").unwrap_or_default(), text("/spec/class"));
    let description = format!("Error reconciling Worker: the Worker can't be decoded: {reason}");
    if !is_served || text("/status/lastError/description") == Some(&description) {
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
    api.patch_status(&guarded.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(Action::await_change())
}
