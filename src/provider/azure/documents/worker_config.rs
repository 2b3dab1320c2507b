//! `WorkerConfig`: what a user can say about a pool on Azure. Strict.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::image_reference::names_an_image;
use crate::api::gardener::NodeTemplate;
use crate::api::gotext::json::null_as_default;
use crate::api::gotext::quantity::Quantity;
use crate::provider::document::Document;

/// Provider config of a pool.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkerConfig {
    #[serde(rename = "apiVersion")]
    _api_version: Option<String>,
    #[serde(rename = "kind")]
    _kind: Option<String>,
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

/// A node template inside a strict document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StrictNodeTemplate {
    #[serde(default, deserialize_with = "null_as_default")]
    capacity: BTreeMap<String, Quantity>,
    virtual_capacity: Option<BTreeMap<String, Quantity>>,
}

impl StrictNodeTemplate {
    /// Whether a virtual capacity is given; an empty object counts.
    #[must_use]
    pub fn has_virtual_capacity(&self) -> bool {
        self.virtual_capacity.is_some()
    }

    /// Resources of the node.
    #[must_use]
    pub fn capacity(&self) -> &BTreeMap<String, Quantity> {
        &self.capacity
    }

    /// Writes its resources over those of `template`.
    pub fn override_in(&self, template: &mut NodeTemplate) {
        template.capacity.extend(self.capacity.clone());
        template.virtual_capacity.extend(self.virtual_capacity.clone().unwrap_or_default());
    }
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
