//! The documents of `openstack.provider.extensions.gardener.cloud/v1alpha1`.

use serde_json::Value;

use crate::provider::DependencyRecord;
use crate::provider::document::{documents, kinds};
use crate::provider::node_template::StrictNodeTemplate;
use crate::provider::profile::ImageVersions;
use wire::api::gardener::Capabilities;

/// API version of all documents.
pub const API_VERSION: &str = "openstack.provider.extensions.gardener.cloud/v1alpha1";

documents! { strict
    /// `CloudProfileConfig`: the provider config of an OpenStack CloudProfile. Strict; unused members are accepted and
    /// ignored.
    pub struct CloudProfileConfig {
        _api_version: Option<String>,
        _kind: Option<String>,
        /// Images by name and version.
        pub machine_images: Vec<ImageVersions<ImageVersion>>,
        /// Constraints on shoots.
        pub constraints: Constraints,
        /// Addresses of DNS servers.
        pub dns_servers: Vec<String>,
        /// Keystone URL for all regions.
        #[serde(rename = "keystoneURL")]
        pub keystone_url: String,
        /// Keystone URLs by region.
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
        /// Server group policies available to pools.
        pub server_group_policies: Vec<String>,
        _resolv_conf_options: Option<Vec<String>>,
        _storage_classes: Option<Vec<Value>>,
    }

    /// Constraints on shoots.
    pub struct Constraints {
        /// Pools of floating addresses.
        pub floating_pools: Vec<FloatingPool>,
        /// Providers of load balancers.
        pub load_balancer_providers: Vec<LoadBalancerProvider>,
    }

    /// A pool of floating addresses.
    pub struct FloatingPool {
        /// Name of the pool.
        pub name: String,
        _region: Option<String>,
        _domain: Option<String>,
        _default_floating_subnet: Option<String>,
        _non_constraining: Option<bool>,
        /// Not decoded, because no image depends on it.
        _load_balancer_classes: Option<Vec<Value>>,
    }

    /// A provider of load balancers.
    pub struct LoadBalancerProvider {
        /// Name of the provider.
        pub name: String,
        _region: Option<String>,
    }

    /// The Keystone URL of a region.
    pub struct KeystoneUrl {
        /// Name of the region.
        pub region: String,
        /// Keystone URL.
        pub url: String,
        _ca_cert: Option<String>,
    }

    /// One version of an image, in the old format or with flavors.
    pub struct ImageVersion {
        /// Version of the image.
        pub version: String,
        /// Old format: name of the image in regions without an id.
        pub image: String,
        /// Old format: images by region and architecture.
        pub regions: Vec<ImageRegion>,
        /// Images by capabilities. If any are listed, the old format is ignored.
        pub capability_flavors: Vec<ImageFlavor>,
    }

    /// Images for machines with certain capabilities.
    pub struct ImageFlavor {
        /// Capabilities that a machine must support.
        pub capabilities: Capabilities,
        /// Name of the image in regions without an id.
        pub image: String,
        /// Image of each region.
        pub regions: Vec<ImageRegion>,
    }

    /// An image in a region.
    pub struct ImageRegion {
        /// Name of the region.
        pub name: String,
        /// Id of the image.
        pub id: String,
        /// CPU architecture in the old format; absent means `amd64`.
        pub architecture: Option<String>,
    }

    /// `InfrastructureStatus`, written by the infrastructure controller. Strict.
    pub struct InfrastructureStatus {
        _api_version: Option<String>,
        _kind: Option<String>,
        /// Networks of the shoot.
        pub networks: Networks,
        /// Settings of all machines.
        pub node: Node,
        /// Security groups by purpose.
        pub security_groups: Vec<SecurityGroup>,
    }

    /// The networks of a shoot.
    pub struct Networks {
        /// Id of the network.
        pub id: String,
        _name: Option<String>,
        _floating_pool: Option<NamedObject>,
        _router: Option<Router>,
        /// Subnets by purpose.
        pub subnets: Vec<Subnet>,
        _share_network: Option<NamedObject>,
    }

    /// A cloud object; unused.
    pub struct NamedObject {
        _id: Option<String>,
        _name: Option<String>,
    }

    /// A router; unused.
    pub struct Router {
        _id: Option<String>,
        _ip: Option<String>,
        #[serde(rename = "externalFixedIP")]
        _external_fixed_ip: Vec<String>,
    }

    /// A subnet.
    pub struct Subnet {
        /// Purpose: `nodes` or `nodes-ipv6`.
        pub purpose: String,
        /// Id of the subnet.
        pub id: String,
        _cidr: Option<String>,
    }

    /// Settings of all machines.
    pub struct Node {
        /// Name of the key pair.
        pub key_name: String,
    }

    /// A security group.
    pub struct SecurityGroup {
        /// Purpose, such as `nodes`.
        pub purpose: String,
        _id: Option<String>,
        /// Name of the group, which machines refer to.
        pub name: String,
    }

    /// `WorkerConfig`: the provider config of a pool on OpenStack. Strict.
    pub struct WorkerConfig {
        pub(super) _api_version: Option<String>,
        pub(super) _kind: Option<String>,
        /// Overrides the node template of the pool.
        pub node_template: Option<StrictNodeTemplate>,
        /// Server group of the machines.
        pub server_group: Option<ServerGroup>,
        /// Tags of machines.
        pub machine_labels: Vec<MachineLabel>,
        /// Names of security groups in addition to that of all nodes.
        pub additional_security_groups: Vec<String>,
    }

    /// The server group of a pool.
    pub struct ServerGroup {
        /// Policy such as `anti-affinity`; empty means no group.
        pub policy: String,
    }

    /// A tag of machines.
    #[derive(PartialEq, Eq)]
    pub struct MachineLabel {
        /// Key of the tag.
        pub name: String,
        /// Value of the tag.
        pub value: String,
        /// Whether a changed value rolls the nodes.
        pub trigger_rolling_on_update: bool,
    }

    /// `WorkerStatus`: the `status.providerStatus` that this extension writes into the Worker. Strict.
    pub struct WorkerStatus {
        _api_version: Option<String>,
        _kind: Option<String>,
        /// Images that pools use, which stay in use after their removal from the CloudProfile.
        pub machine_images: Vec<StatusImage>,
        /// Server groups of pools.
        pub server_group_dependencies: Vec<DependencyRecord>,
    }

    /// An image that pools use: with an architecture if the CloudProfile declares no capabilities, otherwise with
    /// capabilities.
    #[derive(PartialEq, Eq, serde::Serialize)]
    pub struct StatusImage {
        /// Name of the image.
        pub name: String,
        /// Version of the image.
        pub version: String,
        /// Name of the image in the cloud.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub image: String,
        /// Id of the image in the region, which takes precedence over the name.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub id: String,
        /// CPU architecture.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub architecture: Option<String>,
        /// Capabilities of the flavor.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub capabilities: Option<Capabilities>,
    }
}

kinds! {
    CloudProfileConfig of API_VERSION: strict true;
    InfrastructureStatus of API_VERSION: strict true;
    WorkerConfig of API_VERSION: strict true;
    WorkerStatus of API_VERSION: strict true;
}
