//! Root and data disks of a machine.

use serde_json::{Map, Value, json};

use super::documents::{DataVolumeConfig, VolumeConfig};
use crate::pool::volumes::sorted_data_volumes;
use crate::provider::PoolProblem;
use crate::provider::volumes::gib;
use wire::api::gardener::{DataVolume, Volume, WorkerPool};

/// Returns the root disk.
///
/// # Errors
/// If the pool has no volume, or its size is not a number.
pub(super) fn os_disk(
    pool: &WorkerPool,
    config: Option<&VolumeConfig>,
    confidential: bool,
) -> Result<Value, PoolProblem> {
    // Azure always encrypts volumes.
    let Volume { volume_type, size, encrypted: _ } = pool.volume.as_ref().ok_or(PoolProblem::VolumeMissing)?;
    let caching = config.and_then(|VolumeConfig { caching }| caching.as_deref());
    let security = confidential.then(|| json!({"securityEncryptionType": "VMGuestStateOnly"}));
    let managed = volume_type.is_some() || security.is_some();
    Ok(json!({
        "caching": caching.unwrap_or("None"),
        "createOption": "FromImage",
        "diskSizeGB": gib("volume.size", size)?,
        "managedDisk": managed.then(|| json!({"storageAccountType": volume_type, "securityProfile": security})),
    }))
}

/// Returns the data disks, numbered in the order of their names; `None` if there are none.
///
/// # Errors
/// If a size is not a number.
pub(super) fn data_disks(pool: &WorkerPool, config: &[DataVolumeConfig]) -> Result<Option<Value>, PoolProblem> {
    let disk = |(lun, volume): (usize, &DataVolume)| {
        let DataVolume { name, volume_type, size, encrypted: _ } = volume;
        Ok(json!({
            "name": name,
            "lun": lun,
            "caching": "None",
            "diskSizeGB": gib(&format!("dataVolumes[{name}].size"), size)?,
            "storageAccountType": volume_type,
            "imageRef": data_disk_image(name, config),
        }))
    };
    let disks = sorted_data_volumes(pool).into_iter().enumerate().map(disk).collect::<Result<Vec<_>, PoolProblem>>()?;
    Ok((!disks.is_empty()).then(|| disks.into()))
}

/// The image of a data volume. If the volume has several entries, the last one with an image wins.
fn data_disk_image(volume: &str, config: &[DataVolumeConfig]) -> Option<Value> {
    let images = config.iter().filter(|DataVolumeConfig { name, image_ref: _ }| name == volume);
    let image = images.filter_map(|entry| entry.image_ref.as_ref()).next_back()?;
    let preferred = image.references().preferred();
    Some(preferred.map(|(member, value)| (member.to_owned(), value.into())).into_iter().collect::<Map<_, _>>().into())
}
