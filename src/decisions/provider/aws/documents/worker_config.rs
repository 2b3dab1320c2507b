//! `WorkerConfig`: the provider config of a pool on AWS. Strict.
//!
//! Parts that are copied to the machine class can also be serialised.

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
        /// Overrides the instance profile of the infrastructure.
        pub iam_instance_profile: Option<InstanceProfileConfig>,
        /// Access to instance metadata.
        pub instance_metadata_options: Option<MetadataOptions>,
        /// CPU cores and threads.
        pub cpu_options: Option<CpuOptions>,
        /// Capacity reservation.
        pub capacity_reservation: Option<CapacityReservation>,
        /// Network interfaces; by default a single one.
        pub network_interfaces: Vec<NetworkInterfaceConfig>,
        /// Host placement.
        pub placement: Option<Placement>,
        /// Purchasing option.
        pub instance_market_options: Option<InstanceMarketOptions>,
    }

    /// A volume.
    pub struct VolumeConfig {
        /// I/O operations per second.
        pub iops: Option<i32>,
        /// Throughput in MiB per second.
        pub throughput: Option<i32>,
    }

    /// A data volume.
    pub struct DataVolumeConfig {
        /// Name of a data volume of the pool.
        pub name: String,
        /// I/O operations per second.
        pub iops: Option<i32>,
        /// Throughput in MiB per second.
        pub throughput: Option<i32>,
        /// Snapshot from which the volume is created.
        #[serde(rename = "snapshotID")]
        pub snapshot_id: Option<String>,
    }

    /// An instance profile by name or, without a name, by ARN.
    #[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
    #[derive(PartialEq, Eq, Serialize)]
    pub struct InstanceProfileConfig {
        /// Name of the profile.
        pub name: Option<String>,
        /// ARN of the profile.
        pub arn: Option<String>,
    }

    /// Access to instance metadata.
    pub struct MetadataOptions {
        /// Whether a token is `required` or `optional`.
        pub http_tokens: Option<String>,
        /// Maximum number of network hops of a response.
        pub http_put_response_hop_limit: Option<i32>,
    }

    /// CPU cores and threads.
    #[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
    #[derive(PartialEq, Eq, Serialize)]
    pub struct CpuOptions {
        /// Number of cores.
        pub core_count: Option<i32>,
        /// Threads per core.
        pub threads_per_core: Option<i32>,
        /// Encrypted memory: `enabled` or `disabled`.
        pub amd_sev_snp: Option<String>,
    }

    /// Capacity reservation of the machines.
    #[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
    #[derive(PartialEq, Eq, Serialize)]
    pub struct CapacityReservation {
        /// `capacity-reservations-only`, `open` or `none`.
        pub capacity_reservation_preference: Option<String>,
        /// Id of a reservation.
        pub capacity_reservation_id: Option<String>,
        /// ARN of a group of reservations.
        pub capacity_reservation_resource_group_arn: Option<String>,
    }

    /// A network interface, or one per card of a range of network cards.
    pub struct NetworkInterfaceConfig {
        /// Index of the network card.
        pub network_card_index: Option<i32>,
        /// Range of network cards that each get such an interface.
        pub network_card_index_range: Option<CardRange>,
        /// Device index on the card.
        pub device_index: i32,
        /// `interface`, `efa` or `efa-only`.
        #[serde(rename = "type")]
        pub interface_type: Option<String>,
        /// Description for people.
        pub description: Option<String>,
        /// Overrides the subnet of the zone.
        #[serde(rename = "subnetID")]
        pub subnet_id: Option<String>,
    }

    /// A range of network cards.
    #[derive(Copy)]
    pub struct CardRange {
        /// First card.
        pub from: i32,
        /// Last card, inclusive; the range is empty if it is lower than the first.
        pub to: i32,
    }

    /// Host placement.
    #[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
    #[derive(PartialEq, Eq, Serialize)]
    pub struct Placement {
        /// Id of a placement group.
        pub group_id: Option<String>,
        /// `default`, `dedicated` or `host`.
        pub tenancy: Option<String>,
        /// Id of a dedicated host.
        pub host_id: Option<String>,
        /// Partition of the placement group.
        pub partition_number: Option<i32>,
        /// `default` or `host`.
        pub affinity: Option<String>,
    }

    /// Purchasing option.
    #[derive(PartialEq, Eq, Serialize)]
    pub struct InstanceMarketOptions {
        /// `spot`, `capacity-block` or `interruptible-capacity-reservation`.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub market_type: String,
    }
}

kinds! { WorkerConfig of super::API_VERSION: strict true; }

impl NetworkInterfaceConfig {
    /// The type of the interface, by default `interface`.
    #[must_use]
    pub fn interface_type(&self) -> &str {
        self.interface_type.as_deref().filter(|given| !given.is_empty()).unwrap_or("interface")
    }
}
