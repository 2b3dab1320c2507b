//! Events on Workers: one function per reason.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType, Recorder};
use tracing::warn;

/// A Worker can't be decoded.
pub(super) async fn undecodable(recorder: &Recorder, worker: &ObjectReference, reason: &str) {
    let event = Event {
        type_: EventType::Warning,
        reason: "WorkerUndecodable".to_owned(),
        note: Some(format!("The Worker can't be decoded, so nothing is done for it: {reason}")),
        action: "Decode".to_owned(),
        secondary: None,
    };
    if let Err(error) = recorder.publish(&event, worker).await {
        warn!(%error, "event can't be written");
    }
}
