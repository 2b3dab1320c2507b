//! The documents of `azure.provider.extensions.gardener.cloud/v1alpha1`.

mod cloud_profile_config;
mod image_reference;
mod infrastructure_status;
mod worker_config;
mod worker_status;

pub use cloud_profile_config::{
    CloudConfiguration, CloudProfileConfig, ConfiguredCloud, FaultDomainCount, ImageFlavor, ImageVersion,
    ProfileMachineType,
};
pub use image_reference::ImageReferences;
pub use infrastructure_status::{
    Identity, InfrastructureStatus, Networks, ResourceGroup, Subnet, SubnetLayout, VirtualNetwork,
};
pub use worker_config::{
    CapacityReservation, DataVolumeConfig, DataVolumeImage, DiagnosticsProfile, VolumeConfig, WorkerConfig,
};
pub use worker_status::{StatusImage, WorkerStatus};

/// API version of all documents.
pub const API_VERSION: &str = "azure.provider.extensions.gardener.cloud/v1alpha1";
