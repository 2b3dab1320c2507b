//! `WorkerConfig`: what a user can say about a pool on GCP. Strict.

use crate::provider::document::{documents, kinds};
use crate::provider::node_template::StrictNodeTemplate;

documents! { strict
    /// Provider config of a pool.
    pub struct WorkerConfig {
        pub(in crate::provider) _api_version: Option<String>,
        pub(in crate::provider) _kind: Option<String>,
        /// Graphics processors that are attached to machines.
        pub gpu: Option<Gpu>,
        /// All disks.
        pub volume: Option<VolumeConfig>,
        /// The boot disk.
        pub boot_volume: Option<BootVolume>,
        /// Data volumes by name.
        pub data_volumes: Vec<DataVolumeConfig>,
        /// The oldest processor that will do.
        pub min_cpu_platform: Option<String>,
        /// A service account instead of the infrastructure's.
        pub service_account: Option<ServiceAccount>,
        /// Overrides the node template of the pool.
        pub node_template: Option<StrictNodeTemplate>,
    }

    /// Graphics processors of a machine.
    pub struct Gpu {
        /// Such as `nvidia-tesla-t4`.
        pub accelerator_type: String,
        /// How many.
        pub count: i32,
    }

    /// What all disks have.
    pub struct VolumeConfig {
        /// `NVME` or `SCSI`, for local disks.
        pub interface: Option<String>,
        /// A key of the owner's.
        pub encryption: Option<Encryption>,
    }

    /// A key that disks are encrypted with.
    pub struct Encryption {
        /// Name of the key.
        pub kms_key_name: Option<String>,
        /// Who uses it.
        pub kms_key_service_account: Option<String>,
    }

    /// The boot disk.
    pub struct BootVolume {
        /// Operations per second.
        pub provisioned_iops: Option<i64>,
        /// MiB per second.
        pub provisioned_throughput: Option<i64>,
        /// The pool that it is taken from.
        pub storage_pool: Option<String>,
    }

    /// A data volume.
    pub struct DataVolumeConfig {
        /// Name of a data volume of the pool.
        pub name: String,
        /// Image that the volume starts with.
        pub source_image: Option<String>,
        /// Operations per second.
        pub provisioned_iops: Option<i64>,
        /// MiB per second.
        pub provisioned_throughput: Option<i64>,
        /// The pool that it is taken from.
        pub storage_pool: Option<String>,
    }

    /// A service account of machines.
    pub struct ServiceAccount {
        /// Its address.
        pub email: String,
        /// What it may do.
        pub scopes: Option<Vec<String>>,
    }
}

kinds! { WorkerConfig of super::API_VERSION: strict true; }
