//! Volumes of a pool: their sizes and the order in which they become devices.

use crate::api::gardener::{DataVolume, WorkerPool};

/// A size in GiB: the leading digits of the text, if there are any and the number is not too large. The unit is
/// ignored, as the Go extensions do.
#[must_use]
pub fn size_in_gib(size: &str) -> Option<i64> {
    let end = size.find(|character: char| !character.is_ascii_digit()).unwrap_or(size.len());
    size[..end].parse().ok()
}

/// Data volumes in the order of their names, in which they are numbered.
#[must_use]
pub fn sorted_data_volumes(pool: &WorkerPool) -> Vec<&DataVolume> {
    let mut volumes: Vec<_> = pool.data_volumes.iter().collect();
    volumes.sort_by(|left, right| left.name.cmp(&right.name));
    volumes
}
