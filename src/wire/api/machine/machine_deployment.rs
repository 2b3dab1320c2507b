//! `MachineDeployment`: the machines of one pool and zone.

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::{Deserialize, Serialize};
use serde_with::apply;

use super::node_template::{LabelsAndAnnotations, NodeTemplateOfMachine};
use crate::api::gotext::duration::Duration;
use crate::api::gotext::json::null_as_default;
use crate::api::kubernetes_kind;
use crate::api::metadata::without_managers;

/// A machine deployment, for reading only. Changes are written as patches of the live document.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct MachineDeployment {
    /// Name, labels, annotations, generation.
    #[serde(default, deserialize_with = "without_managers")]
    pub metadata: ObjectMeta,
    /// Target state.
    #[serde(default, deserialize_with = "null_as_default")]
    pub spec: MachineDeploymentSpec,
    /// Observed state, written by machine-controller-manager.
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: MachineDeploymentState,
}

kubernetes_kind!(
    MachineDeployment,
    "machine.sapcloud.io",
    "v1alpha1",
    "MachineDeployment",
    "machinedeployments",
    NamespaceResourceScope
);

/// Relevant members of `MachineDeployment.spec`.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
pub struct MachineDeploymentSpec {
    /// Target number of machines; Go omits zero.
    pub replicas: i32,
    /// Template of the machines.
    pub template: MachineTemplate,
    /// How a change is rolled out.
    pub strategy: Option<DeploymentStrategy>,
    /// Whether a user has paused the rollout.
    pub paused: bool,
}

/// `spec.template` of a deployment. A change of its labels, annotations or class rolls the machines.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineTemplate {
    /// Labels and annotations.
    pub metadata: LabelsAndAnnotations,
    /// The machine.
    pub spec: MachineSpec,
}

/// `spec` of a machine within a template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineSpec {
    /// The machine class.
    #[serde(default, deserialize_with = "null_as_default")]
    pub class: ClassReference,
    /// Id in the cloud.
    #[serde(rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// Labels, annotations and taints of the Node.
    #[serde(default, deserialize_with = "null_as_default")]
    pub node_template: NodeTemplateOfMachine,
    /// Timeouts and retries. Flattening is safe because they contain no raw JSON.
    #[serde(flatten)]
    pub settings: MachineSettings,
}

/// Reference to a machine class.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClassReference {
    /// API group; never written, because a change rolls the machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_group: Option<String>,
    /// `MachineClass`.
    pub kind: String,
    /// Name of the class.
    pub name: String,
}

/// Timeouts and retries of a machine, with the names of machine-controller-manager.
#[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineSettings {
    /// Timeout for draining a machine.
    pub drain_timeout: Option<Duration>,
    /// Timeout for an unhealthy machine.
    pub health_timeout: Option<Duration>,
    /// Timeout from the creation of a machine until its node joins.
    pub creation_timeout: Option<Duration>,
    /// Timeout for an in-place update.
    pub in_place_update_timeout: Option<Duration>,
    /// Timeout for a preserved machine.
    pub machine_preserve_timeout: Option<Duration>,
    /// Whether to ignore the health timeout during an in-place update.
    pub disable_health_timeout: Option<bool>,
    /// Maximum number of eviction attempts.
    pub max_evict_retries: Option<i32>,
    /// Node conditions that make a machine unhealthy, joined by commas.
    pub node_conditions: Option<String>,
}

/// How a change of the template is applied to machines.
#[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentStrategy {
    /// `RollingUpdate` or `InPlaceUpdate`.
    #[serde(rename = "type", default, deserialize_with = "null_as_default")]
    pub strategy_type: String,
    /// Limits of a rolling update.
    pub rolling_update: Option<RollingUpdateStrategy>,
    /// Limits of an in-place update.
    pub in_place_update: Option<InPlaceUpdateStrategy>,
}

impl DeploymentStrategy {
    /// Whether machines are updated in place after a user selects them.
    #[must_use]
    pub fn is_manual_in_place(&self) -> bool {
        let orchestration = self.in_place_update.as_ref().and_then(|in_place| in_place.orchestration_type);
        orchestration == Some(OrchestrationType::Manual)
    }
}

/// Limits of a rolling update.
#[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RollingUpdateStrategy {
    /// Machines that may be unavailable.
    pub max_unavailable: Option<IntOrString>,
    /// Machines above the target count.
    pub max_surge: Option<IntOrString>,
}

/// Limits of an in-place update.
#[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InPlaceUpdateStrategy {
    /// Machines that may be unavailable.
    pub max_unavailable: Option<IntOrString>,
    /// Machines above the target count.
    pub max_surge: Option<IntOrString>,
    /// Selection of the machines to update.
    pub orchestration_type: Option<OrchestrationType>,
}

/// Selection of machines for an in-place update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OrchestrationType {
    /// machine-controller-manager selects machines.
    Auto,
    /// A user selects machines.
    Manual,
}

/// `MachineDeployment.status`.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineDeploymentState {
    /// The last observed generation.
    pub observed_generation: i64,
    /// Number of machines.
    pub replicas: i32,
    /// Number of machines with the current template.
    pub updated_replicas: i32,
    /// Number of ready machines.
    pub ready_replicas: i32,
    /// Number of available machines.
    pub available_replicas: i32,
    /// Number of unavailable machines.
    pub unavailable_replicas: i32,
    /// Number of preserved failed machines (newer machine-controller-manager).
    pub preserved_failed_replicas: i32,
    /// Conditions `Available`, `Progressing`, `ReplicaFailure`, `Frozen`.
    pub conditions: Vec<DeploymentCondition>,
    /// Machines that could not be created.
    pub failed_machines: Vec<FailedMachine>,
}

/// A condition of a deployment.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
pub struct DeploymentCondition {
    /// `Available`, `Progressing`, `ReplicaFailure`, `Frozen`.
    #[serde(rename = "type")]
    pub condition_type: String,
    /// `True`, `False`, `Unknown`.
    pub status: String,
    /// Short reason.
    pub reason: String,
    /// Message for people.
    pub message: String,
}

/// A machine that could not be created.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailedMachine {
    /// Name of the Machine.
    pub name: String,
    /// Last operation of the machine.
    pub last_operation: MachineLastOperation,
}

/// The last operation of machine-controller-manager on a machine.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineLastOperation {
    /// Message of the driver.
    #[serde(default, deserialize_with = "null_as_default")]
    pub description: String,
    /// Error code of the driver, such as `ResourceExhausted`.
    pub error_code: Option<String>,
    /// `Create`, `Delete`, `HealthCheck`, …
    #[serde(rename = "type", default, deserialize_with = "null_as_default")]
    pub operation_type: String,
}
