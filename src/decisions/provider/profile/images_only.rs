//! A `CloudProfileConfig` that lists only images, as several providers use it.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{ImageDocument, ImageVersions, VersionEntry};
use crate::provider::document::Document;
use wire::api::gotext::json::null_as_default;

/// Images by name and version. Strict: other members are errors.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, bound = "Version: Deserialize<'de>")]
pub struct ImagesOnly<Version> {
    #[serde(rename = "apiVersion")]
    _api_version: Option<String>,
    #[serde(rename = "kind")]
    _kind: Option<String>,
    /// The listed images.
    #[serde(default = "Vec::new", deserialize_with = "null_as_default")]
    pub machine_images: Vec<ImageVersions<Version>>,
}

/// Identifies the document in which a version entry is listed.
pub trait ListedIn {
    /// API version of the document.
    const API_VERSION: &'static str;
}

impl<Version: ListedIn + DeserializeOwned + Default> Document for ImagesOnly<Version> {
    const KIND: &'static str = "CloudProfileConfig";
    const API_VERSION: &'static str = Version::API_VERSION;
    const STRICT: bool = true;
}

impl<Version: VersionEntry> ImageDocument for ImagesOnly<Version> {
    type Version = Version;

    fn machine_images(&self) -> &[ImageVersions<Version>] {
        &self.machine_images
    }
}
