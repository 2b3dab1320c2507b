//! `CloudProfileConfig`: the provider config of an AWS CloudProfile. Strict.

use crate::provider::document::documents;
use crate::provider::profile::{ImagesOnly, RegionalVersion};

/// Images of a CloudProfile.
pub type CloudProfileConfig = ImagesOnly<ImageVersion>;

/// One version of an image.
pub type ImageVersion = RegionalVersion<ImageRegion>;

documents! { strict
    /// An image in a region.
    pub struct ImageRegion {
        /// Name of the region.
        pub name: String,
        /// Id of the image.
        pub ami: String,
        /// CPU architecture in the old format; absent means `amd64`.
        pub architecture: Option<String>,
    }
}
