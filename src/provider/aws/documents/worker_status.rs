//! `WorkerStatus`: what this extension keeps in `status.providerStatus` of the Worker. Strict.

use serde::{Deserialize, Serialize};

use crate::api::gardener::Capabilities;
use crate::api::gotext::json::null_as_default;
use crate::provider::document::Document;

/// Images that pools use.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkerStatus {
    #[serde(rename = "apiVersion")]
    _api_version: Option<String>,
    #[serde(rename = "kind")]
    _kind: Option<String>,
    /// Resolved images; they are used on when they leave the CloudProfile.
    #[serde(default, deserialize_with = "null_as_default")]
    pub machine_images: Vec<StatusImage>,
}

impl Document for WorkerStatus {
    const KIND: &'static str = "WorkerStatus";
    const API_VERSION: &'static str = super::API_VERSION;
    const STRICT: bool = true;
}

/// A resolved image: with an architecture where the CloudProfile declares no capabilities, else with capabilities.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusImage {
    /// Name of the image.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// Version of the image.
    #[serde(default, deserialize_with = "null_as_default")]
    pub version: String,
    /// The image in the region of the shoot.
    #[serde(default, deserialize_with = "null_as_default")]
    pub ami: String,
    /// CPU architecture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// Capabilities of the flavor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
}
