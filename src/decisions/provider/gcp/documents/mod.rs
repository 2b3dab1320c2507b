//! The documents of `gcp.provider.extensions.gardener.cloud/v1alpha1`.

mod cloud_profile_config;
mod infrastructure_status;
mod worker_config;
mod worker_status;

pub use cloud_profile_config::{CloudProfileConfig, ImageFlavor, ImageVersion};
pub use infrastructure_status::{CloudRouter, InfrastructureStatus, NatIp, Networks, Subnet, VirtualNetwork};
pub use worker_config::{BootVolume, DataVolumeConfig, Encryption, Gpu, ServiceAccount, VolumeConfig, WorkerConfig};
pub use worker_status::{StatusImage, WorkerStatus};

/// API version of all documents.
pub const API_VERSION: &str = "gcp.provider.extensions.gardener.cloud/v1alpha1";
