//! `CloudProfileConfig`: Azure's half of a CloudProfile. Strict.

use super::image_reference::names_an_image;
use crate::api::gardener::Capabilities;
use crate::provider::document::{Document, documents, kinds};
use crate::provider::profile::ImageVersions;

documents! { strict
    /// Images, fault domains and the cloud of a CloudProfile.
    pub struct CloudProfileConfig {
        _api_version: Option<String>,
        _kind: Option<String>,
        /// Deprecated, but demanded; workers do not read it.
        pub count_update_domains: Vec<FaultDomainCount>,
        /// Fault domains by region, for scale sets.
        pub count_fault_domains: Vec<FaultDomainCount>,
        /// Images by name and version.
        pub machine_images: Vec<ImageVersions<ImageVersion>>,
        /// Machine types of old-format profiles.
        pub machine_types: Vec<ProfileMachineType>,
        /// Which Azure cloud.
        pub cloud_configuration: Option<CloudConfiguration>,
    }

    /// Number of fault domains in a region.
    pub struct FaultDomainCount {
        /// Region.
        pub region: String,
        /// Fault domains.
        pub count: i32,
    }

    /// One version of an image, in the old format or with flavors.
    pub struct ImageVersion {
        /// The version.
        pub version: String,
        /// Whether the marketplace agreement is not checked.
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
        /// Whether the marketplace agreement is not checked.
        pub skip_marketplace_agreement: Option<bool>,
        /// What a machine must be able to do.
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

    /// What an old-format profile says of a machine type.
    pub struct ProfileMachineType {
        /// Name of the machine type.
        pub name: String,
        /// Whether its network can be accelerated.
        pub accelerated_networking: Option<bool>,
    }

    /// Which Azure cloud a profile is for.
    pub struct CloudConfiguration {
        /// `AzurePublic`, `AzureChina` or `AzureGovernment`.
        pub name: String,
    }
}

kinds! { CloudProfileConfig of super::API_VERSION: strict true; }

documents! { lenient
    /// The same document for whoever asks only for the cloud; nothing else in it has to be right. Lenient.
    pub struct ConfiguredCloud {
        /// Which Azure cloud.
        pub cloud_configuration: Option<CloudConfiguration>,
    }
}

impl Document for ConfiguredCloud {
    const KIND: &'static str = CloudProfileConfig::KIND;
    const API_VERSION: &'static str = super::API_VERSION;
    const STRICT: bool = false;
}

names_an_image!(ImageVersion);
names_an_image!(ImageFlavor);
