//! `CloudProfileConfig`: the provider config of a GCP CloudProfile. Strict.

use crate::provider::document::documents;
use crate::provider::profile::ImagesOnly;
use wire::api::gardener::Capabilities;

/// The provider config of a GCP CloudProfile.
pub type CloudProfileConfig = ImagesOnly<ImageVersion>;

documents! { strict
    /// One version of an image, in the old format or with flavors. Images have the same path in every region.
    pub struct ImageVersion {
        /// Version of the image.
        pub version: String,
        /// Old format: path of the image.
        pub image: String,
        /// Old format: CPU architecture; absent means `amd64`.
        pub architecture: Option<String>,
        /// Images by capabilities. If any are listed, the old format is ignored.
        pub capability_flavors: Vec<ImageFlavor>,
    }

    /// An image for machines with certain capabilities.
    pub struct ImageFlavor {
        /// Capabilities that a machine must support.
        pub capabilities: Capabilities,
        /// Path of the image.
        pub image: String,
    }
}
