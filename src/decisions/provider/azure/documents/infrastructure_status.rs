//! `InfrastructureStatus`, written by the infrastructure controller. Lenient.

use serde::Deserialize;

use crate::provider::document::{documents, kinds};

documents! { lenient
    /// Networks, resource group and identity of machines.
    pub struct InfrastructureStatus {
        /// Virtual network and subnets.
        pub networks: Networks,
        /// Resource group of the shoot.
        pub resource_group: ResourceGroup,
        /// Identity assigned to machines.
        pub identity: Option<Identity>,
        /// Whether machines are placed in zones; otherwise in scale sets.
        pub zoned: bool,
    }

    /// Networks of a shoot.
    pub struct Networks {
        /// The virtual network.
        pub vnet: VirtualNetwork,
        /// Subnets of the virtual network.
        pub subnets: Vec<Subnet>,
        /// Whether all zones share a subnet.
        pub layout: SubnetLayout,
    }

    /// A virtual network.
    pub struct VirtualNetwork {
        /// Name of the network.
        pub name: String,
        /// Resource group, if it differs from that of the shoot.
        pub resource_group: Option<String>,
    }

    /// A subnet.
    #[derive(PartialEq, Eq)]
    pub struct Subnet {
        /// Name of the subnet.
        pub name: String,
        /// Purpose: `nodes` or `internal`.
        pub purpose: String,
        /// Zone of the subnet.
        pub zone: Option<String>,
        /// Whether the subnet existed before the layout changed; if so, its name is not hashed.
        pub migrated: bool,
    }

    /// A resource group.
    pub struct ResourceGroup {
        /// Name of the group.
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
    /// All zones share a subnet (also for unknown and empty layouts).
    #[default]
    SingleSubnet,
    /// Each zone has its own subnet.
    MultipleSubnet,
}

impl From<String> for SubnetLayout {
    fn from(layout: String) -> Self {
        if layout == "MultipleSubnet" { Self::MultipleSubnet } else { Self::SingleSubnet }
    }
}
