//! `InfrastructureStatus`: what the infrastructure controller has made. Lenient.

use serde::Deserialize;

use crate::api::gotext::json::null_as_default;
use crate::provider::document::Document;

/// Networks and groups that machines are made in.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InfrastructureStatus {
    /// Virtual network and subnets.
    #[serde(default, deserialize_with = "null_as_default")]
    pub networks: Networks,
    /// Resource group of the shoot.
    #[serde(default, deserialize_with = "null_as_default")]
    pub resource_group: ResourceGroup,
    /// Identity that machines get.
    pub identity: Option<Identity>,
    /// Whether machines are placed in zones; otherwise in scale sets.
    #[serde(default, deserialize_with = "null_as_default")]
    pub zoned: bool,
}

impl Document for InfrastructureStatus {
    const KIND: &'static str = "InfrastructureStatus";
    const API_VERSION: &'static str = super::API_VERSION;
    const STRICT: bool = false;
}

/// Networks of a shoot.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Networks {
    /// The virtual network.
    #[serde(default, deserialize_with = "null_as_default")]
    pub vnet: VirtualNetwork,
    /// Its subnets.
    #[serde(default, deserialize_with = "null_as_default")]
    pub subnets: Vec<Subnet>,
    /// One subnet for all zones, or one for each.
    #[serde(default, deserialize_with = "null_as_default")]
    pub layout: SubnetLayout,
}

/// Whether zones share a subnet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub enum SubnetLayout {
    /// All zones share one (also for unknown and empty layouts).
    #[default]
    SingleSubnet,
    /// Each zone has its own.
    MultipleSubnet,
}

impl From<String> for SubnetLayout {
    fn from(layout: String) -> Self {
        if layout == "MultipleSubnet" { Self::MultipleSubnet } else { Self::SingleSubnet }
    }
}

/// A virtual network.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VirtualNetwork {
    /// Name.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// Resource group, if it is another one than the shoot's.
    pub resource_group: Option<String>,
}

/// A subnet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Subnet {
    /// Name.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// `nodes` or `internal`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub purpose: String,
    /// The zone that it is for.
    pub zone: Option<String>,
    /// Whether it existed before the layout changed; then its name does not count in the hash.
    #[serde(default, deserialize_with = "null_as_default")]
    pub migrated: bool,
}

/// A resource group.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ResourceGroup {
    /// Name.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
}

/// An identity for machines.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Identity {
    /// Resource id.
    #[serde(default, deserialize_with = "null_as_default")]
    pub id: String,
}
