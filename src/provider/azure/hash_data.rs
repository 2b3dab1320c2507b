//! What Azure adds to the hash of a pool.

use super::config_members::config_members;
use super::documents::{Identity, WorkerConfig};
use crate::api::gardener::{DataVolume, WorkerPool};
use crate::pool::config_items::{self, ByValuesSince};
use crate::pool::hash::{HashError, HashItems, ProviderItems};

/// Names in the hash of what the infrastructure and the provider status give.
const IDENTITY: &str = "infrastructureProviderStatus.identity.id";
const SCALE_SET: &str = "providerStatus.vmoDependencies[].name";
const ZONE_SUBNET: &str = "infrastructureProviderStatus.networks.subnets[].name";
/// All of them.
pub(super) const INFRASTRUCTURE_INPUTS: &[&str] = &[IDENTITY, SCALE_SET, ZONE_SUBNET];

/// From this Kubernetes version on the values of the provider config count.
const BY_VALUES_SINCE: ByValuesSince = ByValuesSince { major: 1, minor: 35 };

/// What of the infrastructure counts for one unit of a pool.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnitFacts<'a> {
    /// Identity that machines get.
    pub identity: Option<&'a Identity>,
    /// Name of the scale set of a non-zonal pool.
    pub scale_set: Option<&'a str>,
    /// Name of the subnet, where each zone has its own and it is no migrated one.
    pub zone_subnet: Option<&'a str>,
}

/// Everything that Azure adds for one unit. In-place pools get nothing, so changing their disks keeps their name.
#[must_use]
pub fn provider_items(volumes: &[&DataVolume], facts: UnitFacts<'_>, config_items: &HashItems) -> ProviderItems {
    let mut items = HashItems::default();
    for volume in volumes {
        let DataVolume { name, volume_type, size, encrypted: _ } = volume;
        items.push(format!("dataVolumes[{name}].size"), size.as_str());
        items.push_some(format!("dataVolumes[{name}].type"), volume_type.as_deref());
    }
    let UnitFacts { identity, scale_set, zone_subnet } = facts;
    items.push_some(IDENTITY, identity.map(|identity| identity.id.as_str()));
    items.push_some(SCALE_SET, scale_set);
    items.push_some(ZONE_SUBNET, zone_subnet);
    let mut with_config = items.clone();
    with_config.extend(config_items);
    ProviderItems {
        without_node_agent_secret: items,
        with_node_agent_secret: with_config,
        in_place: HashItems::default(),
    }
}

/// The part of the provider config that counts for pools with a node-agent secret: from Kubernetes 1.35 on its values,
/// before that its text.
///
/// # Errors
/// When the pool's Kubernetes version can't be read, whatever the update strategy is.
pub fn config_items(pool: &WorkerPool, config: &WorkerConfig) -> Result<HashItems, HashError> {
    let has_virtual_capacity =
        config.node_template.as_ref().is_some_and(|template| template.virtual_capacity.is_some());
    config_items::config_items(pool, BY_VALUES_SINCE, has_virtual_capacity, || config_members(config).hashed)
}
