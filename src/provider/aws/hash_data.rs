//! What AWS adds to the hash of a pool (spec/aws-worker.md section 2).

use super::documents::WorkerConfig;
use crate::api::gardener::WorkerPool;
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
    let encrypted = pool.volume.as_ref().and_then(|volume| volume.encrypted);
    in_place.push_some("volume.encrypted", encrypted.map(|encrypted| encrypted.to_string()));
    let mut rolling = in_place.clone();
    for volume in &pool.data_volumes {
        let path = format!("dataVolumes[{}]", volume.name);
        rolling.push(format!("{path}.size"), volume.size.as_str());
        rolling.push_some(format!("{path}.type"), volume.volume_type.as_deref());
        rolling.push_some(format!("{path}.encrypted"), volume.encrypted.map(|encrypted| encrypted.to_string()));
    }
    rolling.extend(&config_items(pool, config)?);
    Ok(ProviderItems { without_node_agent_secret: HashItems::default(), with_node_agent_secret: rolling, in_place })
}

/// The part of the provider config that counts: from Kubernetes 1.34 on its values, before that its text.
///
/// # Errors
/// When the pool's Kubernetes version can't be read.
pub fn config_items(pool: &WorkerPool, config: &WorkerConfig) -> Result<HashItems, HashError> {
    let has_virtual_capacity = config.node_template.as_ref().is_some_and(StrictNodeTemplate::has_virtual_capacity);
    config_items::config_items(pool, BY_VALUES_SINCE, has_virtual_capacity, || value_items(config))
}

/// Encrypted memory and descriptions of interfaces are left out, as the Go extension does.
fn value_items(config: &WorkerConfig) -> HashItems {
    let mut items = HashItems::default();
    if let Some(template) = &config.node_template {
        config_items::push_capacity(&mut items, template.capacity());
    }
    if let Some(volume) = &config.volume {
        Group::of(&mut items, "volume").add("iops", volume.iops).add("throughput", volume.throughput);
    }
    for volume in &config.data_volumes {
        Group::of(&mut items, format!("dataVolumes[{}]", volume.name))
            .add("name", Some(&volume.name))
            .add("iops", volume.iops)
            .add("throughput", volume.throughput)
            .add("snapshotID", volume.snapshot_id.as_ref());
    }
    if let Some(profile) = &config.iam_instance_profile {
        Group::of(&mut items, "iamInstanceProfile").add("name", profile.name.as_ref()).add("arn", profile.arn.as_ref());
    }
    if let Some(options) = &config.instance_metadata_options {
        Group::of(&mut items, "instanceMetadataOptions")
            .add("httpTokens", options.http_tokens.as_ref())
            .add("httpPutResponseHopLimit", options.http_put_response_hop_limit);
    }
    if let Some(options) = &config.cpu_options {
        Group::of(&mut items, "cpuOptions")
            .add("coreCount", options.core_count)
            .add("threadsPerCore", options.threads_per_core);
    }
    if let Some(reservation) = &config.capacity_reservation {
        Group::of(&mut items, "capacityReservation")
            .add("capacityReservationPreference", reservation.capacity_reservation_preference.as_ref())
            .add("capacityReservationId", reservation.capacity_reservation_id.as_ref())
            .add("capacityReservationResourceGroupArn", reservation.capacity_reservation_resource_group_arn.as_ref());
    }
    if let Some(options) = &config.instance_market_options {
        Group::of(&mut items, "instanceMarketOptions").add("marketType", Some(&options.market_type));
    }
    for (index, interface) in config.network_interfaces.iter().enumerate() {
        let range = interface.network_card_index_range;
        Group::of(&mut items, format!("networkInterfaces[{index}]"))
            .add("type", Some(interface.interface_type()))
            .add("deviceIndex", Some(interface.device_index))
            .add("networkCardIndex", interface.network_card_index)
            .add("networkCardIndexRange.from", range.map(|range| range.from))
            .add("networkCardIndexRange.to", range.map(|range| range.to))
            .add("subnetID", interface.subnet_id.as_ref());
    }
    if let Some(placement) = &config.placement {
        Group::of(&mut items, "placement")
            .add("groupId", placement.group_id.as_ref())
            .add("tenancy", placement.tenancy.as_ref())
            .add("hostId", placement.host_id.as_ref())
            .add("partitionNumber", placement.partition_number)
            .add("affinity", placement.affinity.as_ref());
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
