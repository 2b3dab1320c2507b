//! The documents of `alicloud.provider.extensions.gardener.cloud/v1alpha1`. All strict. Pools have no document: whatever stands in
//! their `providerConfig` is not read.

use crate::api::gardener::Capabilities;
use crate::provider::document::{documents, kinds};
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

    /// `InfrastructureStatus`: what the infrastructure controller has made.
    pub struct InfrastructureStatus {
        _api_version: Option<String>,
        _kind: Option<String>,
        /// The network.
        pub vpc: VirtualNetwork,
        /// The key pair that it made; machines don't get it.
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
        /// Such as `nodes`.
        pub purpose: String,
        /// Its id.
        pub id: String,
        /// The zone that it is in.
        pub zone: String,
    }

    /// A security group.
    pub struct SecurityGroup {
        /// Such as `nodes`.
        pub purpose: String,
        /// Its id.
        pub id: String,
    }

    /// `WorkerStatus`: images that pools use. No look-up asks it.
    pub struct WorkerStatus {
        _api_version: Option<String>,
        _kind: Option<String>,
        /// The images.
        pub machine_images: Vec<AccountImage>,
    }

    /// An image in the account of the shoot.
    #[derive(PartialEq, Eq, serde::Serialize)]
    pub struct AccountImage {
        /// Name of the image.
        pub name: String,
        /// Version of the image.
        pub version: String,
        /// The image.
        pub id: String,
        /// Whether it is for encrypted root volumes; absent means that it is not.
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
