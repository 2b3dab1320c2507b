//! `CloudProfileConfig`: the provider config of an Azure CloudProfile. Strict.

use super::image_reference::image_references;
use crate::provider::document::{Document, documents, kinds};
use crate::provider::profile::ImageVersions;
use wire::api::gardener::Capabilities;

documents! { strict
    /// Images, fault domains and the cloud of a CloudProfile.
    pub struct CloudProfileConfig {
        _api_version: Option<String>,
        _kind: Option<String>,
        /// Deprecated but required; not used for Workers.
        pub count_update_domains: Vec<FaultDomainCount>,
        /// Fault domains by region, for scale sets.
        pub count_fault_domains: Vec<FaultDomainCount>,
        /// Images by name and version.
        pub machine_images: Vec<ImageVersions<ImageVersion>>,
        /// Machine types of old-format profiles.
        pub machine_types: Vec<ProfileMachineType>,
        /// The Azure cloud.
        pub cloud_configuration: Option<CloudConfiguration>,
    }

    /// Number of fault domains in a region.
    pub struct FaultDomainCount {
        /// Name of the region.
        pub region: String,
        /// Number of fault domains.
        pub count: i32,
    }

    /// One version of an image, in the old format or with flavors.
    pub struct ImageVersion {
        /// Version of the image.
        pub version: String,
        /// Whether to skip the check of the marketplace agreement.
        pub skip_marketplace_agreement: Option<bool>,
        /// Old format: whether the image supports accelerated networking.
        pub accelerated_networking: Option<bool>,
        /// Old format: CPU architecture.
        pub architecture: Option<String>,
        /// Images by capabilities.
        pub capability_flavors: Vec<ImageFlavor>,
        /// Marketplace image.
        pub urn: Option<String>,
        /// Resource id.
        pub id: Option<String>,
        /// Image of a community gallery.
        #[serde(rename = "communityGalleryImageID")]
        pub community_gallery_image_id: Option<String>,
        /// Image of a shared gallery.
        #[serde(rename = "sharedGalleryImageID")]
        pub shared_gallery_image_id: Option<String>,
    }

    /// An image for machines with certain capabilities.
    pub struct ImageFlavor {
        /// Whether to skip the check of the marketplace agreement.
        pub skip_marketplace_agreement: Option<bool>,
        /// Capabilities that a machine must support.
        pub capabilities: Capabilities,
        /// Marketplace image.
        pub urn: Option<String>,
        /// Resource id.
        pub id: Option<String>,
        /// Image of a community gallery.
        #[serde(rename = "communityGalleryImageID")]
        pub community_gallery_image_id: Option<String>,
        /// Image of a shared gallery.
        #[serde(rename = "sharedGalleryImageID")]
        pub shared_gallery_image_id: Option<String>,
    }

    /// A machine type in an old-format profile.
    pub struct ProfileMachineType {
        /// Name of the machine type.
        pub name: String,
        /// Whether the machine type supports accelerated networking.
        pub accelerated_networking: Option<bool>,
    }

    /// The Azure cloud of a profile.
    pub struct CloudConfiguration {
        /// `AzurePublic`, `AzureChina` or `AzureGovernment`.
        pub name: String,
    }
}

kinds! { CloudProfileConfig of super::API_VERSION: strict true; }

documents! { lenient
    /// The same document with only the cloud, so that errors in other members don't matter. Lenient.
    pub struct ConfiguredCloud {
        /// The Azure cloud.
        pub cloud_configuration: Option<CloudConfiguration>,
    }
}

impl Document for ConfiguredCloud {
    const KIND: &'static str = CloudProfileConfig::KIND;
    const API_VERSION: &'static str = super::API_VERSION;
    const STRICT: bool = false;
}

image_references!(ImageVersion);
image_references!(ImageFlavor);
