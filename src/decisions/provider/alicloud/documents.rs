//! The documents of `alicloud.provider.extensions.gardener.cloud/v1alpha1`, all strict. Pools have no document, so
//! their `providerConfig` is ignored.

use crate::provider::document::{documents, kinds};
use crate::provider::profile::{ImagesOnly, RegionalVersion};
use wire::api::gardener::Capabilities;

/// API version of all documents.
pub const API_VERSION: &str = "alicloud.provider.extensions.gardener.cloud/v1alpha1";

/// The provider config of an AliCloud CloudProfile.
pub type CloudProfileConfig = ImagesOnly<ImageVersion>;

/// One version of an image.
pub type ImageVersion = RegionalVersion<ImageRegion>;

documents! { strict
    /// An image in a region; in the old format it is for `amd64`.
    pub struct ImageRegion {
        /// Name of the region.
        pub name: String,
        /// Id of the image.
        pub id: String,
    }

    /// `InfrastructureStatus`, written by the infrastructure controller.
    pub struct InfrastructureStatus {
        _api_version: Option<String>,
        _kind: Option<String>,
        /// Network of the shoot.
        pub vpc: VirtualNetwork,
        /// Key pair from the infrastructure controller; machines don't use it.
        _key_pair_name: Option<String>,
        /// Images in the account of the shoot.
        pub machine_images: Vec<AccountImage>,
    }

    /// The network of a shoot.
    pub struct VirtualNetwork {
        _id: Option<String>,
        /// Subnets by purpose and zone.
        pub vswitches: Vec<VSwitch>,
        /// Security groups by purpose.
        pub security_groups: Vec<SecurityGroup>,
        #[serde(rename = "routeTableID")]
        _route_table_id: Option<String>,
    }

    /// A subnet.
    pub struct VSwitch {
        /// Purpose, such as `nodes`.
        pub purpose: String,
        /// Id of the subnet.
        pub id: String,
        /// Zone of the subnet.
        pub zone: String,
    }

    /// A security group.
    pub struct SecurityGroup {
        /// Purpose, such as `nodes`.
        pub purpose: String,
        /// Id of the security group.
        pub id: String,
    }

    /// `WorkerStatus` with the images that pools use. It is written, but not used to find images.
    pub struct WorkerStatus {
        _api_version: Option<String>,
        _kind: Option<String>,
        /// Images that pools use.
        pub machine_images: Vec<AccountImage>,
    }

    /// An image in the account of the shoot.
    #[derive(PartialEq, Eq, serde::Serialize)]
    pub struct AccountImage {
        /// Name of the image.
        pub name: String,
        /// Version of the image.
        pub version: String,
        /// Id of the image.
        pub id: String,
        /// Whether it is for encrypted root volumes; absent means `false`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub encrypted: Option<bool>,
        /// Capabilities of the flavor.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub capabilities: Option<Capabilities>,
    }
}

kinds! {
    InfrastructureStatus of API_VERSION: strict true;
    WorkerStatus of API_VERSION: strict true;
}
