//! `CloudProfileConfig`: GCP's half of a CloudProfile. Strict.

use crate::api::gardener::Capabilities;
use crate::provider::document::documents;
use crate::provider::profile::ImagesOnly;

/// GCP's half of a CloudProfile.
pub type CloudProfileConfig = ImagesOnly<ImageVersion>;

documents! { strict
    /// One version of an image, in the old format or with flavors. Images have the same path in every region.
    pub struct ImageVersion {
        /// The version.
        pub version: String,
        /// Old format: path of the image.
        pub image: String,
        /// Old format: CPU architecture; absent means `amd64`.
        pub architecture: Option<String>,
        /// Images by capabilities; where there are any, the old format does not count.
        pub capability_flavors: Vec<ImageFlavor>,
    }

    /// An image for machines with certain capabilities.
    pub struct ImageFlavor {
        /// What a machine must be able to do.
        pub capabilities: Capabilities,
        /// Path of the image.
        pub image: String,
    }
}
