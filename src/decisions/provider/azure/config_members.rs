//! Hash inputs and explanations of each member of a `WorkerConfig` for Azure. To add a member, see
//! `docs/development.md`.

use super::documents::{
    CapacityReservation, DataVolumeConfig, DataVolumeImage, DiagnosticsProfile, VolumeConfig, WorkerConfig,
};
use crate::provider::config_members::ConfigMembers;

/// Lists every member in hash order, so that a new one can't be forgotten.
pub(super) fn config_members(config: &WorkerConfig) -> ConfigMembers {
    let WorkerConfig {
        _api_version: _,
        _kind: _,
        node_template,
        diagnostics_profile,
        volume,
        data_volumes,
        capacity_reservation,
    } = config;
    let mut members = ConfigMembers::default();
    if let Some(template) = node_template {
        members.node_template(template);
    }
    let caching = volume.as_ref().and_then(|VolumeConfig { caching }| caching.clone());
    members.hash("volume").add("caching", caching.as_ref());
    members.explain_or("volume.caching", "root disk caching", caching, "None");
    for DataVolumeConfig { name, image_ref } in data_volumes {
        let mut hashed = members.hash(format!("dataVolumes[{name}]"));
        hashed.add("name", Some(name));
        let Some(image) = image_ref else { continue };
        let DataVolumeImage { urn, id, community_gallery_image_id, shared_gallery_image_id } = image;
        hashed
            .add("imageRef.urn", urn.as_ref())
            .add("imageRef.id", id.as_ref())
            .add("imageRef.communityGalleryImageID", community_gallery_image_id.as_ref())
            .add("imageRef.sharedGalleryImageID", shared_gallery_image_id.as_ref());
        let preferred = image.references().preferred();
        let preferred = preferred.map(|(member, value)| format!("{name}: {member} {value}"));
        members.explain("dataVolumes", "data volume image", [preferred]);
    }
    if let Some(DiagnosticsProfile { enabled, storage_uri }) = diagnostics_profile {
        let hashed = &mut members.hash("diagnosticsProfile");
        hashed.add("enabled", Some(enabled)).add("storageURI", storage_uri.as_ref());
        let location = storage_uri.as_deref().map_or("a managed account", without_query);
        let value = if *enabled { format!("on, to {location}") } else { "off".to_owned() };
        members.explain("diagnosticsProfile", "boot diagnostics", [Some(value)]);
    }
    if let Some(CapacityReservation { capacity_reservation_group_id: group }) = capacity_reservation {
        members.hash("capacityReservation").add("capacityReservationGroupID", group.as_ref());
        let path = "capacityReservation.capacityReservationGroupID";
        members.explain(path, "capacity reservation", [group.clone()]);
    }
    members
}

/// Removes the query, which may contain a shared access signature.
fn without_query(uri: &str) -> &str {
    uri.split_once('?').map_or(uri, |(address, _)| address)
}
