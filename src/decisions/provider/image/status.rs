//! Images kept in the provider status, so that pools can still use them after their removal from the CloudProfile.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::provider::{PoolPlan, WorkerError};
use wire::api::gardener::WorkerPool;
use wire::api::gotext::json::{DecodeError, decode_value};

/// The distinct images of the planned pools in pool order, followed by the previous images of pools that could not be
/// planned.
#[must_use]
pub fn status_images(
    planned: impl IntoIterator<Item = Value>,
    kept_before: impl IntoIterator<Item = Value>,
    failed: &[&WorkerPool],
) -> Vec<Value> {
    let kept = kept_before.into_iter().filter(|kept| is_of_any(failed, kept));
    each_once(planned.into_iter().chain(kept), Value::eq)
}

/// Whether one of the pools uses the image of an entry.
fn is_of_any(pools: &[&WorkerPool], entry: &Value) -> bool {
    pools.iter().any(|pool| is_image_of(pool, entry["name"].as_str(), entry["version"].as_str()))
}

/// As [`status_images`], with provider-specific comparison. Each entry is a document of the provider with the `name`
/// and `version` of an image.
///
/// # Errors
/// If a planned image is not a valid entry.
pub(in crate::provider) fn recorded_images<Image: Clone + DeserializeOwned + Serialize>(
    before: &[Image],
    planned: &[&PoolPlan],
    failed: &[&WorkerPool],
    is_same: impl Fn(&Image, &Image) -> bool,
) -> Result<Vec<Value>, WorkerError> {
    let read = |plan: &&PoolPlan| {
        let unreadable = |source: DecodeError| WorkerError::Document {
            path: format!("image of pool {:?}", plan.pool),
            source: source.into(),
        };
        decode_value(&plan.status_image).map_err(unreadable)
    };
    let planned = planned.iter().map(read).collect::<Result<Vec<Image>, _>>()?;
    let is_of_failed = |kept: &&Image| is_of_any(failed, &json!(kept));
    let kept = before.iter().filter(is_of_failed).cloned();
    Ok(each_once(planned.into_iter().chain(kept), is_same).into_iter().map(|image| json!(image)).collect())
}

/// Whether a pool uses the image of that name and version.
pub(super) fn is_image_of(pool: &WorkerPool, name: Option<&str>, version: Option<&str>) -> bool {
    name == Some(&pool.machine_image.name) && version == Some(&pool.machine_image.version)
}

/// Removes duplicates and keeps the first of each.
pub(super) fn each_once<Image>(
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
