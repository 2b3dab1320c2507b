//! `WorkerConfig`: what a user can say about a pool on AWS. Strict.
//!
//! Parts that reach the machine class as they are can also be written.

use serde::Serialize;
use serde_with::apply;

use crate::provider::document::{documents, kinds};
use crate::provider::node_template::StrictNodeTemplate;

documents! { strict
    /// Provider config of a pool.
    pub struct WorkerConfig {
        pub(in crate::provider) _api_version: Option<String>,
        pub(in crate::provider) _kind: Option<String>,
        /// Overrides the node template of the pool.
        pub node_template: Option<StrictNodeTemplate>,
        /// Root volume.
        pub volume: Option<VolumeConfig>,
        /// Data volumes by name.
        pub data_volumes: Vec<DataVolumeConfig>,
        /// Instance profile instead of the infrastructure's.
        pub iam_instance_profile: Option<InstanceProfileConfig>,
        /// How machines may ask for their metadata.
        pub instance_metadata_options: Option<MetadataOptions>,
        /// Cores and threads.
        pub cpu_options: Option<CpuOptions>,
        /// Which reserved capacity machines use.
        pub capacity_reservation: Option<CapacityReservation>,
        /// Network interfaces instead of a single one.
        pub network_interfaces: Vec<NetworkInterfaceConfig>,
        /// On which hosts machines are placed.
        pub placement: Option<Placement>,
        /// How machines are paid.
        pub instance_market_options: Option<InstanceMarketOptions>,
    }

    /// A volume.
    pub struct VolumeConfig {
        /// Input and output operations per second.
        pub iops: Option<i32>,
        /// MiB per second.
        pub throughput: Option<i32>,
    }

    /// A data volume.
    pub struct DataVolumeConfig {
        /// Name of a data volume of the pool.
        pub name: String,
        /// Input and output operations per second.
        pub iops: Option<i32>,
        /// MiB per second.
        pub throughput: Option<i32>,
        /// Snapshot that the volume starts with.
        #[serde(rename = "snapshotID")]
        pub snapshot_id: Option<String>,
    }

    /// An instance profile by name or, without one, by its ARN.
    #[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
    #[derive(PartialEq, Eq, Serialize)]
    pub struct InstanceProfileConfig {
        /// Name.
        pub name: Option<String>,
        /// ARN.
        pub arn: Option<String>,
    }

    /// How machines may ask for their metadata.
    pub struct MetadataOptions {
        /// `required` or `optional`.
        pub http_tokens: Option<String>,
        /// How far an answer may travel.
        pub http_put_response_hop_limit: Option<i32>,
    }

    /// Cores and threads.
    #[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
    #[derive(PartialEq, Eq, Serialize)]
    pub struct CpuOptions {
        /// Cores.
        pub core_count: Option<i32>,
        /// Threads of a core.
        pub threads_per_core: Option<i32>,
        /// `enabled` or `disabled`: encrypted memory.
        pub amd_sev_snp: Option<String>,
    }

    /// Which reserved capacity machines use.
    #[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
    #[derive(PartialEq, Eq, Serialize)]
    pub struct CapacityReservation {
        /// `capacity-reservations-only`, `open` or `none`.
        pub capacity_reservation_preference: Option<String>,
        /// A reservation.
        pub capacity_reservation_id: Option<String>,
        /// A group of reservations.
        pub capacity_reservation_resource_group_arn: Option<String>,
    }

    /// One network interface, or several on a range of network cards.
    pub struct NetworkInterfaceConfig {
        /// The network card.
        pub network_card_index: Option<i32>,
        /// Network cards that get one such interface each.
        pub network_card_index_range: Option<CardRange>,
        /// Place of the interface at the card.
        pub device_index: i32,
        /// `interface`, `efa` or `efa-only`.
        #[serde(rename = "type")]
        pub interface_type: Option<String>,
        /// For people.
        pub description: Option<String>,
        /// Subnet instead of the zone's.
        #[serde(rename = "subnetID")]
        pub subnet_id: Option<String>,
    }

    /// Network cards from the first to the last one.
    #[derive(Copy)]
    pub struct CardRange {
        /// The first one.
        pub from: i32,
        /// The last one; before the first one the range is empty.
        pub to: i32,
    }

    /// On which hosts machines are placed.
    #[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
    #[derive(PartialEq, Eq, Serialize)]
    pub struct Placement {
        /// Placement group.
        pub group_id: Option<String>,
        /// `default`, `dedicated` or `host`.
        pub tenancy: Option<String>,
        /// A dedicated host.
        pub host_id: Option<String>,
        /// Partition of the placement group.
        pub partition_number: Option<i32>,
        /// `default` or `host`.
        pub affinity: Option<String>,
    }

    /// How machines are paid.
    #[derive(PartialEq, Eq, Serialize)]
    pub struct InstanceMarketOptions {
        /// `spot`, `capacity-block` or `interruptible-capacity-reservation`.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub market_type: String,
    }
}

kinds! { WorkerConfig of super::API_VERSION: strict true; }

impl NetworkInterfaceConfig {
    /// The type; `interface` where none is given.
    #[must_use]
    pub fn interface_type(&self) -> &str {
        self.interface_type.as_deref().filter(|given| !given.is_empty()).unwrap_or("interface")
    }
}
