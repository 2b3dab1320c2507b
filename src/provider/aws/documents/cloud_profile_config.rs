//! `CloudProfileConfig`: AWS's half of a CloudProfile. Strict.

use serde::Deserialize;

use crate::api::gardener::Capabilities;
use crate::api::gotext::json::null_as_default;
use crate::provider::document::Document;
use crate::provider::profile::ImageVersions;

/// Images of a CloudProfile.
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
    const API_VERSION: &'static str = super::API_VERSION;
    const STRICT: bool = true;
}

/// One version of an image, in the old format with regions or with flavors.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageVersion {
    /// The version.
    #[serde(default, deserialize_with = "null_as_default")]
    pub version: String,
    /// Old format: images by region and architecture.
    #[serde(default, deserialize_with = "null_as_default")]
    pub regions: Vec<ImageRegion>,
    /// Images by capabilities and region; where there are any, `regions` does not count.
    #[serde(default, deserialize_with = "null_as_default")]
    pub capability_flavors: Vec<ImageFlavor>,
}

/// An image in a region, in the old format.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageRegion {
    /// Region.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// The image.
    #[serde(default, deserialize_with = "null_as_default")]
    pub ami: String,
    /// CPU architecture; absent means `amd64`.
    pub architecture: Option<String>,
}

/// Images for machines with certain capabilities.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageFlavor {
    /// What a machine must be able to do.
    #[serde(default, deserialize_with = "null_as_default")]
    pub capabilities: Capabilities,
    /// The image in each region.
    #[serde(default, deserialize_with = "null_as_default")]
    pub regions: Vec<FlavorRegion>,
}

/// An image in a region. The architecture belongs to the flavor's capabilities; here workers do not read it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlavorRegion {
    /// Region.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// The image.
    #[serde(default, deserialize_with = "null_as_default")]
    pub ami: String,
    /// CPU architecture; not allowed here.
    pub architecture: Option<String>,
}
