//! The `WorkerStatus` document that is written to `status.providerStatus` (spec/azure-worker.md sections 6 and 7.3).

use serde_json::Value;

use super::documents::{API_VERSION, ScaleSetDependency, WorkerStatus};
use crate::api::gardener::WorkerPool;
use crate::provider::PoolPlan;
use crate::provider::document::Document;
use crate::provider::status_images::status_images;

/// The images of all pools. No record of a scale set is ever lost.
pub(super) fn provider_status(
    previous: Option<&WorkerStatus>,
    scale_sets: &[ScaleSetDependency],
    planned: &[&PoolPlan],
    failed: &[&WorkerPool],
) -> Value {
    let planned = planned.iter().map(|plan| plan.status_image.clone());
    let kept_before = previous.iter().flat_map(|status| &status.machine_images);
    let kept_before = kept_before.map(|kept| serde_json::to_value(kept).unwrap_or_default());
    let images = status_images(planned, kept_before, failed, |listed, image| listed == image);
    let mut document = serde_json::json!({ "apiVersion": API_VERSION, "kind": WorkerStatus::KIND });
    if !images.is_empty() {
        document["machineImages"] = images.into();
    }
    if !scale_sets.is_empty() {
        document["vmoDependencies"] = serde_json::to_value(scale_sets).unwrap_or_default();
    }
    document
}
