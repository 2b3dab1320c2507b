//! `WorkerConfig`: the provider config of a pool on Azure. Strict.

use super::image_reference::image_references;
use crate::provider::document::{documents, kinds};
use crate::provider::node_template::StrictNodeTemplate;

documents! { strict
    /// Provider config of a pool.
    pub struct WorkerConfig {
        pub(in crate::provider) _api_version: Option<String>,
        pub(in crate::provider) _kind: Option<String>,
        /// Overrides the node template of the pool.
        pub node_template: Option<StrictNodeTemplate>,
        /// Boot diagnostics.
        pub diagnostics_profile: Option<DiagnosticsProfile>,
        /// Root volume.
        pub volume: Option<VolumeConfig>,
        /// Images for data volumes.
        pub data_volumes: Vec<DataVolumeConfig>,
        /// Capacity reservation.
        pub capacity_reservation: Option<CapacityReservation>,
    }

    /// Boot diagnostics.
    pub struct DiagnosticsProfile {
        /// Whether boot diagnostics are enabled.
        pub enabled: bool,
        /// URI of the storage account; absent means a managed one.
        #[serde(rename = "storageURI")]
        pub storage_uri: Option<String>,
    }

    /// Root volume.
    pub struct VolumeConfig {
        /// `None`, `ReadOnly` or `ReadWrite`.
        pub caching: Option<String>,
    }

    /// A data volume.
    pub struct DataVolumeConfig {
        /// Name of a data volume of the pool.
        pub name: String,
        /// Image from which the volume is created.
        pub image_ref: Option<DataVolumeImage>,
    }

    /// Image of a data volume.
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

    /// Capacity reservation.
    pub struct CapacityReservation {
        /// Resource id of the reservation group.
        #[serde(rename = "capacityReservationGroupID")]
        pub capacity_reservation_group_id: Option<String>,
    }
}

kinds! { WorkerConfig of super::API_VERSION: strict true; }

image_references!(DataVolumeImage);
