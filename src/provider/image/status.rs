//! The images that are kept in the provider status, so that pools can go on using them when they leave the CloudProfile.

use serde_json::Value;

use crate::api::gardener::WorkerPool;

/// Each image of the planned pools once, in the order of the pools; then the images that pools which could not be planned
/// used before.
#[must_use]
pub fn status_images(
    planned: impl IntoIterator<Item = Value>,
    kept_before: impl IntoIterator<Item = Value>,
    failed: &[&WorkerPool],
) -> Vec<Value> {
    let is_of_failed =
        |kept: &Value| failed.iter().any(|pool| is_image_of(pool, kept["name"].as_str(), kept["version"].as_str()));
    each_once(planned.into_iter().chain(kept_before.into_iter().filter(is_of_failed)), Value::eq)
}

/// Whether a pool asks for the image of that name and version.
pub(in crate::provider) fn is_image_of(pool: &WorkerPool, name: Option<&str>, version: Option<&str>) -> bool {
    name == Some(&pool.machine_image.name) && version == Some(&pool.machine_image.version)
}

/// The first of those that are alike.
pub(in crate::provider) fn each_once<Image>(
    images: impl IntoIterator<Item = Image>,
    is_same: impl Fn(&Image, &Image) -> bool,
) -> Vec<Image> {
    let mut once: Vec<Image> = Vec::new();
    for image in images {
        if !once.iter().any(|listed| is_same(listed, &image)) {
            once.push(image);
        }
    }
    once
}
