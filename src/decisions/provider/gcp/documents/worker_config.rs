//! `WorkerConfig`: the provider config of a pool on GCP. Strict.

use crate::provider::document::{documents, kinds};
use crate::provider::node_template::StrictNodeTemplate;

documents! { strict
    /// Provider config of a pool.
    pub struct WorkerConfig {
        pub(in crate::provider) _api_version: Option<String>,
        pub(in crate::provider) _kind: Option<String>,
        /// GPUs attached to machines.
        pub gpu: Option<Gpu>,
        /// Settings for all disks.
        pub volume: Option<VolumeConfig>,
        /// Settings for the boot disk.
        pub boot_volume: Option<BootVolume>,
        /// Data volumes by name.
        pub data_volumes: Vec<DataVolumeConfig>,
        /// Minimum CPU platform.
        pub min_cpu_platform: Option<String>,
        /// Overrides the service account of the infrastructure.
        pub service_account: Option<ServiceAccount>,
        /// Overrides the node template of the pool.
        pub node_template: Option<StrictNodeTemplate>,
    }

    /// GPUs of a machine.
    pub struct Gpu {
        /// Type, such as `nvidia-tesla-t4`.
        pub accelerator_type: String,
        /// Number of GPUs.
        pub count: i32,
    }

    /// Settings for all disks.
    pub struct VolumeConfig {
        /// `NVME` or `SCSI`, for local disks.
        pub interface: Option<String>,
        /// Customer-managed encryption key.
        pub encryption: Option<Encryption>,
    }

    /// Encryption key of disks.
    pub struct Encryption {
        /// Name of the key.
        pub kms_key_name: Option<String>,
        /// Service account that uses the key.
        pub kms_key_service_account: Option<String>,
    }

    /// The boot disk.
    pub struct BootVolume {
        /// I/O operations per second.
        pub provisioned_iops: Option<i64>,
        /// Throughput in MiB per second.
        pub provisioned_throughput: Option<i64>,
        /// Storage pool of the disk.
        pub storage_pool: Option<String>,
    }

    /// A data volume.
    pub struct DataVolumeConfig {
        /// Name of a data volume of the pool.
        pub name: String,
        /// Image from which the volume is created.
        pub source_image: Option<String>,
        /// I/O operations per second.
        pub provisioned_iops: Option<i64>,
        /// Throughput in MiB per second.
        pub provisioned_throughput: Option<i64>,
        /// Storage pool of the disk.
        pub storage_pool: Option<String>,
    }

    /// A service account of machines.
    pub struct ServiceAccount {
        /// Email address of the account.
        pub email: String,
        /// OAuth scopes.
        pub scopes: Option<Vec<String>>,
    }
}

kinds! { WorkerConfig of super::API_VERSION: strict true; }
