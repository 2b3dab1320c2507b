//! `WorkerStatus`: what this extension keeps in `status.providerStatus` of the Worker. Strict.

use serde::{Deserialize, Serialize};

use super::image_reference::names_an_image;
use crate::api::gardener::Capabilities;
use crate::api::gotext::json::null_as_default;
use crate::provider::document::Document;

/// Images that pools use, and scale sets that pools depend on.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkerStatus {
    /// Group and version.
    #[serde(default)]
    pub api_version: Option<String>,
    /// `WorkerStatus`.
    #[serde(default)]
    pub kind: Option<String>,
    /// Resolved images; they are used on when they leave the CloudProfile.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub machine_images: Vec<StatusImage>,
    /// Scale sets of non-zonal pools.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub vmo_dependencies: Vec<ScaleSetDependency>,
}

impl Document for WorkerStatus {
    const KIND: &'static str = "WorkerStatus";
    const API_VERSION: &'static str = super::API_VERSION;
    const STRICT: bool = true;
}

/// A resolved image. Old ones have an architecture instead of capabilities.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StatusImage {
    /// Name of the image.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// Version of the image.
    #[serde(default, deserialize_with = "null_as_default")]
    pub version: String,
    /// Old form: whether the network can be accelerated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accelerated_networking: Option<bool>,
    /// Old form: CPU architecture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// Capabilities of the flavor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// Whether the marketplace agreement is not checked.
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

names_an_image!(StatusImage);

/// A scale set that a non-zonal pool depends on. Its name counts in the pool hash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScaleSetDependency {
    /// Name of the pool.
    #[serde(default, deserialize_with = "null_as_default")]
    pub pool_name: String,
    /// Resource id.
    #[serde(default, deserialize_with = "null_as_default")]
    pub id: String,
    /// Name of the scale set.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
}
