//! `Worker` of `extensions.gardener.cloud/v1alpha1` (docs/contract.md#worker).
//!
//! `providerConfig`, `infrastructureProviderStatus` and `providerStatus` keep the raw bytes from the API server,
//! because they are hashed. So a `Worker` must be decoded from text, never through `serde_json::Value`.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::SecretReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use serde_with::apply;

use crate::api::gotext::duration::Duration;
use crate::api::gotext::json::null_as_default;
use crate::api::gotext::quantity::Quantity;
use crate::api::kubernetes_kind;
use crate::api::metadata::without_managers;

/// The machines of one shoot: the target state from gardenlet and the observed state.
#[derive(Clone, Debug, Deserialize)]
pub struct Worker {
    /// Name, namespace (the shoot namespace), generation, annotations, finalizers.
    #[serde(default, deserialize_with = "without_managers")]
    pub metadata: ObjectMeta,
    /// Target state, owned by gardenlet.
    pub spec: WorkerSpec,
    /// Observed state, owned by this extension.
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: WorkerStatus,
}

kubernetes_kind!(Worker, "extensions.gardener.cloud", "v1alpha1", "Worker", "workers", NamespaceResourceScope);

/// `Worker.spec`.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkerSpec {
    /// Provider type such as `azure`.
    #[serde(rename = "type")]
    pub worker_type: String,
    /// Extension class; absent means `shoot`.
    pub class: Option<String>,
    /// The `InfrastructureStatus` document of the provider.
    pub infrastructure_provider_status: Option<Box<RawValue>>,
    /// Region of the shoot.
    pub region: String,
    /// Reference to the Secret with cloud credentials.
    pub secret_ref: SecretReference,
    /// Public key for the `core` user of each machine.
    pub ssh_public_key: Option<ByteString>,
    /// The worker pools in the order of the Shoot.
    pub pools: Vec<WorkerPool>,
}

/// Label of nodes with the name of their node agent Secret.
pub const NODE_AGENT_SECRET_LABEL: &str = "worker.gardener.cloud/gardener-node-agent-secret-name";

/// One worker pool.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkerPool {
    /// Name, unique within the Worker.
    pub name: String,
    /// Name of a machine type of the CloudProfile.
    pub machine_type: String,
    /// Machine image by name and version.
    pub machine_image: MachineImage,
    /// Minimum number of machines in all zones.
    pub minimum: i32,
    /// Maximum number of machines in all zones.
    pub maximum: i32,
    /// Machines above the target count during a rolling update, as a number or percentage.
    #[serde(default = "zero", deserialize_with = "null_as_zero")]
    #[serde_with(skip_apply)]
    pub max_surge: IntOrString,
    /// Machines that may be unavailable during a rolling update, as a number or percentage.
    #[serde(default = "zero", deserialize_with = "null_as_zero")]
    #[serde_with(skip_apply)]
    pub max_unavailable: IntOrString,
    /// Node annotations.
    pub annotations: BTreeMap<String, String>,
    /// Node labels; on Azure also tags of the machine.
    pub labels: BTreeMap<String, String>,
    /// Node taints.
    pub taints: Vec<Taint>,
    /// Name of the node agent Secret. It contains a hash of the settings whose changes require new nodes.
    pub node_agent_secret_name: Option<String>,
    /// The provider's `WorkerConfig` document as raw bytes.
    pub provider_config: Option<Box<RawValue>>,
    /// Reference to the Secret with the boot script.
    pub user_data_secret_ref: SecretKeyRef,
    /// The root volume.
    pub volume: Option<Volume>,
    /// Additional volumes.
    pub data_volumes: Vec<DataVolume>,
    /// Zones in the order of the Shoot; empty for non-zonal pools.
    pub zones: Vec<String>,
    /// Timeouts and retries for machine-controller-manager.
    pub machine_controller_manager: Option<MachineControllerManagerSettings>,
    /// Kubernetes version of the pool's kubelets.
    pub kubernetes_version: Option<String>,
    /// Kubelet settings that are inputs of the in-place hash.
    pub kubelet_config: Option<KubeletConfig>,
    /// Capacity of one node, for scaling from zero.
    pub node_template: Option<NodeTemplate>,
    /// CPU architecture; absent means `amd64`.
    pub architecture: Option<String>,
    /// Options of the cluster-autoscaler for this pool.
    pub cluster_autoscaler: Option<ClusterAutoscalerOptions>,
    /// Priority for the autoscaler's priority expander.
    pub priority: Option<i32>,
    /// How machines are updated after a change.
    pub update_strategy: Option<UpdateStrategy>,
}

/// Name and version of a machine image.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct MachineImage {
    /// Name as in the CloudProfile.
    pub name: String,
    /// Version as in the CloudProfile.
    pub version: String,
}

/// A node taint of a pool, also used in machine deployments.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// Taint key.
    pub key: String,
    /// Taint value.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
    /// Time when a `NoExecute` taint was added (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_added: Option<String>,
}

/// A key of a Secret in the Worker's namespace.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct SecretKeyRef {
    /// Name of the Secret.
    pub name: String,
    /// Key in its data.
    pub key: String,
}

/// A root volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Volume {
    /// Disk type. Empty and absent differ, because the type is hashed.
    #[serde(rename = "type")]
    pub volume_type: Option<String>,
    /// Size such as `50Gi`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub size: String,
    /// Whether the volume should be encrypted.
    pub encrypted: Option<bool>,
}

/// An additional volume.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct DataVolume {
    /// Name, unique within the pool.
    pub name: String,
    /// Disk type. Empty and absent differ, because the type is hashed.
    #[serde(rename = "type")]
    pub volume_type: Option<String>,
    /// Size such as `100Gi`.
    pub size: String,
    /// Whether the volume should be encrypted.
    pub encrypted: Option<bool>,
}

/// Settings of a pool for machine-controller-manager.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineControllerManagerSettings {
    /// Timeout for draining a machine.
    pub machine_drain_timeout: Option<Duration>,
    /// Timeout for an unhealthy machine.
    pub machine_health_timeout: Option<Duration>,
    /// Timeout from the creation of a machine until its node joins.
    pub machine_creation_timeout: Option<Duration>,
    /// Timeout for an in-place update.
    pub in_place_update_timeout: Option<Duration>,
    /// Timeout for a preserved machine (newer Gardener libraries).
    pub machine_preserve_timeout: Option<Duration>,
    /// Whether to ignore the health timeout during an in-place update.
    pub disable_health_timeout: Option<bool>,
    /// Maximum number of eviction attempts.
    pub max_evict_retries: Option<i32>,
    /// Node conditions that make a machine unhealthy.
    #[serde(default, deserialize_with = "null_as_default")]
    pub node_conditions: Vec<String>,
    /// Maximum number of preserved failed machines (newer Gardener libraries).
    pub auto_preserve_failed_machine_max: Option<i32>,
}

/// The kubelet settings that are inputs of the in-place hash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeletConfig {
    /// Resources reserved for Kubernetes components.
    pub kube_reserved: Option<KubeReserved>,
    /// Hard eviction thresholds.
    pub eviction_hard: Option<EvictionHard>,
    /// CPU management policy.
    pub cpu_manager_policy: Option<String>,
}

/// `kubeReserved` of a kubelet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeReserved {
    /// CPU.
    pub cpu: Option<Quantity>,
    /// Memory.
    pub memory: Option<Quantity>,
    /// Ephemeral storage.
    pub ephemeral_storage: Option<Quantity>,
    /// Process ids.
    pub pid: Option<Quantity>,
}

/// `evictionHard` of a kubelet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct EvictionHard {
    /// Threshold for available memory.
    #[serde(rename = "memoryAvailable")]
    pub memory_available: Option<String>,
    /// Threshold for the image file system.
    #[serde(rename = "imageFSAvailable")]
    pub image_fs_available: Option<String>,
    /// Threshold for inodes of the image file system.
    #[serde(rename = "imageFSInodesFree")]
    pub image_fs_inodes_free: Option<String>,
    /// Threshold for the node file system.
    #[serde(rename = "nodeFSAvailable")]
    pub node_fs_available: Option<String>,
    /// Threshold for inodes of the node file system.
    #[serde(rename = "nodeFSInodesFree")]
    pub node_fs_inodes_free: Option<String>,
}

/// Capacity of one node of a pool.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeTemplate {
    /// Resources of the node.
    pub capacity: BTreeMap<String, Quantity>,
    /// Resources that exist only for the autoscaler.
    pub virtual_capacity: BTreeMap<String, Quantity>,
}

/// Options of the cluster-autoscaler for one pool. Thresholds are not parsed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterAutoscalerOptions {
    /// Utilization below which a node is unneeded.
    pub scale_down_utilization_threshold: Option<String>,
    /// Utilization below which a GPU node is unneeded.
    pub scale_down_gpu_utilization_threshold: Option<String>,
    /// Time for which a node must be unneeded.
    pub scale_down_unneeded_time: Option<Duration>,
    /// Time for which an unready node must be unneeded.
    pub scale_down_unready_time: Option<Duration>,
    /// Timeout for the provisioning of a node.
    pub max_node_provision_time: Option<Duration>,
}

/// How machines are updated after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UpdateStrategy {
    /// New machines replace old ones.
    AutoRollingUpdate,
    /// machine-controller-manager updates machines in place.
    AutoInPlaceUpdate,
    /// Machines are updated in place after a user selects them.
    ManualInPlaceUpdate,
    /// Unknown strategies replace machines, as in the Go extensions.
    #[serde(other)]
    Other,
}

impl UpdateStrategy {
    /// Whether machines are updated in place.
    #[must_use]
    pub fn is_in_place(self) -> bool {
        matches!(self, Self::AutoInPlaceUpdate | Self::ManualInPlaceUpdate)
    }
}

/// The relevant members of `Worker.status`.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkerStatus {
    /// The provider's `WorkerStatus` document.
    pub provider_status: Option<Box<RawValue>>,
    /// Conditions, including those of other controllers.
    pub conditions: Vec<Value>,
    /// The last error; absent after a success.
    pub last_error: Option<LastError>,
    /// The current or last operation.
    pub last_operation: Option<LastOperation>,
    /// The generation observed by the last completed operation.
    pub observed_generation: Option<i64>,
    /// Machine state for a control plane migration, written by gardenlet.
    pub state: Option<Box<RawValue>>,
    /// Bounds for the cluster-autoscaler.
    pub machine_deployments: Vec<MachineDeploymentStatus>,
    /// Last update of `machineDeployments`; gardenlet waits until it changes.
    pub machine_deployments_last_update_time: Option<String>,
    /// Hashes of in-place pools.
    pub in_place_updates: Option<InPlaceUpdates>,
}

/// Name and bounds of one machine deployment, for the cluster-autoscaler.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineDeploymentStatus {
    /// Name of the MachineDeployment.
    pub name: String,
    /// Minimum number of machines.
    #[serde(default)]
    pub minimum: i32,
    /// Maximum number of machines.
    #[serde(default)]
    pub maximum: i32,
    /// Priority for the priority expander.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
}

/// `status.inPlaceUpdates`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InPlaceUpdates {
    /// Hashes to which machines were updated, by pool name.
    #[serde(default, deserialize_with = "null_as_default")]
    pub worker_pool_to_hash_map: BTreeMap<String, String>,
}

/// `status.lastOperation`.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastOperation {
    /// Description for people.
    pub description: String,
    /// Time in RFC 3339 format, in whole seconds.
    pub last_update_time: String,
    /// Progress from 0 to 100.
    pub progress: i32,
    /// `Processing`, `Succeeded`, `Error`, …
    pub state: String,
    /// `Create`, `Reconcile`, `Delete`, `Migrate`, `Restore`.
    #[serde(rename = "type")]
    pub operation_type: String,
}

/// `status.lastError`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastError {
    /// Description of the error and the remedy, for people.
    #[serde(default, deserialize_with = "null_as_default")]
    pub description: String,
    /// Gardener error codes.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<String>,
    /// Time in RFC 3339 format, in whole seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<String>,
}

fn zero() -> IntOrString {
    IntOrString::Int(0)
}

fn null_as_zero<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<IntOrString, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_else(zero))
}
