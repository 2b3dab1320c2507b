//! The documents of `gcp.provider.extensions.gardener.cloud/v1alpha1` (spec/other-providers.md sections 1 and 2).

use serde::Deserialize;

use crate::api::gardener::{Capabilities, MachineImage};
use crate::api::gotext::json::null_as_default;
use crate::capabilities::{DEFAULT_ARCHITECTURE, only_architecture};
use crate::provider::document::Document;
use crate::provider::explanation::ImageName;
use crate::provider::image_provider::KeptImage;
use crate::provider::profile::ImageVersions;

/// Group and version of all documents.
pub const API_VERSION: &str = "gcp.provider.extensions.gardener.cloud/v1alpha1";

/// `CloudProfileConfig`: GCP's half of a CloudProfile. Strict.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CloudProfileConfig {
    #[serde(rename = "apiVersion")]
    _api_version: Option<String>,
    #[serde(rename = "kind")]
    _kind: Option<String>,
    /// Images by name and version.
    #[serde(default, deserialize_with = "null_as_default")]
    pub machine_images: Vec<ImageVersions<ImageVersion>>,
}

impl Document for CloudProfileConfig {
    const KIND: &'static str = "CloudProfileConfig";
    const API_VERSION: &'static str = API_VERSION;
    const STRICT: bool = true;
}

/// One version of an image, in the old format or with flavors. Images have the same path in every region.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageVersion {
    /// The version.
    #[serde(default, deserialize_with = "null_as_default")]
    pub version: String,
    /// Old format: path of the image.
    #[serde(default, deserialize_with = "null_as_default")]
    pub image: String,
    /// Old format: CPU architecture; absent means `amd64`.
    pub architecture: Option<String>,
    /// Images by capabilities; where there are any, the old format does not count.
    #[serde(default, deserialize_with = "null_as_default")]
    pub capability_flavors: Vec<ImageFlavor>,
}

/// An image for machines with certain capabilities.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageFlavor {
    /// What a machine must be able to do.
    #[serde(default, deserialize_with = "null_as_default")]
    pub capabilities: Capabilities,
    /// Path of the image.
    #[serde(default, deserialize_with = "null_as_default")]
    pub image: String,
}

/// `WorkerStatus`, as far as it keeps images that pools have used.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkerStatus {
    /// The images.
    #[serde(default, deserialize_with = "null_as_default")]
    pub machine_images: Vec<StatusImage>,
}

impl Document for WorkerStatus {
    const KIND: &'static str = "WorkerStatus";
    const API_VERSION: &'static str = API_VERSION;
    const STRICT: bool = false;
}

/// A kept image: with an architecture, or with capabilities.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct StatusImage {
    #[serde(default, deserialize_with = "null_as_default")]
    name: String,
    #[serde(default, deserialize_with = "null_as_default")]
    version: String,
    #[serde(default, deserialize_with = "null_as_default")]
    image: String,
    architecture: Option<String>,
    #[serde(default, deserialize_with = "null_as_default")]
    capabilities: Capabilities,
}

impl StatusImage {
    /// Without capabilities, its architecture is one, also where the CloudProfile declares none.
    pub(super) fn to_kept(&self) -> KeptImage {
        let by_architecture = || only_architecture(self.architecture.as_deref().unwrap_or(DEFAULT_ARCHITECTURE));
        let capabilities = Some(&self.capabilities).filter(|capabilities| !capabilities.is_empty());
        KeptImage {
            image: MachineImage { name: self.name.clone(), version: self.version.clone() },
            reference: ImageName::of("image", &self.image),
            capabilities: capabilities.cloned().unwrap_or_else(by_architecture),
            encrypted: None,
        }
    }
}
