//! The documents of `openstack.provider.extensions.gardener.cloud/v1alpha1`.

use serde_json::Value;

use crate::api::gardener::Capabilities;
use crate::provider::DependencyRecord;
use crate::provider::document::{documents, kinds};
use crate::provider::node_template::StrictNodeTemplate;
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
        /// Policies that pools may ask for.
        pub server_group_policies: Vec<String>,
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

    /// `InfrastructureStatus`: what the infrastructure controller has made. Strict.
    pub struct InfrastructureStatus {
        _api_version: Option<String>,
        _kind: Option<String>,
        /// Networks.
        pub networks: Networks,
        /// What all machines have.
        pub node: Node,
        /// Security groups by purpose.
        pub security_groups: Vec<SecurityGroup>,
    }

    /// The networks of a shoot.
    pub struct Networks {
        /// The network.
        pub id: String,
        _name: Option<String>,
        _floating_pool: Option<NamedObject>,
        _router: Option<Router>,
        /// Subnets by purpose.
        pub subnets: Vec<Subnet>,
        _share_network: Option<NamedObject>,
    }

    /// An object of the cloud; not read.
    pub struct NamedObject {
        _id: Option<String>,
        _name: Option<String>,
    }

    /// A router; not read.
    pub struct Router {
        _id: Option<String>,
        _ip: Option<String>,
        #[serde(rename = "externalFixedIP")]
        _external_fixed_ip: Vec<String>,
    }

    /// A subnet.
    pub struct Subnet {
        /// `nodes` or `nodes-ipv6`.
        pub purpose: String,
        /// Its id.
        pub id: String,
        _cidr: Option<String>,
    }

    /// What all machines have.
    pub struct Node {
        /// The key pair.
        pub key_name: String,
    }

    /// A security group.
    pub struct SecurityGroup {
        /// Such as `nodes`.
        pub purpose: String,
        _id: Option<String>,
        /// Its name, by which machines refer to it.
        pub name: String,
    }

    /// `WorkerConfig`: what a user can say about a pool on OpenStack. Strict.
    pub struct WorkerConfig {
        pub(super) _api_version: Option<String>,
        pub(super) _kind: Option<String>,
        /// Overrides the node template of the pool.
        pub node_template: Option<StrictNodeTemplate>,
        /// How machines are placed to each other.
        pub server_group: Option<ServerGroup>,
        /// Tags of machines.
        pub machine_labels: Vec<MachineLabel>,
        /// Security groups beside that of all nodes, by name.
        pub additional_security_groups: Vec<String>,
    }

    /// The server group of a pool.
    pub struct ServerGroup {
        /// Such as `anti-affinity`; empty means no group.
        pub policy: String,
    }

    /// A tag of machines.
    #[derive(PartialEq, Eq)]
    pub struct MachineLabel {
        /// Its key.
        pub name: String,
        /// Its value.
        pub value: String,
        /// Whether another value rolls the nodes.
        pub trigger_rolling_on_update: bool,
    }

    /// `WorkerStatus`: what this extension keeps in `status.providerStatus` of the Worker. Strict.
    pub struct WorkerStatus {
        _api_version: Option<String>,
        _kind: Option<String>,
        /// Images that pools use; they are used on when they leave the CloudProfile.
        pub machine_images: Vec<StatusImage>,
        /// Server groups of pools.
        pub server_group_dependencies: Vec<DependencyRecord>,
    }

    /// An image that pools use: with an architecture where the CloudProfile declares no capabilities, else with capabilities.
    #[derive(PartialEq, Eq, serde::Serialize)]
    pub struct StatusImage {
        /// Name of the image.
        pub name: String,
        /// Version of the image.
        pub version: String,
        /// Its name at the cloud.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub image: String,
        /// Its id in the region, which goes before the name.
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
