//! `InfrastructureStatus`, written by the infrastructure controller. Strict, so unused members are listed as well.

use crate::provider::document::{documents, kinds};

documents! { strict
    /// Key pair, instance profiles and network for machines.
    pub struct InfrastructureStatus {
        _api_version: Option<String>,
        _kind: Option<String>,
        /// Key pair.
        pub ec2: Ec2,
        /// Instance profiles.
        pub iam: Iam,
        /// Subnets and security groups.
        pub vpc: VirtualNetwork,
        _elastic_file_system: Option<ElasticFileSystem>,
    }

    /// EC2 objects.
    pub struct Ec2 {
        /// Name of the key pair for machines.
        pub key_name: String,
    }

    /// IAM objects.
    pub struct Iam {
        /// Instance profiles by purpose.
        pub instance_profiles: Vec<InstanceProfile>,
        _roles: Vec<Role>,
    }

    /// An instance profile.
    pub struct InstanceProfile {
        /// Purpose, such as `nodes`.
        pub purpose: String,
        /// Name of the profile.
        pub name: String,
    }

    /// A role; unused.
    pub struct Role {
        _purpose: Option<String>,
        _arn: Option<String>,
    }

    /// The network of a shoot.
    pub struct VirtualNetwork {
        _id: Option<String>,
        /// Subnets by purpose and zone.
        pub subnets: Vec<Subnet>,
        /// Security groups by purpose.
        pub security_groups: Vec<SecurityGroup>,
    }

    /// A subnet.
    pub struct Subnet {
        /// Purpose: `nodes` or `public`.
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

    /// A file system; unused.
    pub struct ElasticFileSystem {
        #[serde(rename = "ID", alias = "id")]
        _id: Option<String>,
    }
}

kinds! { InfrastructureStatus of super::API_VERSION: strict true; }
