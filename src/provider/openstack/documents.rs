//! The documents of `openstack.provider.extensions.gardener.cloud/v1alpha1`.

use serde::Deserialize;
use serde_json::Value;

use super::OpenStack;
use crate::api::gardener::Capabilities;
use crate::api::gotext::json::null_as_default;
use crate::provider::document::Document;
use crate::provider::image::{ImagesDocument, KeepsImages};
use crate::provider::profile::ImageVersions;

/// Group and version of all documents.
pub const API_VERSION: &str = "openstack.provider.extensions.gardener.cloud/v1alpha1";

/// `CloudProfileConfig`: OpenStack's half of a CloudProfile. Strict. What no question here is about is accepted and not
/// read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CloudProfileConfig {
    #[serde(rename = "apiVersion")]
    _api_version: Option<String>,
    #[serde(rename = "kind")]
    _kind: Option<String>,
    /// Images by name and version.
    #[serde(default, deserialize_with = "null_as_default")]
    pub machine_images: Vec<ImageVersions<ImageVersion>>,
    /// What shoots may choose from.
    #[serde(default, deserialize_with = "null_as_default")]
    pub constraints: Constraints,
    /// Addresses of DNS servers.
    #[serde(default, deserialize_with = "null_as_default")]
    pub dns_servers: Vec<String>,
    /// Where tokens come from.
    #[serde(rename = "keystoneURL", default, deserialize_with = "null_as_default")]
    pub keystone_url: String,
    /// Where tokens come from, by region.
    #[serde(rename = "keystoneURLs", default, deserialize_with = "null_as_default")]
    pub keystone_urls: Vec<KeystoneUrl>,
    #[serde(rename = "keystoneCACert")]
    _keystone_ca_cert: Option<String>,
    #[serde(rename = "keystoneForceInsecure")]
    _keystone_force_insecure: Option<bool>,
    #[serde(rename = "dhcpDomain")]
    _dhcp_domain: Option<String>,
    #[serde(rename = "requestTimeout")]
    _request_timeout: Option<String>,
    #[serde(rename = "rescanBlockStorageOnResize")]
    _rescan_block_storage_on_resize: Option<bool>,
    #[serde(rename = "ignoreVolumeAZ")]
    _ignore_volume_az: Option<bool>,
    #[serde(rename = "nodeVolumeAttachLimit")]
    _node_volume_attach_limit: Option<i32>,
    #[serde(rename = "useSNAT")]
    _use_snat: Option<bool>,
    #[serde(rename = "serverGroupPolicies")]
    _server_group_policies: Option<Vec<String>>,
    #[serde(rename = "resolvConfOptions")]
    _resolv_conf_options: Option<Vec<String>>,
    #[serde(rename = "storageClasses")]
    _storage_classes: Option<Vec<Value>>,
}

impl Document for CloudProfileConfig {
    const KIND: &'static str = "CloudProfileConfig";
    const API_VERSION: &'static str = API_VERSION;
    const STRICT: bool = true;
    const LARGE: bool = true;
}

/// What shoots may choose from.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Constraints {
    /// Pools of floating addresses.
    #[serde(default, deserialize_with = "null_as_default")]
    pub floating_pools: Vec<FloatingPool>,
    /// Providers of load balancers.
    #[serde(default, deserialize_with = "null_as_default")]
    pub load_balancer_providers: Vec<LoadBalancerProvider>,
}

/// A pool of floating addresses.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FloatingPool {
    /// Its name.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    #[serde(rename = "region")]
    _region: Option<String>,
    #[serde(rename = "domain")]
    _domain: Option<String>,
    #[serde(rename = "defaultFloatingSubnet")]
    _default_floating_subnet: Option<String>,
    #[serde(rename = "nonConstraining")]
    _non_constraining: Option<bool>,
    /// Not looked into: no image depends on it.
    #[serde(rename = "loadBalancerClasses")]
    _load_balancer_classes: Option<Vec<Value>>,
}

/// A provider of load balancers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadBalancerProvider {
    /// Its name.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    #[serde(rename = "region")]
    _region: Option<String>,
}

/// Where the tokens of a region come from.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeystoneUrl {
    /// The region.
    #[serde(default, deserialize_with = "null_as_default")]
    pub region: String,
    /// The address.
    #[serde(default, deserialize_with = "null_as_default")]
    pub url: String,
    #[serde(rename = "caCert")]
    _ca_cert: Option<String>,
}

/// One version of an image, in the old format or with flavors.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageVersion {
    /// The version.
    #[serde(default, deserialize_with = "null_as_default")]
    pub version: String,
    /// Old format: name of the image in every region that has no id.
    #[serde(default, deserialize_with = "null_as_default")]
    pub image: String,
    /// Old format: images by region and architecture.
    #[serde(default, deserialize_with = "null_as_default")]
    pub regions: Vec<ImageRegion>,
    /// Images by capabilities; where there are any, the old format does not count.
    #[serde(default, deserialize_with = "null_as_default")]
    pub capability_flavors: Vec<ImageFlavor>,
}

/// Images for machines with certain capabilities.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageFlavor {
    /// What a machine must be able to do.
    #[serde(default, deserialize_with = "null_as_default")]
    pub capabilities: Capabilities,
    /// Name of the image in every region that has no id.
    #[serde(default, deserialize_with = "null_as_default")]
    pub image: String,
    /// The image in each region.
    #[serde(default, deserialize_with = "null_as_default")]
    pub regions: Vec<ImageRegion>,
}

/// An image in a region.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageRegion {
    /// Region.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// The image.
    #[serde(default, deserialize_with = "null_as_default")]
    pub id: String,
    /// CPU architecture in the old format; absent means `amd64`.
    pub architecture: Option<String>,
}

/// `WorkerStatus`, as far as it keeps images that pools have used.
pub type WorkerStatus = ImagesDocument<OpenStack>;

impl KeepsImages for OpenStack {
    const KIND: &'static str = "WorkerStatus";
    const API_VERSION: &'static str = API_VERSION;
}
