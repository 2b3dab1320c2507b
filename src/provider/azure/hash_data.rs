//! What Azure adds to the hash of a pool (spec/azure-worker.md sections 8.2 and 8.3).

use serde_json::value::RawValue;

use super::documents::{Identity, WorkerConfig};
use super::virtual_capacity::without_virtual_capacity;
use crate::api::gardener::{DataVolume, WorkerPool};
use crate::api::gotext::version::Version;
use crate::pool::hash::{HashError, HashItems, ProviderItems};

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
    let by_values = match pool.kubernetes_version.as_deref() {
        None => false,
        Some(text) => Version::parse(text)
            .map_err(|source| HashError::Version { field: "kubernetesVersion", source })?
            .at_least_including_prereleases(1, 35),
    };
    let Some(raw) = pool.provider_config.as_deref() else { return Ok(HashItems::default()) };
    Ok(if by_values { value_items(config) } else { text_items(raw, config) })
}

fn value_items(config: &WorkerConfig) -> HashItems {
    let mut items = HashItems::default();
    if let Some(template) = &config.node_template {
        for (resource, quantity) in template.capacity() {
            items.push(
                format!("providerConfig.nodeTemplate.capacity[{resource}]"),
                format!("{resource}={}", quantity.value_rounded_up()),
            );
        }
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

fn text_items(raw: &RawValue, config: &WorkerConfig) -> HashItems {
    let mut items = HashItems::default();
    let has_virtual_capacity = config.node_template.as_ref().is_some_and(|template| template.has_virtual_capacity());
    if has_virtual_capacity {
        items.push("providerConfig", without_virtual_capacity(raw.get()));
    } else {
        items.push("providerConfig", raw.get());
    }
    items
}
