//! `InfrastructureStatus`, written by the infrastructure controller. Strict, so unused members are listed as well.

use crate::provider::document::{documents, kinds};

documents! { strict
    /// Networks and service account of machines.
    pub struct InfrastructureStatus {
        _api_version: Option<String>,
        _kind: Option<String>,
        /// Networks of the shoot.
        pub networks: Networks,
        /// Default service account of machines.
        pub service_account_email: String,
    }

    /// The networks of a shoot.
    pub struct Networks {
        #[serde(rename = "vpc")]
        _vpc: VirtualNetwork,
        /// Subnets by purpose.
        pub subnets: Vec<Subnet>,
        #[serde(rename = "natIPs")]
        _nat_ips: Vec<NatIp>,
        /// `IPv4`, `IPv6` or both. The member name is all lower case.
        #[serde(rename = "ipfamilies")]
        pub ip_families: Vec<String>,
    }

    /// The network; unused.
    pub struct VirtualNetwork {
        _name: Option<String>,
        _cloud_router: Option<CloudRouter>,
    }

    /// A router; unused.
    pub struct CloudRouter {
        _name: Option<String>,
    }

    /// A subnet.
    pub struct Subnet {
        /// Name of the subnet.
        pub name: String,
        /// Purpose: `nodes`, `internal` or `services`.
        pub purpose: String,
    }

    /// An address of the NAT gateway; unused.
    pub struct NatIp {
        _ip: Option<String>,
    }
}

kinds! { InfrastructureStatus of super::API_VERSION: strict true; }
