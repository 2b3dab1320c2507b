//! Root and data volumes of a machine.

use serde_json::{Value, json};

use super::documents::{DataVolumeConfig, VolumeConfig, WorkerConfig};
use crate::pool::volumes::sorted_data_volumes;
use crate::provider::PoolProblem;
use crate::provider::volumes::gib;
use wire::api::gardener::{DataVolume, Volume, WorkerPool};

/// Name of the root device if there are other devices.
const ROOT: &str = "/root";
/// Last letters of the data device names, in order.
const DATA_LETTERS: &str = "fghijklmnop";
/// Maximum size that the driver can decode.
const MAX_SIZE_GIB: i64 = i32::MAX as i64;

/// Returns the root device and the data devices, which are numbered in the order of their volume names.
///
/// # Errors
/// If the pool has no volume, a size is not a number or too large, or there are too many volumes.
pub(super) fn block_devices(pool: &WorkerPool, config: &WorkerConfig) -> Result<Vec<Value>, PoolProblem> {
    let Volume { volume_type, size, encrypted } = pool.volume.as_ref().ok_or(PoolProblem::VolumeMissing)?;
    let data = sorted_data_volumes(pool);
    if data.len() > DATA_LETTERS.len() {
        let detail = format!("{} are too many, at most {}", data.len(), DATA_LETTERS.len());
        return Err(PoolProblem::field("dataVolumes", detail));
    }
    let mut root = elastic_volume("volume.size", size, volume_type.as_deref(), *encrypted)?;
    if let Some(VolumeConfig { iops, throughput }) = &config.volume {
        set_speed(&mut root, *iops, *throughput);
    }
    let mut devices = vec![json!({"deviceName": (!data.is_empty()).then_some(ROOT), "ebs": root})];
    for (volume, letter) in data.into_iter().zip(DATA_LETTERS.chars()) {
        let DataVolume { name, volume_type, size, encrypted } = volume;
        let path = format!("dataVolumes[{name}].size");
        let mut elastic = elastic_volume(&path, size, volume_type.as_deref(), *encrypted)?;
        if let Some(config) = config.data_volumes.iter().find(|entry| entry.name == *name) {
            let DataVolumeConfig { name: _, iops, throughput, snapshot_id } = config;
            set_speed(&mut elastic, *iops, *throughput);
            elastic["snapshotID"] = json!(snapshot_id);
        }
        devices.push(json!({"deviceName": format!("/dev/sd{letter}"), "ebs": elastic}));
    }
    Ok(devices)
}

/// An EBS volume. Volumes are encrypted by default. The driver interprets a missing number as zero and a missing flag
/// as false.
fn elastic_volume(
    path: &str,
    size: &str,
    volume_type: Option<&str>,
    encrypted: Option<bool>,
) -> Result<Value, PoolProblem> {
    let gib = gib(path, size)?;
    if gib > MAX_SIZE_GIB {
        return Err(PoolProblem::field(path, format!("{size:?} is more than {MAX_SIZE_GIB} GiB")));
    }
    Ok(json!({
        "deleteOnTermination": true,
        "encrypted": encrypted.unwrap_or(true).then_some(true),
        "volumeSize": Some(gib).filter(|gib| *gib != 0),
        "volumeType": volume_type.filter(|volume_type| !volume_type.is_empty()),
    }))
}

fn set_speed(volume: &mut Value, iops: Option<i32>, throughput: Option<i32>) {
    volume["iops"] = json!(iops.filter(|iops| *iops != 0));
    volume["throughput"] = json!(throughput);
}
