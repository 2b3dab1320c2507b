//! System disk and data disks of a machine.

use serde_json::{Value, json};

use crate::provider::PoolProblem;
use crate::provider::volumes::gib;
use wire::api::gardener::{DataVolume, Volume, WorkerPool};

/// The disks of a machine, shared by all zones of a pool.
pub(super) struct Disks {
    pub(super) system: Value,
    pub(super) data: Vec<Value>,
}

/// Returns the system disk and the data disks, in the order of the pool.
///
/// # Errors
/// If the pool has no volume, or a size is not a number.
pub(super) fn disks(pool: &WorkerPool, technical_id: &str) -> Result<Disks, PoolProblem> {
    // An encrypted system disk results from an encrypted image.
    let Volume { volume_type, size, encrypted: _ } = pool.volume.as_ref().ok_or(PoolProblem::VolumeMissing)?;
    let category = volume_type.as_ref().filter(|category| !category.is_empty());
    let system = json!({"category": category, "size": gib("volume.size", size)?});
    let data = pool.data_volumes.iter().map(|DataVolume { name, volume_type, size, encrypted }| {
        Ok(json!({
            "name": name,
            "size": gib(&format!("dataVolumes[{name}].size"), size)?,
            "category": volume_type,
            "encrypted": encrypted,
            "deleteWithInstance": true,
            "description": format!("{technical_id}-datavol-{name}"),
        }))
    });
    Ok(Disks { system, data: data.collect::<Result<_, PoolProblem>>()? })
}
