//! Root and data disks of a machine (spec/azure-worker.md section 7.5).

use super::documents::{ImageReference, WorkerConfig};
use super::machine_class::{DataDisk, DataDiskImage, ManagedDisk, OsDisk, SecurityProfileOfDisk};
use crate::api::gardener::{DataVolume, WorkerPool};
use crate::pool::volumes::size_in_gib;
pub use crate::pool::volumes::sorted_data_volumes;
use crate::provider::PoolProblem;

/// A size in GiB: the leading digits of the text. The unit is ignored, as the Go extension does.
///
/// # Errors
/// When the text does not start with a number, or the number is too large.
pub fn disk_size(size: &str) -> Result<i64, PoolProblem> {
    size_in_gib(size).ok_or_else(|| PoolProblem::VolumeSize { path: "size".to_owned(), size: size.to_owned() })
}

/// The root disk.
///
/// # Errors
/// When the pool has no volume, or its size is no number.
pub(super) fn os_disk(pool: &WorkerPool, config: &WorkerConfig, confidential: bool) -> Result<OsDisk, PoolProblem> {
    let volume = pool.volume.as_ref().ok_or(PoolProblem::VolumeMissing)?;
    let disk_size_gb = size_in_gib(&volume.size)
        .ok_or_else(|| PoolProblem::VolumeSize { path: "volume.size".to_owned(), size: volume.size.clone() })?;
    let caching = config.volume.as_ref().and_then(|volume| volume.caching.clone());
    let managed_disk = ManagedDisk {
        storage_account_type: volume.volume_type.clone(),
        security_profile: confidential
            .then(|| SecurityProfileOfDisk { security_encryption_type: "VMGuestStateOnly".to_owned() }),
    };
    Ok(OsDisk {
        caching: caching.unwrap_or_else(|| "None".to_owned()),
        create_option: "FromImage".to_owned(),
        disk_size_gb,
        managed_disk: Some(managed_disk).filter(|disk| *disk != ManagedDisk::default()),
    })
}

/// The data disks, numbered by the order of their names.
///
/// # Errors
/// When a size is no number.
pub(super) fn data_disks(volumes: &[&DataVolume], config: &WorkerConfig) -> Result<Vec<DataDisk>, PoolProblem> {
    (0..)
        .zip(volumes)
        .map(|(lun, volume)| {
            let disk_size_gb = size_in_gib(&volume.size).ok_or_else(|| PoolProblem::VolumeSize {
                path: format!("dataVolumes[{}].size", volume.name),
                size: volume.size.clone(),
            })?;
            Ok(DataDisk {
                name: volume.name.clone(),
                lun,
                caching: "None".to_owned(),
                disk_size_gb,
                storage_account_type: volume.volume_type.clone(),
                image_ref: data_disk_image(&volume.name, config),
            })
        })
        .collect()
}

/// The image of a data volume; of several entries for the volume the last one with an image counts.
fn data_disk_image(volume: &str, config: &WorkerConfig) -> Option<DataDiskImage> {
    let entry = config.data_volumes.iter().rfind(|entry| entry.name == volume && entry.image_ref.is_some())?;
    let image = entry.image_ref.as_ref()?;
    Some(image.references().preferred().map(DataDiskImage::from).unwrap_or_default())
}

impl From<ImageReference<'_>> for DataDiskImage {
    fn from(reference: ImageReference<'_>) -> Self {
        Self::from([(reference.member().to_owned(), reference.value().to_owned())])
    }
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
