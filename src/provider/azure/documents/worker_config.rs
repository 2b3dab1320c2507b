//! `WorkerConfig`: what a user can say about a pool on Azure. Strict.

use serde::Deserialize;

use super::image_reference::names_an_image;
use crate::api::gotext::json::null_as_default;
use crate::provider::document::Document;
use crate::provider::node_template::StrictNodeTemplate;

/// Provider config of a pool.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkerConfig {
    #[serde(rename = "apiVersion")]
    pub(in crate::provider) _api_version: Option<String>,
    #[serde(rename = "kind")]
    pub(in crate::provider) _kind: Option<String>,
    /// Overrides the node template of the pool.
    pub node_template: Option<StrictNodeTemplate>,
    /// Boot diagnostics.
    pub diagnostics_profile: Option<DiagnosticsProfile>,
    /// Root volume.
    pub volume: Option<VolumeConfig>,
    /// Images for data volumes.
    #[serde(default, deserialize_with = "null_as_default")]
    pub data_volumes: Vec<DataVolumeConfig>,
    /// Capacity reservation.
    pub capacity_reservation: Option<CapacityReservation>,
}

impl Document for WorkerConfig {
    const KIND: &'static str = "WorkerConfig";
    const API_VERSION: &'static str = super::API_VERSION;
    const STRICT: bool = true;
}

/// Boot diagnostics.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiagnosticsProfile {
    /// Whether they are on.
    #[serde(default, deserialize_with = "null_as_default")]
    pub enabled: bool,
    /// Storage account; absent means a managed one.
    #[serde(rename = "storageURI")]
    pub storage_uri: Option<String>,
}

/// Root volume.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeConfig {
    /// `None`, `ReadOnly` or `ReadWrite`.
    pub caching: Option<String>,
}

/// A data volume.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DataVolumeConfig {
    /// Name of a data volume of the pool.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// Image that the volume starts with.
    pub image_ref: Option<DataVolumeImage>,
}

/// Image of a data volume.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataVolumeImage {
    /// Marketplace image.
    pub urn: Option<String>,
    /// Resource id.
    pub id: Option<String>,
    /// Image of a community gallery.
    #[serde(rename = "communityGalleryImageID")]
    pub community_gallery_image_id: Option<String>,
    /// Image of a shared gallery.
    #[serde(rename = "sharedGalleryImageID")]
    pub shared_gallery_image_id: Option<String>,
}

names_an_image!(DataVolumeImage);

/// Capacity reservation.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapacityReservation {
    /// Resource id of the reservation group.
    #[serde(rename = "capacityReservationGroupID")]
    pub capacity_reservation_group_id: Option<String>,
}
