//! The kinds of `extensions.gardener.cloud` and `core.gardener.cloud` that machines are made from.

mod capability;
mod cloud_profile;
mod cluster;
mod error_code;
mod profile;
mod profile_versions;
mod shoot;
mod shoot_pools;
mod shoot_state;
mod worker;

pub use capability::{Capabilities, CapabilityDefinition};
pub use cloud_profile::{CloudProfile, CloudProfileSpec, MachineType};
pub use cluster::{Cluster, ClusterSpec};
pub use error_code::ErrorCode;
pub use profile::{
    Bastion, BastionImage, BastionMachineType, Limits, MergedProfile, NamespacedCloudProfile, NamespacedProfileSpec,
    NamespacedProfileStatus, ParentReference, ProfileMachineType, ProfileObject, ProfileSpec, Region, VolumeType, Zone,
};
pub use profile_versions::{
    ExpirableVersion, ImageContainerRuntime, ImageInPlaceUpdates, ImageRuntimeClass, KubernetesSettings,
    LifecycleStage, ProfileImage, ProfileImageVersion,
};
pub use shoot::{
    CloudProfileReference, ContainerRuntime, CredentialsRotation, Hibernation, KubeProxy, Kubernetes,
    LastOperationState, NodeLocalDns, PendingWorkersRollout, RotationTimes, Shoot, ShootCredentials, ShootProvider,
    ShootSpec, ShootStatus, ShootWorker, SystemComponents,
};
pub use shoot_pools::{OrderedShoot, OrderedShootSpec, PoolMachine, ShootPool, ShootPools, ShootVolume};
pub use shoot_state::{GardenerData, ShootState, ShootStateSpec};
pub use worker::{
    ClusterAutoscalerOptions, DataVolume, EvictionHard, InPlaceUpdates, KubeReserved, KubeletConfig, LastError,
    LastOperation, MachineControllerManagerSettings, MachineDeploymentStatus, MachineImage, NodeTemplate, SecretKeyRef,
    Taint, UpdateStrategy, Volume, Worker, WorkerPool, WorkerSpec, WorkerStatus,
};
