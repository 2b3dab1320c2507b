//! A `CloudProfileConfig` that lists images and nothing else, as several providers have it.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{ImageDocument, ImageVersions, VersionEntry};
use crate::api::gotext::json::null_as_default;
use crate::provider::document::Document;

/// Images by name and version. Strict: other members are errors.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, bound = "Version: Deserialize<'de>")]
pub struct ImagesOnly<Version> {
    #[serde(rename = "apiVersion")]
    _api_version: Option<String>,
    #[serde(rename = "kind")]
    _kind: Option<String>,
    /// The images.
    #[serde(default = "Vec::new", deserialize_with = "null_as_default")]
    pub machine_images: Vec<ImageVersions<Version>>,
}

/// What tells whose versions of images these are.
pub trait ListedIn {
    /// Group and version of the document that lists them.
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
