//! The `WorkerStatus` document that is written to `status.providerStatus` (spec/azure-worker.md sections 6 and 7.3).

use serde_json::Value;

use super::documents::{API_VERSION, ScaleSetDependency, StatusImage, WorkerStatus};
use crate::api::gardener::WorkerPool;
use crate::provider::PoolPlan;
use crate::provider::document::Document;

/// Each image of the planned pools once, in the order of the pools; then the images that pools which could not be planned
/// used before. No record of a scale set is ever lost.
pub(super) fn provider_status(
    previous: Option<&WorkerStatus>,
    scale_sets: &[ScaleSetDependency],
    planned: &[&PoolPlan],
    failed: &[&WorkerPool],
) -> Value {
    let mut images: Vec<Value> = Vec::new();
    let mut add = |image: Value| {
        if !images.contains(&image) {
            images.push(image);
        }
    };
    for plan in planned {
        add(plan.status_image.clone());
    }
    for kept in previous.iter().flat_map(|status| &status.machine_images) {
        if failed.iter().any(|pool| is_image_of(kept, pool)) {
            add(serde_json::to_value(kept).unwrap_or_default());
        }
    }
    let mut document = serde_json::json!({ "apiVersion": API_VERSION, "kind": WorkerStatus::KIND });
    if !images.is_empty() {
        document["machineImages"] = images.into();
    }
    if !scale_sets.is_empty() {
        document["vmoDependencies"] = serde_json::to_value(scale_sets).unwrap_or_default();
    }
    document
}

fn is_image_of(kept: &StatusImage, pool: &WorkerPool) -> bool {
    kept.name == pool.machine_image.name && kept.version == pool.machine_image.version
}
