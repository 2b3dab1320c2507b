//! Boot disk and data disks of a machine.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::documents::{DataVolumeConfig, WorkerConfig};
use crate::provider::PoolProblem;
use crate::provider::volumes::gib;
use wire::api::gardener::{DataVolume, Volume, WorkerPool};

/// The type of local disks. Only they have an interface.
pub(super) const SCRATCH: &str = "SCRATCH";
/// Types with configurable I/O operations per second.
pub(super) const WITH_IOPS: &[&str] = &["pd-extreme", "hyperdisk-extreme", "hyperdisk-balanced"];
/// Types with configurable throughput.
pub(super) const WITH_THROUGHPUT: &[&str] = &["hyperdisk-throughput", "hyperdisk-balanced"];

/// Settings of one disk from the provider config.
#[derive(Clone, Copy, Default)]
struct Options<'a> {
    iops: Option<i64>,
    throughput: Option<i64>,
    storage_pool: Option<&'a str>,
}

/// Returns the disks of a machine in the order of the pool: the boot disk if the pool has a volume, then the data
/// volumes. The image of the boot disk is added later.
///
/// # Errors
/// If a size is not a number, or there are no disks.
pub(super) fn disks(
    pool: &WorkerPool,
    config: &WorkerConfig,
    labels: &BTreeMap<String, String>,
) -> Result<Vec<Value>, PoolProblem> {
    let mut disks = Vec::with_capacity(pool.data_volumes.len() + 1);
    // Disk encryption is configured in the provider config.
    if let Some(Volume { volume_type, size, encrypted: _ }) = &pool.volume {
        let boot = config.boot_volume.as_ref().map_or_else(Options::default, |boot| Options {
            iops: boot.provisioned_iops,
            throughput: boot.provisioned_throughput,
            storage_pool: boot.storage_pool.as_deref(),
        });
        let mut disk = disk(config, volume_type.as_deref(), gib("volume.size", size)?, boot, labels);
        disk["boot"] = true.into();
        disks.push(disk);
    }
    for DataVolume { name, volume_type, size, encrypted: _ } in &pool.data_volumes {
        let size = gib(&format!("dataVolumes[{name}].size"), size)?;
        let known = config.data_volumes.iter().find(|known| known.name == *name);
        let options = known.map_or_else(Options::default, |known: &DataVolumeConfig| Options {
            iops: known.provisioned_iops,
            throughput: known.provisioned_throughput,
            storage_pool: known.storage_pool.as_deref(),
        });
        let mut disk = disk(config, volume_type.as_deref(), size, options, labels);
        disk["boot"] = false.into();
        disk["image"] = json!(known.and_then(|known| known.source_image.as_ref()));
        disks.push(disk);
    }
    if disks.is_empty() { Err(PoolProblem::VolumeMissing) } else { Ok(disks) }
}

fn disk(
    config: &WorkerConfig,
    volume_type: Option<&str>,
    size: i64,
    options: Options<'_>,
    labels: &BTreeMap<String, String>,
) -> Value {
    let is_one_of = |types: &[&str]| volume_type.is_some_and(|volume_type| types.contains(&volume_type));
    let iops = if is_one_of(WITH_IOPS) { options.iops } else { None };
    let throughput = if is_one_of(WITH_THROUGHPUT) { options.throughput } else { None };
    let volume = config.volume.as_ref();
    let interface =
        if volume_type == Some(SCRATCH) { volume.and_then(|volume| volume.interface.as_ref()) } else { None };
    let encryption = volume.and_then(|volume| volume.encryption.as_ref());
    json!({
        "autoDelete": true,
        "sizeGb": templated_number(size),
        "labels": labels,
        "type": volume_type,
        "interface": interface,
        "encryption": encryption.map(|key| json!({
            "kmsKeyName": key.kms_key_name,
            "kmsKeyServiceAccount": key.kms_key_service_account,
        })),
        "provisionedIops": iops.map(templated_number),
        "provisionedThroughput": throughput.map(templated_number),
        "storagePool": options.storage_pool,
    })
}

/// Formats a number like the Go extension's template: beyond the precision of a float it is rounded to the nearest one,
/// written with the shortest unique digits padded with zeros.
fn templated_number(number: i64) -> Value {
    const EXACT: i64 = 1 << 53;
    if (-EXACT..=EXACT).contains(&number) {
        return number.into();
    }
    #[expect(clippy::cast_precision_loss, reason = "this is what it is for")]
    let text = format!("{:e}", number as f64);
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let zeros = exponent.parse::<usize>().unwrap_or_default().saturating_sub(decimals);
    let text = format!("{}{}", digits.replace('.', ""), "0".repeat(zeros));
    text.parse::<u64>().map(Value::from).or_else(|_| text.parse::<i64>().map(Value::from)).unwrap_or(number.into())
}
