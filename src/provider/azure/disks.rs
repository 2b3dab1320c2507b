//! Root and data disks of a machine.

use serde_json::{Map, Value, json};

use super::documents::{DataVolumeConfig, VolumeConfig};
use crate::api::gardener::{DataVolume, Volume, WorkerPool};
use crate::pool::volumes::{size_in_gib, sorted_data_volumes};
use crate::provider::PoolProblem;

/// A size in GiB: the leading digits of the text. The unit is ignored, as the Go extension does.
///
/// # Errors
/// When the text does not start with a number, or the number is too large.
pub fn disk_size(size: &str) -> Result<i64, PoolProblem> {
    size_at(size, || "size".to_owned())
}

fn size_at(size: &str, path: impl Fn() -> String) -> Result<i64, PoolProblem> {
    size_in_gib(size).ok_or_else(|| PoolProblem::VolumeSize { path: path(), size: size.to_owned() })
}

/// The root disk.
///
/// # Errors
/// When the pool has no volume, or its size is no number.
pub(super) fn os_disk(
    pool: &WorkerPool,
    config: Option<&VolumeConfig>,
    confidential: bool,
) -> Result<Value, PoolProblem> {
    // Azure encrypts volumes by itself.
    let Volume { volume_type, size, encrypted: _ } = pool.volume.as_ref().ok_or(PoolProblem::VolumeMissing)?;
    let caching = config.and_then(|VolumeConfig { caching }| caching.as_deref());
    let security = confidential.then(|| json!({"securityEncryptionType": "VMGuestStateOnly"}));
    let managed = volume_type.is_some() || security.is_some();
    Ok(json!({
        "caching": caching.unwrap_or("None"),
        "createOption": "FromImage",
        "diskSizeGB": size_at(size, || "volume.size".to_owned())?,
        "managedDisk": managed.then(|| json!({"storageAccountType": volume_type, "securityProfile": security})),
    }))
}

/// The data disks, numbered by the order of their names; nothing where there are none.
///
/// # Errors
/// When a size is no number.
pub(super) fn data_disks(pool: &WorkerPool, config: &[DataVolumeConfig]) -> Result<Option<Value>, PoolProblem> {
    let disk = |(lun, volume): (usize, &DataVolume)| {
        let DataVolume { name, volume_type, size, encrypted: _ } = volume;
        Ok(json!({
            "name": name,
            "lun": lun,
            "caching": "None",
            "diskSizeGB": size_at(size, || format!("dataVolumes[{name}].size"))?,
            "storageAccountType": volume_type,
            "imageRef": data_disk_image(name, config),
        }))
    };
    let disks = sorted_data_volumes(pool).into_iter().enumerate().map(disk).collect::<Result<Vec<_>, PoolProblem>>()?;
    Ok((!disks.is_empty()).then(|| disks.into()))
}

/// The image of a data volume; of several entries for the volume the last one with an image counts.
fn data_disk_image(volume: &str, config: &[DataVolumeConfig]) -> Option<Value> {
    let images = config.iter().filter(|DataVolumeConfig { name, image_ref: _ }| name == volume);
    let image = images.filter_map(|entry| entry.image_ref.as_ref()).next_back()?;
    let mut members = Map::new();
    if let Some(reference) = image.references().preferred() {
        members.insert(reference.member().to_owned(), reference.value().into());
    }
    Some(members.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_of_a_size_is_ignored() {
        assert_eq!(disk_size("50Gi"), Ok(50));
        assert_eq!(disk_size("1.5Ti"), Ok(1));
        assert_eq!(disk_size("100"), Ok(100));
        for size in ["", "Gi", "-10Gi", " 10Gi", "9223372036854775808", "１０Gi"] {
            assert!(disk_size(size).is_err(), "{size:?}");
        }
    }
}
