//! `CloudProfileConfig`: AWS's half of a CloudProfile. Strict.

use serde::Deserialize;

use crate::api::gotext::json::null_as_default;
use crate::provider::document::Document;
use crate::provider::profile::{ImageVersions, RegionalVersion};

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

/// An image in a region.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageRegion {
    /// Region.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// The image.
    #[serde(default, deserialize_with = "null_as_default")]
    pub ami: String,
    /// CPU architecture in the old format; absent means `amd64`.
    pub architecture: Option<String>,
}

/// One version of an image.
pub type ImageVersion = RegionalVersion<ImageRegion>;
