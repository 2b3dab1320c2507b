//! The documents of `openstack.provider.extensions.gardener.cloud/v1alpha1`.

use serde_json::Value;

use super::OpenStack;
use crate::api::gardener::Capabilities;
use crate::provider::document::{Document, documents};
use crate::provider::image::{ImagesDocument, KeepsImages};
use crate::provider::profile::ImageVersions;

/// Group and version of all documents.
pub const API_VERSION: &str = "openstack.provider.extensions.gardener.cloud/v1alpha1";

documents! { strict
    /// `CloudProfileConfig`: OpenStack's half of a CloudProfile. Strict. What no question here is about is accepted and not
    /// read.
    pub struct CloudProfileConfig {
        _api_version: Option<String>,
        _kind: Option<String>,
        /// Images by name and version.
        pub machine_images: Vec<ImageVersions<ImageVersion>>,
        /// What shoots may choose from.
        pub constraints: Constraints,
        /// Addresses of DNS servers.
        pub dns_servers: Vec<String>,
        /// Where tokens come from.
        #[serde(rename = "keystoneURL")]
        pub keystone_url: String,
        /// Where tokens come from, by region.
        #[serde(rename = "keystoneURLs")]
        pub keystone_urls: Vec<KeystoneUrl>,
        #[serde(rename = "keystoneCACert")]
        _keystone_ca_cert: Option<String>,
        _keystone_force_insecure: Option<bool>,
        _dhcp_domain: Option<String>,
        _request_timeout: Option<String>,
        _rescan_block_storage_on_resize: Option<bool>,
        #[serde(rename = "ignoreVolumeAZ")]
        _ignore_volume_az: Option<bool>,
        _node_volume_attach_limit: Option<i32>,
        #[serde(rename = "useSNAT")]
        _use_snat: Option<bool>,
        _server_group_policies: Option<Vec<String>>,
        _resolv_conf_options: Option<Vec<String>>,
        _storage_classes: Option<Vec<Value>>,
    }

    /// What shoots may choose from.
    pub struct Constraints {
        /// Pools of floating addresses.
        pub floating_pools: Vec<FloatingPool>,
        /// Providers of load balancers.
        pub load_balancer_providers: Vec<LoadBalancerProvider>,
    }

    /// A pool of floating addresses.
    pub struct FloatingPool {
        /// Its name.
        pub name: String,
        _region: Option<String>,
        _domain: Option<String>,
        _default_floating_subnet: Option<String>,
        _non_constraining: Option<bool>,
        /// Not looked into: no image depends on it.
        _load_balancer_classes: Option<Vec<Value>>,
    }

    /// A provider of load balancers.
    pub struct LoadBalancerProvider {
        /// Its name.
        pub name: String,
        _region: Option<String>,
    }

    /// Where the tokens of a region come from.
    pub struct KeystoneUrl {
        /// The region.
        pub region: String,
        /// The address.
        pub url: String,
        _ca_cert: Option<String>,
    }

    /// One version of an image, in the old format or with flavors.
    pub struct ImageVersion {
        /// The version.
        pub version: String,
        /// Old format: name of the image in every region that has no id.
        pub image: String,
        /// Old format: images by region and architecture.
        pub regions: Vec<ImageRegion>,
        /// Images by capabilities; where there are any, the old format does not count.
        pub capability_flavors: Vec<ImageFlavor>,
    }

    /// Images for machines with certain capabilities.
    pub struct ImageFlavor {
        /// What a machine must be able to do.
        pub capabilities: Capabilities,
        /// Name of the image in every region that has no id.
        pub image: String,
        /// The image in each region.
        pub regions: Vec<ImageRegion>,
    }

    /// An image in a region.
    pub struct ImageRegion {
        /// Region.
        pub name: String,
        /// The image.
        pub id: String,
        /// CPU architecture in the old format; absent means `amd64`.
        pub architecture: Option<String>,
    }
}

impl Document for CloudProfileConfig {
    const KIND: &'static str = "CloudProfileConfig";
    const API_VERSION: &'static str = API_VERSION;
    const STRICT: bool = true;
    const LARGE: bool = true;
}

/// `WorkerStatus`, as far as it keeps images that pools have used.
pub type WorkerStatus = ImagesDocument<OpenStack>;

impl KeepsImages for OpenStack {
    const KIND: &'static str = "WorkerStatus";
    const API_VERSION: &'static str = API_VERSION;
}
