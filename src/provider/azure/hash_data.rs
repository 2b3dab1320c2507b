//! What Azure adds to the hash of a pool (spec/azure-worker.md sections 8.2 and 8.3).

use super::documents::{Identity, WorkerConfig};
use crate::api::gardener::{DataVolume, WorkerPool};
use crate::pool::config_items::{self, ByValuesSince};
use crate::pool::hash::{HashError, HashItems, ProviderItems};
use crate::provider::node_template::StrictNodeTemplate;

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
        items.push(format!("dataVolumes[{}].size", volume.name), volume.size.as_str());
        items.push_some(format!("dataVolumes[{}].type", volume.name), volume.volume_type.as_deref());
    }
    items.push_some("infrastructureProviderStatus.identity.id", facts.identity.map(|identity| identity.id.as_str()));
    items.push_some("providerStatus.vmoDependencies[].name", facts.scale_set);
    items.push_some("infrastructureProviderStatus.networks.subnets[].name", facts.zone_subnet);
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
    let has_virtual_capacity = config.node_template.as_ref().is_some_and(StrictNodeTemplate::has_virtual_capacity);
    config_items::config_items(pool, BY_VALUES_SINCE, has_virtual_capacity, || value_items(config))
}

fn value_items(config: &WorkerConfig) -> HashItems {
    let mut items = HashItems::default();
    if let Some(template) = &config.node_template {
        config_items::push_capacity(&mut items, template.capacity());
    }
    items.push_some(
        "providerConfig.volume.caching",
        config.volume.as_ref().and_then(|volume| volume.caching.as_deref()),
    );
    for volume in &config.data_volumes {
        let path = format!("providerConfig.dataVolumes[{}]", volume.name);
        items.push(format!("{path}.name"), volume.name.as_str());
        if let Some(image) = &volume.image_ref {
            items.push_some(format!("{path}.imageRef.urn"), image.urn.as_deref());
            items.push_some(format!("{path}.imageRef.id"), image.id.as_deref());
            items.push_some(
                format!("{path}.imageRef.communityGalleryImageID"),
                image.community_gallery_image_id.as_deref(),
            );
            items.push_some(format!("{path}.imageRef.sharedGalleryImageID"), image.shared_gallery_image_id.as_deref());
        }
    }
    if let Some(diagnostics) = &config.diagnostics_profile {
        items.push("providerConfig.diagnosticsProfile.enabled", diagnostics.enabled.to_string());
        items.push_some("providerConfig.diagnosticsProfile.storageURI", diagnostics.storage_uri.as_deref());
    }
    items.push_some(
        "providerConfig.capacityReservation.capacityReservationGroupID",
        config
            .capacity_reservation
            .as_ref()
            .and_then(|reservation| reservation.capacity_reservation_group_id.as_deref()),
    );
    items
}
