//! Sizes and order of the volumes of a pool.

use wire::api::gardener::{DataVolume, WorkerPool};

/// Parses a size in GiB: the leading digits of the text, or `None` if there are none or the number is too large. The
/// unit is ignored, as in the Go extensions.
#[must_use]
pub fn size_in_gib(size: &str) -> Option<i64> {
    let end = size.find(|character: char| !character.is_ascii_digit()).unwrap_or(size.len());
    size[..end].parse().ok()
}

/// Data volumes sorted by name, the order in which they are numbered.
#[must_use]
pub fn sorted_data_volumes(pool: &WorkerPool) -> Vec<&DataVolume> {
    let mut volumes: Vec<_> = pool.data_volumes.iter().collect();
    volumes.sort_by(|left, right| left.name.cmp(&right.name));
    volumes
}
