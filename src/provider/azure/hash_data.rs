//! What Azure adds to the hash of a pool. `docs/development.md` says how a member is added.

use super::documents::{
    CapacityReservation, DataVolumeConfig, DataVolumeImage, DiagnosticsProfile, Identity, VolumeConfig, WorkerConfig,
};
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
        let DataVolume { name, volume_type, size, encrypted: _ } = volume;
        items.push(format!("dataVolumes[{name}].size"), size.as_str());
        items.push_some(format!("dataVolumes[{name}].type"), volume_type.as_deref());
    }
    let UnitFacts { identity, scale_set, zone_subnet } = facts;
    items.push_some("infrastructureProviderStatus.identity.id", identity.map(|identity| identity.id.as_str()));
    items.push_some("providerStatus.vmoDependencies[].name", scale_set);
    items.push_some("infrastructureProviderStatus.networks.subnets[].name", zone_subnet);
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
    config_items::config_items(pool, BY_VALUES_SINCE, has_virtual_capacity, || value_items(config))
}

/// Every member is named, so that a new one can't be forgotten.
fn value_items(config: &WorkerConfig) -> HashItems {
    let WorkerConfig {
        _api_version: _,
        _kind: _,
        node_template,
        diagnostics_profile,
        volume,
        data_volumes,
        capacity_reservation,
    } = config;
    let mut items = HashItems::default();
    // The virtual capacity exists only for the autoscaler.
    if let Some(StrictNodeTemplate { capacity, virtual_capacity: _ }) = node_template {
        config_items::push_capacity(&mut items, capacity);
    }
    if let Some(VolumeConfig { caching }) = volume {
        items.push_some("providerConfig.volume.caching", caching.as_deref());
    }
    for DataVolumeConfig { name, image_ref } in data_volumes {
        let path = format!("providerConfig.dataVolumes[{name}]");
        items.push(format!("{path}.name"), name.as_str());
        let Some(image) = image_ref else { continue };
        let DataVolumeImage { urn, id, community_gallery_image_id, shared_gallery_image_id } = image;
        items.push_some(format!("{path}.imageRef.urn"), urn.as_deref());
        items.push_some(format!("{path}.imageRef.id"), id.as_deref());
        items.push_some(format!("{path}.imageRef.communityGalleryImageID"), community_gallery_image_id.as_deref());
        items.push_some(format!("{path}.imageRef.sharedGalleryImageID"), shared_gallery_image_id.as_deref());
    }
    if let Some(DiagnosticsProfile { enabled, storage_uri }) = diagnostics_profile {
        items.push("providerConfig.diagnosticsProfile.enabled", enabled.to_string());
        items.push_some("providerConfig.diagnosticsProfile.storageURI", storage_uri.as_deref());
    }
    if let Some(CapacityReservation { capacity_reservation_group_id }) = capacity_reservation {
        let path = "providerConfig.capacityReservation.capacityReservationGroupID";
        items.push_some(path, capacity_reservation_group_id.as_deref());
    }
    items
}
