//! The documents of `alicloud.provider.extensions.gardener.cloud/v1alpha1` (spec/other-providers.md sections 1 and 2).

use serde::Deserialize;

use crate::api::gardener::{Capabilities, MachineImage};
use crate::api::gotext::json::null_as_default;
use crate::provider::document::Document;
use crate::provider::explanation::ImageName;
use crate::provider::image_provider::KeptImage;
use crate::provider::profile::{ImageVersions, RegionalVersion};

/// Group and version of all documents.
pub const API_VERSION: &str = "alicloud.provider.extensions.gardener.cloud/v1alpha1";

/// `CloudProfileConfig`: AliCloud's half of a CloudProfile. Strict.
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

/// An image in a region; in the old format it is for `amd64`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageRegion {
    /// Region.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// The image.
    #[serde(default, deserialize_with = "null_as_default")]
    pub id: String,
}

/// One version of an image.
pub type ImageVersion = RegionalVersion<ImageRegion>;

/// `InfrastructureStatus`, as far as it records images in the account of the shoot.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InfrastructureStatus {
    /// The images.
    #[serde(default, deserialize_with = "null_as_default")]
    pub machine_images: Vec<InfrastructureImage>,
}

impl Document for InfrastructureStatus {
    const KIND: &'static str = "InfrastructureStatus";
    const API_VERSION: &'static str = API_VERSION;
    const STRICT: bool = false;
}

/// An image in the account of the shoot.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct InfrastructureImage {
    #[serde(default, deserialize_with = "null_as_default")]
    name: String,
    #[serde(default, deserialize_with = "null_as_default")]
    version: String,
    #[serde(default, deserialize_with = "null_as_default")]
    id: String,
    encrypted: Option<bool>,
}

impl InfrastructureImage {
    /// It fits every machine: only name, version and encryption are compared.
    pub(super) fn to_kept(&self) -> KeptImage {
        KeptImage {
            image: MachineImage { name: self.name.clone(), version: self.version.clone() },
            reference: ImageName::of("id", &self.id),
            capabilities: Capabilities::default(),
            encrypted: Some(self.encrypted.unwrap_or_default()),
        }
    }
}
