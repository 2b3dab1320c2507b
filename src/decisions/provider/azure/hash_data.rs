//! Hash inputs that Azure adds to a pool.

use super::config_members::config_members;
use super::documents::{Identity, WorkerConfig};
use crate::pool::config_items::{self, ByValuesSince};
use crate::pool::hash::{HashError, HashItems, ProviderItems};
use wire::api::gardener::{DataVolume, WorkerPool};

/// Names in the hash of what the infrastructure and the provider status give.
const IDENTITY: &str = "infrastructureProviderStatus.identity.id";
const SCALE_SET: &str = "providerStatus.vmoDependencies[].name";
const ZONE_SUBNET: &str = "infrastructureProviderStatus.networks.subnets[].name";
/// All of them.
pub(super) const INFRASTRUCTURE_INPUTS: &[&str] = &[IDENTITY, SCALE_SET, ZONE_SUBNET];

/// Kubernetes version from which values of the provider config are hashed.
const BY_VALUES_SINCE: ByValuesSince = ByValuesSince { major: 1, minor: 35 };

/// Infrastructure inputs of one unit of a pool.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlacementInputs<'a> {
    /// Identity assigned to machines.
    pub identity: Option<&'a Identity>,
    /// Name of the scale set of a non-zonal pool.
    pub scale_set: Option<&'a str>,
    /// Name of the zone's own subnet, unless it is a migrated one.
    pub zone_subnet: Option<&'a str>,
}

/// Returns the Azure hash inputs of one unit. In-place pools have none, so they keep their name if their disks change.
#[must_use]
pub fn provider_items(volumes: &[&DataVolume], facts: PlacementInputs<'_>, config_items: &HashItems) -> ProviderItems {
    let mut items = HashItems::default();
    for volume in volumes {
        let DataVolume { name, volume_type, size, encrypted: _ } = volume;
        items.push(format!("dataVolumes[{name}].size"), size.as_str());
        items.push_some(format!("dataVolumes[{name}].type"), volume_type.as_deref());
    }
    let PlacementInputs { identity, scale_set, zone_subnet } = facts;
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

/// Hash inputs from the provider config for pools with a node agent Secret: its values from Kubernetes 1.35, its text
/// for older versions.
///
/// # Errors
/// If the pool's Kubernetes version can't be parsed, regardless of the update strategy.
pub fn config_items(pool: &WorkerPool, config: &WorkerConfig) -> Result<HashItems, HashError> {
    let has_virtual_capacity =
        config.node_template.as_ref().is_some_and(|template| template.virtual_capacity.is_some());
    config_items::config_items(pool, BY_VALUES_SINCE, has_virtual_capacity, || config_members(config).hashed)
}
