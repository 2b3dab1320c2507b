//! What AWS adds to the hash of a pool. `docs/development.md` says how a member is added.

use super::documents::{
    CapacityReservation, CardRange, CpuOptions, DataVolumeConfig, InstanceMarketOptions, InstanceProfileConfig,
    MetadataOptions, NetworkInterfaceConfig, Placement, VolumeConfig, WorkerConfig,
};
use crate::api::gardener::{DataVolume, Volume, WorkerPool};
use crate::pool::config_items::{self, ByValuesSince};
use crate::pool::hash::{HashError, HashItems, ProviderItems};
use crate::provider::node_template::StrictNodeTemplate;

/// From this Kubernetes version on the values of the provider config count.
const BY_VALUES_SINCE: ByValuesSince = ByValuesSince { major: 1, minor: 34 };

/// Everything that AWS adds. The order of data volumes is the Worker's, not that of the devices.
///
/// # Errors
/// When the pool has no node-agent secret name, or its Kubernetes version can't be read.
pub fn provider_items(pool: &WorkerPool, config: &WorkerConfig) -> Result<ProviderItems, HashError> {
    if pool.node_agent_secret_name.is_none() {
        return Err(HashError::NodeAgentSecretMissing);
    }
    let mut in_place = HashItems::default();
    // Size and type of the root volume count for every provider.
    if let Some(Volume { volume_type: _, size: _, encrypted }) = &pool.volume {
        in_place.push_some("volume.encrypted", encrypted.map(|encrypted| encrypted.to_string()));
    }
    let mut rolling = in_place.clone();
    for DataVolume { name, volume_type, size, encrypted } in &pool.data_volumes {
        let path = format!("dataVolumes[{name}]");
        rolling.push(format!("{path}.size"), size.as_str());
        rolling.push_some(format!("{path}.type"), volume_type.as_deref());
        rolling.push_some(format!("{path}.encrypted"), encrypted.map(|encrypted| encrypted.to_string()));
    }
    rolling.extend(&config_items(pool, config)?);
    Ok(ProviderItems { without_node_agent_secret: HashItems::default(), with_node_agent_secret: rolling, in_place })
}

/// The part of the provider config that counts: from Kubernetes 1.34 on its values, before that its text.
///
/// # Errors
/// When the pool's Kubernetes version can't be read.
pub fn config_items(pool: &WorkerPool, config: &WorkerConfig) -> Result<HashItems, HashError> {
    let has_virtual_capacity =
        config.node_template.as_ref().is_some_and(|template| template.virtual_capacity.is_some());
    config_items::config_items(pool, BY_VALUES_SINCE, has_virtual_capacity, || value_items(config))
}

/// Every member is named, so that a new one can't be forgotten. Encrypted memory and descriptions of interfaces are left
/// out, as the Go extension does.
fn value_items(config: &WorkerConfig) -> HashItems {
    let WorkerConfig {
        _api_version: _,
        _kind: _,
        node_template,
        volume,
        data_volumes,
        iam_instance_profile,
        instance_metadata_options,
        cpu_options,
        capacity_reservation,
        network_interfaces,
        placement,
        instance_market_options,
    } = config;
    let mut items = HashItems::default();
    // The virtual capacity exists only for the autoscaler.
    if let Some(StrictNodeTemplate { capacity, virtual_capacity: _ }) = node_template {
        config_items::push_capacity(&mut items, capacity);
    }
    if let Some(VolumeConfig { iops, throughput }) = volume {
        Group::of(&mut items, "volume").add("iops", *iops).add("throughput", *throughput);
    }
    for DataVolumeConfig { name, iops, throughput, snapshot_id } in data_volumes {
        Group::of(&mut items, format!("dataVolumes[{name}]"))
            .add("name", Some(name))
            .add("iops", *iops)
            .add("throughput", *throughput)
            .add("snapshotID", snapshot_id.as_ref());
    }
    if let Some(InstanceProfileConfig { name, arn }) = iam_instance_profile {
        Group::of(&mut items, "iamInstanceProfile").add("name", name.as_ref()).add("arn", arn.as_ref());
    }
    if let Some(MetadataOptions { http_tokens, http_put_response_hop_limit }) = instance_metadata_options {
        Group::of(&mut items, "instanceMetadataOptions")
            .add("httpTokens", http_tokens.as_ref())
            .add("httpPutResponseHopLimit", *http_put_response_hop_limit);
    }
    if let Some(CpuOptions { core_count, threads_per_core, amd_sev_snp: _ }) = cpu_options {
        Group::of(&mut items, "cpuOptions").add("coreCount", *core_count).add("threadsPerCore", *threads_per_core);
    }
    if let Some(CapacityReservation {
        capacity_reservation_preference,
        capacity_reservation_id,
        capacity_reservation_resource_group_arn,
    }) = capacity_reservation
    {
        Group::of(&mut items, "capacityReservation")
            .add("capacityReservationPreference", capacity_reservation_preference.as_ref())
            .add("capacityReservationId", capacity_reservation_id.as_ref())
            .add("capacityReservationResourceGroupArn", capacity_reservation_resource_group_arn.as_ref());
    }
    if let Some(InstanceMarketOptions { market_type }) = instance_market_options {
        Group::of(&mut items, "instanceMarketOptions").add("marketType", Some(market_type));
    }
    for (index, interface) in network_interfaces.iter().enumerate() {
        let NetworkInterfaceConfig {
            network_card_index,
            network_card_index_range: range,
            device_index,
            interface_type: _,
            description: _,
            subnet_id,
        } = interface;
        Group::of(&mut items, format!("networkInterfaces[{index}]"))
            .add("type", Some(interface.interface_type()))
            .add("deviceIndex", Some(device_index))
            .add("networkCardIndex", *network_card_index)
            .add("networkCardIndexRange.from", range.map(|CardRange { from, to: _ }| from))
            .add("networkCardIndexRange.to", range.map(|CardRange { from: _, to }| to))
            .add("subnetID", subnet_id.as_ref());
    }
    if let Some(Placement { group_id, tenancy, host_id, partition_number, affinity }) = placement {
        Group::of(&mut items, "placement")
            .add("groupId", group_id.as_ref())
            .add("tenancy", tenancy.as_ref())
            .add("hostId", host_id.as_ref())
            .add("partitionNumber", *partition_number)
            .add("affinity", affinity.as_ref());
    }
    items
}

/// Members of one object of the provider config.
struct Group<'a> {
    items: &'a mut HashItems,
    path: String,
}

impl<'a> Group<'a> {
    fn of(items: &'a mut HashItems, path: impl Into<String>) -> Self {
        Self { items, path: path.into() }
    }

    /// Adds a member if it is given.
    fn add(&mut self, member: &str, value: Option<impl ToString>) -> &mut Self {
        let value = value.map(|value| value.to_string());
        self.items.push_some(format!("providerConfig.{}.{member}", self.path), value);
        self
    }
}
