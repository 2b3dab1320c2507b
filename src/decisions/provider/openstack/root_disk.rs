//! The root disk of a machine.

use crate::pool::volumes::size_in_gib;
use crate::provider::image::machine_type;
use crate::provider::volumes::gib;
use crate::provider::{PoolProblem, WorkerContext};
use wire::api::gardener::WorkerPool;

/// The root disk; absent values come from the OpenStack flavor.
pub(super) struct RootDisk {
    /// Size in GiB.
    pub(super) size: Option<i64>,
    pub(super) volume_type: Option<String>,
}

/// The root disk of the pool, or of its machine type if the pool has no volume type.
///
/// # Errors
/// If the machine type is unknown, or the size is not a number.
pub(super) fn root_disk(context: &WorkerContext<'_>, pool: &WorkerPool) -> Result<RootDisk, PoolProblem> {
    let volume = pool.volume.as_ref();
    let size = volume.map(|volume| gib("volume.size", &volume.size)).transpose()?.filter(|size| *size > 0);
    if let Some(volume_type) = volume.and_then(|volume| volume.volume_type.clone()) {
        return Ok(RootDisk { size, volume_type: Some(volume_type).filter(|volume_type| !volume_type.is_empty()) });
    }
    let storage = machine_type(context, pool)?.storage.as_ref();
    let Some(storage) = storage.filter(|storage| !["", "default"].contains(&storage.volume_type.as_str())) else {
        return Ok(RootDisk { size, volume_type: None });
    };
    let of_type = || size_in_gib(&storage.size.as_ref()?.to_string()).filter(|size| *size > 0);
    Ok(RootDisk { size: size.or_else(of_type), volume_type: Some(storage.volume_type.clone()) })
}
