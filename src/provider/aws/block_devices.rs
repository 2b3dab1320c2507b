//! Root and data volumes of a machine (spec/aws-worker.md section 5).

use super::documents::WorkerConfig;
use super::machine_class::{BlockDevice, ElasticVolume};
use crate::api::gardener::WorkerPool;
use crate::pool::volumes::{size_in_gib, sorted_data_volumes};
use crate::provider::PoolProblem;

/// Name of the root device, where there are others.
const ROOT: &str = "/root";
/// Last letters of the names of data devices, in their order.
const DATA_LETTERS: &str = "fghijklmnop";
/// The largest size that the driver can read.
const LARGEST: i64 = i32::MAX as i64;

/// A volume of a pool, and what the provider config says about it.
#[derive(Clone, Copy, Debug, Default)]
struct Volume<'a> {
    size: &'a str,
    volume_type: Option<&'a str>,
    encrypted: Option<bool>,
    iops: Option<i32>,
    throughput: Option<i32>,
    snapshot_id: Option<&'a str>,
}

/// The root device and those of the data volumes, which are numbered by the order of their names.
///
/// # Errors
/// When the pool has no volume, a size is no number or too large, or there are too many volumes.
pub(super) fn block_devices(pool: &WorkerPool, config: &WorkerConfig) -> Result<Vec<BlockDevice>, PoolProblem> {
    let root = pool.volume.as_ref().ok_or(PoolProblem::VolumeMissing)?;
    let root_config = config.volume.as_ref();
    let root = Volume {
        size: &root.size,
        volume_type: root.volume_type.as_deref(),
        encrypted: root.encrypted,
        iops: root_config.and_then(|config| config.iops),
        throughput: root_config.and_then(|config| config.throughput),
        snapshot_id: None,
    };
    let data = sorted_data_volumes(pool);
    if data.len() > DATA_LETTERS.len() {
        return Err(PoolProblem::TooMany { path: "dataVolumes", count: data.len(), most: DATA_LETTERS.len() });
    }
    let root_name = (!data.is_empty()).then(|| ROOT.to_owned());
    let mut devices =
        vec![BlockDevice { device_name: root_name, ebs: elastic_volume(root, || "volume.size".to_owned())? }];
    for (volume, letter) in data.into_iter().zip(DATA_LETTERS.chars()) {
        let volume_config = config.data_volumes.iter().find(|entry| entry.name == volume.name);
        let facts = Volume {
            size: &volume.size,
            volume_type: volume.volume_type.as_deref(),
            encrypted: volume.encrypted,
            iops: volume_config.and_then(|config| config.iops),
            throughput: volume_config.and_then(|config| config.throughput),
            snapshot_id: volume_config.and_then(|config| config.snapshot_id.as_deref()),
        };
        devices.push(BlockDevice {
            device_name: Some(format!("/dev/sd{letter}")),
            ebs: elastic_volume(facts, || format!("dataVolumes[{}].size", volume.name))?,
        });
    }
    Ok(devices)
}

/// Volumes are encrypted unless the pool says otherwise.
fn elastic_volume(volume: Volume<'_>, path: impl Fn() -> String) -> Result<ElasticVolume, PoolProblem> {
    let size = size_in_gib(volume.size)
        .ok_or_else(|| PoolProblem::VolumeSize { path: path(), size: volume.size.to_owned() })?;
    if size > LARGEST {
        return Err(PoolProblem::VolumeTooLarge { path: path(), size: volume.size.to_owned(), largest: LARGEST });
    }
    Ok(ElasticVolume {
        delete_on_termination: true,
        encrypted: volume.encrypted.unwrap_or(true),
        iops: volume.iops.unwrap_or_default(),
        throughput: volume.throughput,
        snapshot_id: volume.snapshot_id.map(str::to_owned),
        volume_size: size,
        volume_type: volume.volume_type.unwrap_or_default().to_owned(),
    })
}
