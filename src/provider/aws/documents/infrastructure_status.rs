//! `InfrastructureStatus`: what the infrastructure controller has made. Strict, so members that nothing reads are listed.

use serde::Deserialize;

use crate::api::gotext::json::null_as_default;
use crate::provider::document::Document;

/// Key, profiles and networks that machines are made with.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InfrastructureStatus {
    #[serde(rename = "apiVersion")]
    _api_version: Option<String>,
    #[serde(rename = "kind")]
    _kind: Option<String>,
    /// Key pair.
    #[serde(default, deserialize_with = "null_as_default")]
    pub ec2: Ec2,
    /// Instance profiles.
    #[serde(default, deserialize_with = "null_as_default")]
    pub iam: Iam,
    /// Subnets and security groups.
    #[serde(default, deserialize_with = "null_as_default")]
    pub vpc: VirtualNetwork,
    #[serde(rename = "elasticFileSystem")]
    _elastic_file_system: Option<ElasticFileSystem>,
}

impl Document for InfrastructureStatus {
    const KIND: &'static str = "InfrastructureStatus";
    const API_VERSION: &'static str = super::API_VERSION;
    const STRICT: bool = true;
}

/// What exists at EC2.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Ec2 {
    /// Name of the key pair for machines.
    #[serde(default, deserialize_with = "null_as_default")]
    pub key_name: String,
}

/// What exists at IAM.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Iam {
    /// Instance profiles by purpose.
    #[serde(default, deserialize_with = "null_as_default")]
    pub instance_profiles: Vec<InstanceProfile>,
    #[serde(rename = "roles", default, deserialize_with = "null_as_default")]
    _roles: Vec<Role>,
}

/// An instance profile.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstanceProfile {
    /// Such as `nodes`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub purpose: String,
    /// Name of the profile.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
}

/// A role; not read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Role {
    #[serde(rename = "purpose")]
    _purpose: Option<String>,
    #[serde(rename = "arn")]
    _arn: Option<String>,
}

/// The network of a shoot.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VirtualNetwork {
    #[serde(rename = "id")]
    _id: Option<String>,
    /// Subnets by purpose and zone.
    #[serde(default, deserialize_with = "null_as_default")]
    pub subnets: Vec<Subnet>,
    /// Security groups by purpose.
    #[serde(default, deserialize_with = "null_as_default")]
    pub security_groups: Vec<SecurityGroup>,
}

/// A subnet.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subnet {
    /// `nodes` or `public`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub purpose: String,
    /// Its id.
    #[serde(default, deserialize_with = "null_as_default")]
    pub id: String,
    /// The zone that it is in.
    #[serde(default, deserialize_with = "null_as_default")]
    pub zone: String,
}

/// A security group.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecurityGroup {
    /// Such as `nodes`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub purpose: String,
    /// Its id.
    #[serde(default, deserialize_with = "null_as_default")]
    pub id: String,
}

/// A file system; not read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ElasticFileSystem {
    #[serde(rename = "ID", alias = "id")]
    _id: Option<String>,
}
