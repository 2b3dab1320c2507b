//! The images that are kept in the provider status, so that pools can go on using them when they leave the CloudProfile.

use serde_json::Value;

use crate::api::gardener::WorkerPool;

/// Each image of the planned pools once, in the order of the pools; then the images that pools which could not be planned
/// used before. Entries that `is_same` says are alike are listed once.
#[must_use]
pub fn status_images(
    planned: impl IntoIterator<Item = Value>,
    kept_before: impl IntoIterator<Item = Value>,
    failed: &[&WorkerPool],
    is_same: impl Fn(&Value, &Value) -> bool,
) -> Vec<Value> {
    let of_failed = kept_before.into_iter().filter(|kept| failed.iter().any(|pool| is_image_of(kept, pool)));
    let mut images: Vec<Value> = Vec::new();
    for image in planned.into_iter().chain(of_failed) {
        if !images.iter().any(|listed| is_same(listed, &image)) {
            images.push(image);
        }
    }
    images
}

fn is_image_of(kept: &Value, pool: &WorkerPool) -> bool {
    kept["name"] == pool.machine_image.name.as_str() && kept["version"] == pool.machine_image.version.as_str()
}
