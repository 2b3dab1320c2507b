//! `InfrastructureStatus`: what the infrastructure controller has made. Lenient.

use serde::Deserialize;

use crate::provider::document::{documents, kinds};

documents! { lenient
    /// Networks and groups that machines are made in.
    pub struct InfrastructureStatus {
        /// Virtual network and subnets.
        pub networks: Networks,
        /// Resource group of the shoot.
        pub resource_group: ResourceGroup,
        /// Identity that machines get.
        pub identity: Option<Identity>,
        /// Whether machines are placed in zones; otherwise in scale sets.
        pub zoned: bool,
    }

    /// Networks of a shoot.
    pub struct Networks {
        /// The virtual network.
        pub vnet: VirtualNetwork,
        /// Its subnets.
        pub subnets: Vec<Subnet>,
        /// One subnet for all zones, or one for each.
        pub layout: SubnetLayout,
    }

    /// A virtual network.
    pub struct VirtualNetwork {
        /// Name.
        pub name: String,
        /// Resource group, if it is another one than the shoot's.
        pub resource_group: Option<String>,
    }

    /// A subnet.
    #[derive(PartialEq, Eq)]
    pub struct Subnet {
        /// Name.
        pub name: String,
        /// `nodes` or `internal`.
        pub purpose: String,
        /// The zone that it is for.
        pub zone: Option<String>,
        /// Whether it existed before the layout changed; then its name does not count in the hash.
        pub migrated: bool,
    }

    /// A resource group.
    pub struct ResourceGroup {
        /// Name.
        pub name: String,
    }

    /// An identity for machines.
    pub struct Identity {
        /// Resource id.
        pub id: String,
    }
}

kinds! { InfrastructureStatus of super::API_VERSION: strict false; }

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
