//! `CloudProfileConfig`: AWS's half of a CloudProfile. Strict.

use serde::Deserialize;

use crate::api::gotext::json::null_as_default;
use crate::provider::profile::{ImagesOnly, RegionalVersion};

/// Images of a CloudProfile.
pub type CloudProfileConfig = ImagesOnly<ImageVersion>;

/// One version of an image.
pub type ImageVersion = RegionalVersion<ImageRegion>;

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
