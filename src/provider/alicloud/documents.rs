//! The documents of `alicloud.provider.extensions.gardener.cloud/v1alpha1`.

use super::AliCloud;
use crate::provider::document::documents;
use crate::provider::image::{ImagesDocument, KeepsImages};
use crate::provider::profile::{ImagesOnly, RegionalVersion};

/// Group and version of all documents.
pub const API_VERSION: &str = "alicloud.provider.extensions.gardener.cloud/v1alpha1";

/// AliCloud's half of a CloudProfile.
pub type CloudProfileConfig = ImagesOnly<ImageVersion>;

/// One version of an image.
pub type ImageVersion = RegionalVersion<ImageRegion>;

documents! { strict
    /// An image in a region; in the old format it is for `amd64`.
    pub struct ImageRegion {
        /// Region.
        pub name: String,
        /// The image.
        pub id: String,
    }
}

/// `InfrastructureStatus`, as far as it records images in the account of the shoot.
pub type InfrastructureStatus = ImagesDocument<AliCloud>;

impl KeepsImages for AliCloud {
    const KIND: &'static str = "InfrastructureStatus";
    const API_VERSION: &'static str = API_VERSION;
}
