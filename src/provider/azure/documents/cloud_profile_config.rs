//! `CloudProfileConfig`: Azure's half of a CloudProfile. Strict.

use serde::Deserialize;

use super::image_reference::names_an_image;
use crate::api::gardener::Capabilities;
use crate::api::gotext::json::null_as_default;
use crate::provider::document::Document;
use crate::provider::profile::ImageVersions;

/// Images, fault domains and the cloud of a CloudProfile.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CloudProfileConfig {
    #[serde(rename = "apiVersion")]
    _api_version: Option<String>,
    #[serde(rename = "kind")]
    _kind: Option<String>,
    /// Deprecated, but demanded; workers do not read it.
    #[serde(default, deserialize_with = "null_as_default")]
    pub count_update_domains: Vec<FaultDomainCount>,
    /// Fault domains by region, for scale sets.
    #[serde(default, deserialize_with = "null_as_default")]
    pub count_fault_domains: Vec<FaultDomainCount>,
    /// Images by name and version.
    #[serde(default, deserialize_with = "null_as_default")]
    pub machine_images: Vec<ImageVersions<ImageVersion>>,
    /// Machine types of old-format profiles.
    #[serde(default, deserialize_with = "null_as_default")]
    pub machine_types: Vec<ProfileMachineType>,
    /// Which Azure cloud.
    pub cloud_configuration: Option<CloudConfiguration>,
}

impl Document for CloudProfileConfig {
    const KIND: &'static str = "CloudProfileConfig";
    const API_VERSION: &'static str = super::API_VERSION;
    const STRICT: bool = true;
    const LARGE: bool = true;
}

/// The same document for whoever asks only for the cloud; nothing else in it has to be right. Lenient.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfiguredCloud {
    /// Which Azure cloud.
    pub cloud_configuration: Option<CloudConfiguration>,
}

impl Document for ConfiguredCloud {
    const KIND: &'static str = CloudProfileConfig::KIND;
    const API_VERSION: &'static str = super::API_VERSION;
    const STRICT: bool = false;
    const LARGE: bool = true;
}

/// Number of fault domains in a region.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultDomainCount {
    /// Region.
    #[serde(default, deserialize_with = "null_as_default")]
    pub region: String,
    /// Fault domains.
    #[serde(default, deserialize_with = "null_as_default")]
    pub count: i32,
}

/// One version of an image, in the old format or with flavors.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageVersion {
    /// The version.
    #[serde(default, deserialize_with = "null_as_default")]
    pub version: String,
    /// Whether the marketplace agreement is not checked.
    pub skip_marketplace_agreement: Option<bool>,
    /// Old format: whether the image supports accelerated networking.
    pub accelerated_networking: Option<bool>,
    /// Old format: CPU architecture.
    pub architecture: Option<String>,
    /// Images by capabilities.
    #[serde(default, deserialize_with = "null_as_default")]
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
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageFlavor {
    /// Whether the marketplace agreement is not checked.
    pub skip_marketplace_agreement: Option<bool>,
    /// What a machine must be able to do.
    #[serde(default, deserialize_with = "null_as_default")]
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

names_an_image!(ImageVersion);
names_an_image!(ImageFlavor);

/// What an old-format profile says of a machine type.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProfileMachineType {
    /// Name of the machine type.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// Whether its network can be accelerated.
    pub accelerated_networking: Option<bool>,
}

/// Which Azure cloud a profile is for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CloudConfiguration {
    /// `AzurePublic`, `AzureChina` or `AzureGovernment`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
}
