//! `WorkerStatus`: the `status.providerStatus` that this extension writes into the Worker. Strict.

use serde::Serialize;

use super::image_reference::image_references;
use crate::provider::DependencyRecord;
use crate::provider::document::{documents, kinds};
use wire::api::gardener::Capabilities;

documents! { strict
    /// Images that pools use, and scale sets that pools depend on.
    #[derive(Serialize)]
    pub struct WorkerStatus {
        /// API version.
        pub api_version: Option<String>,
        /// Always `WorkerStatus`.
        pub kind: Option<String>,
        /// Resolved images, which stay in use after their removal from the CloudProfile.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub machine_images: Vec<StatusImage>,
        /// Scale sets of non-zonal pools.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub vmo_dependencies: Vec<DependencyRecord>,
    }

    /// A resolved image. Old entries have an architecture instead of capabilities.
    #[derive(PartialEq, Eq, Serialize)]
    pub struct StatusImage {
        /// Name of the image.
        pub name: String,
        /// Version of the image.
        pub version: String,
        /// Old entries: whether the image supports accelerated networking.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub accelerated_networking: Option<bool>,
        /// Old entries: CPU architecture.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub architecture: Option<String>,
        /// Capabilities of the flavor.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub capabilities: Option<Capabilities>,
        /// Whether to skip the check of the marketplace agreement.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub skip_marketplace_agreement: Option<bool>,
        /// Marketplace image.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub urn: Option<String>,
        /// Resource id.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub id: Option<String>,
        /// Image of a community gallery.
        #[serde(rename = "communityGalleryImageID", skip_serializing_if = "Option::is_none")]
        pub community_gallery_image_id: Option<String>,
        /// Image of a shared gallery.
        #[serde(rename = "sharedGalleryImageID", skip_serializing_if = "Option::is_none")]
        pub shared_gallery_image_id: Option<String>,
    }
}

kinds! { WorkerStatus of super::API_VERSION: strict true; }

image_references!(StatusImage);
