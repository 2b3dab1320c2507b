//! Hash inputs and explanations of each member of a `WorkerConfig` for GCP. To add a member, see `docs/development.md`.

use super::documents::{BootVolume, DataVolumeConfig, Encryption, Gpu, ServiceAccount, VolumeConfig, WorkerConfig};
use crate::provider::config_members::{ConfigMembers, given, in_one_line};

/// Lists every member in hash order, so that a new one can't be forgotten. The storage pool of data volumes is not
/// hashed, as in the Go extension.
pub(super) fn config_members(config: &WorkerConfig) -> ConfigMembers {
    let WorkerConfig {
        _api_version: _,
        _kind: _,
        gpu,
        volume,
        boot_volume,
        data_volumes,
        min_cpu_platform,
        service_account,
        node_template,
    } = config;
    let mut members = ConfigMembers::default();
    if let Some(template) = node_template {
        members.node_template(template);
    }
    if let Some(Gpu { accelerator_type, count }) = gpu {
        members.hash("gpu").add("acceleratorType", Some(accelerator_type)).add("count", Some(count));
        members.explain("gpu", "graphics processors", [Some(format!("{count} of {accelerator_type}"))]);
    }
    if let Some(volume) = volume {
        add_volume(&mut members, volume);
    }
    if let Some(BootVolume { provisioned_iops: iops, provisioned_throughput: throughput, storage_pool }) = boot_volume {
        members
            .hash("bootVolume")
            .add("provisionedIops", *iops)
            .add("provisionedThroughput", *throughput)
            .add("storagePool", Some(storage_pool.as_deref().unwrap_or_default()));
        members.explain("bootVolume", "boot disk options", speed(*iops, *throughput, storage_pool.as_deref()));
    }
    for volume in data_volumes {
        add_data_volume(&mut members, volume);
    }
    if let Some(platform) = min_cpu_platform {
        members.hash_member("minCpuPlatform", platform);
        members.explain("minCpuPlatform", "oldest processor", [Some(platform.clone())]);
    }
    if let Some(ServiceAccount { email, scopes }) = service_account {
        members.hash("serviceAccount").add("email", Some(email));
        for (index, scope) in scopes.iter().flatten().enumerate() {
            members.hash("serviceAccount").add(&format!("scopes[{index}]"), Some(scope));
        }
        members.explain("serviceAccount", "service account", [Some(email.clone())]);
    }
    members
}

fn add_volume(members: &mut ConfigMembers, volume: &VolumeConfig) {
    let VolumeConfig { interface, encryption } = volume;
    members.hash("volume").add("interface", Some(interface.as_deref().unwrap_or_default()));
    members.explain("volume.interface", "interface of local disks", [interface.clone()]);
    if let Some(Encryption { kms_key_name, kms_key_service_account }) = encryption {
        members
            .hash("volume.encryption")
            .add("kmsKeyName", Some(kms_key_name.as_deref().unwrap_or_default()))
            .add("kmsKeyServiceAccount", Some(kms_key_service_account.as_deref().unwrap_or_default()));
        let parts = [kms_key_name.clone(), given("used by ", kms_key_service_account.as_ref())];
        members.explain("volume.encryption", "key of disks", parts);
    }
}

fn add_data_volume(members: &mut ConfigMembers, volume: &DataVolumeConfig) {
    let DataVolumeConfig {
        name,
        source_image,
        provisioned_iops: iops,
        provisioned_throughput: throughput,
        storage_pool,
    } = volume;
    members
        .hash(format!("dataVolumes[{name}]"))
        .add("name", Some(name))
        .add("provisionedIops", *iops)
        .add("provisionedThroughput", *throughput)
        .add("sourceImage", source_image.as_ref());
    let options = speed(*iops, *throughput, storage_pool.as_deref()).into_iter();
    let options = in_one_line(options.chain([given("from ", source_image.as_ref())]));
    members.explain("dataVolumes", "data volume options", [options.map(|options| format!("{name}: {options}"))]);
}

fn speed(iops: Option<i64>, throughput: Option<i64>, storage_pool: Option<&str>) -> [Option<String>; 3] {
    [
        iops.map(|iops| format!("{iops} IOPS")),
        throughput.map(|throughput| format!("{throughput} MiB/s")),
        given("of storage pool ", storage_pool),
    ]
}
