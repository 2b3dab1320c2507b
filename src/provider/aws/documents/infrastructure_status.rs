//! `InfrastructureStatus`: what the infrastructure controller has made. Strict, so members that nothing reads are listed.

use crate::provider::document::{documents, kinds};

documents! { strict
    /// Key, profiles and networks that machines are made with.
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

    /// What exists at EC2.
    pub struct Ec2 {
        /// Name of the key pair for machines.
        pub key_name: String,
    }

    /// What exists at IAM.
    pub struct Iam {
        /// Instance profiles by purpose.
        pub instance_profiles: Vec<InstanceProfile>,
        _roles: Vec<Role>,
    }

    /// An instance profile.
    pub struct InstanceProfile {
        /// Such as `nodes`.
        pub purpose: String,
        /// Name of the profile.
        pub name: String,
    }

    /// A role; not read.
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
        /// `nodes` or `public`.
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

    /// A file system; not read.
    pub struct ElasticFileSystem {
        #[serde(rename = "ID", alias = "id")]
        _id: Option<String>,
    }
}

kinds! { InfrastructureStatus of super::API_VERSION: strict true; }
