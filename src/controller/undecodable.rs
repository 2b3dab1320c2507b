//! Workers that can't be decoded: an event and an error in the status say so.

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};
use tracing::warn;

use crate::api::bounded_text::shortened;
use crate::api::gardener::Worker;
use crate::cluster::decode_guard::Guarded;
use crate::cluster::identity::Identity;
use crate::controller::context::ControllerContext;
use crate::controller::error::ReconcileError;
use crate::controller::events;
use crate::controller::queue::Requeue;
use crate::worker::request::Operation;

/// Most bytes of the reason, which may repeat what stands in the Worker.
const LONGEST_REASON: usize = 1024;

/// A Worker that can't be decoded gets an event and an error in its status; nothing else can be done for it.
pub(crate) async fn report_undecodable(
    guarded: &Guarded<Worker>,
    reason: &str,
    controller: &ControllerContext,
) -> Result<Requeue, ReconcileError> {
    let Some(latest) = latest_if_served(guarded, controller).await? else { return Ok(Requeue::OnEvent) };
    let text = |pointer: &str| latest.data.pointer(pointer).and_then(Value::as_str);
    let reason = &shortened(reason, LONGEST_REASON);
    let description = format!("Error reconciling Worker: the Worker can't be decoded: {reason}");
    if text("/status/lastError/description") == Some(&description) {
        return Ok(Requeue::OnEvent);
    }
    warn!(reason, "Worker can't be decoded");
    let now = controller.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
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
    if let Some(identity) = Identity::of(guarded) {
        controller.events.publish::<Worker>(&identity, events::undecodable(reason)).await;
    }
    let (api, parameters) = (untyped(guarded, controller), PatchParams::default());
    let written = api.patch_status(&guarded.name_any(), &parameters, &Patch::Merge(patch)).await;
    written.map_err(ReconcileError::of_worker)?;
    Ok(Requeue::OnEvent)
}

/// The Worker as it is now, untyped; `None` when it is gone or belongs to others, be it another shard.
pub(crate) async fn latest_if_served(
    guarded: &Guarded<Worker>,
    controller: &ControllerContext,
) -> Result<Option<DynamicObject>, ReconcileError> {
    let latest = untyped(guarded, controller).get_opt(&guarded.name_any()).await.map_err(ReconcileError::of_worker)?;
    Ok(latest.filter(|latest| {
        let text = |pointer: &str| latest.data.pointer(pointer).and_then(Value::as_str);
        controller.owns(latest.metadata.labels.as_ref())
            && controller.served.includes(text("/spec/type").unwrap_or_default(), text("/spec/class"))
    }))
}

fn untyped(guarded: &Guarded<Worker>, controller: &ControllerContext) -> Api<DynamicObject> {
    let namespace = guarded.namespace();
    Api::namespaced_with(controller.client.clone(), namespace, &kube::api::ApiResource::erase::<Worker>(&()))
}
