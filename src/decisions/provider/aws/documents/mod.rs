//! The documents of `aws.provider.extensions.gardener.cloud/v1alpha1`.

mod cloud_profile_config;
mod infrastructure_status;
mod worker_config;
mod worker_status;

pub use cloud_profile_config::{CloudProfileConfig, ImageRegion, ImageVersion};
pub use infrastructure_status::{
    Ec2, ElasticFileSystem, Iam, InfrastructureStatus, InstanceProfile, Role, SecurityGroup, Subnet, VirtualNetwork,
};
pub use worker_config::{
    CapacityReservation, CardRange, CpuOptions, DataVolumeConfig, InstanceMarketOptions, InstanceProfileConfig,
    MetadataOptions, NetworkInterfaceConfig, Placement, VolumeConfig, WorkerConfig,
};
pub use worker_status::{StatusImage, WorkerStatus};

/// API version of all documents.
pub const API_VERSION: &str = "aws.provider.extensions.gardener.cloud/v1alpha1";
