//! `InfrastructureStatus`: what the infrastructure controller has made. Strict, so members that nothing reads are listed.

use crate::provider::document::{documents, kinds};

documents! { strict
    /// Networks and the service account of machines.
    pub struct InfrastructureStatus {
        _api_version: Option<String>,
        _kind: Option<String>,
        /// Networks.
        pub networks: Networks,
        /// The service account of machines that have none of their own.
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
        /// `IPv4`, `IPv6` or both. The member is written in small letters.
        #[serde(rename = "ipfamilies")]
        pub ip_families: Vec<String>,
    }

    /// The network; not read.
    pub struct VirtualNetwork {
        _name: Option<String>,
        _cloud_router: Option<CloudRouter>,
    }

    /// A router; not read.
    pub struct CloudRouter {
        _name: Option<String>,
    }

    /// A subnet.
    pub struct Subnet {
        /// Its name.
        pub name: String,
        /// `nodes`, `internal` or `services`.
        pub purpose: String,
    }

    /// An address of the gateway; not read.
    pub struct NatIp {
        _ip: Option<String>,
    }
}

kinds! { InfrastructureStatus of super::API_VERSION: strict true; }
