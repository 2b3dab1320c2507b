//! The `WorkerStatus` document that is written to `status.providerStatus`.

use serde_json::{Value, json};

use super::documents::WorkerStatus;
use crate::provider::image::{images_document, status_images};
use crate::provider::{DependencyRecord, PoolPlan};
use wire::api::gardener::WorkerPool;

/// The images of all pools, and all scale set records including those of failed pools.
pub(super) fn provider_status(
    previous: Option<&WorkerStatus>,
    scale_sets: &[DependencyRecord],
    planned: &[&PoolPlan],
    failed: &[&WorkerPool],
) -> Value {
    let planned = planned.iter().map(|plan| plan.status_image.clone());
    let kept_before = previous.iter().flat_map(|status| &status.machine_images);
    let kept_before = kept_before.map(|kept| json!(kept));
    let images = status_images(planned, kept_before, failed);
    let mut document = images_document::<WorkerStatus>(images);
    if !scale_sets.is_empty() {
        document["vmoDependencies"] = json!(scale_sets);
    }
    document
}
