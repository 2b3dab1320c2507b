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

/// A machine deployment as it is read. It is written as a patch of the live document, never from this type.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct MachineDeployment {
    /// Name, labels, annotations, generation.
    #[serde(default, deserialize_with = "without_managers")]
    pub metadata: ObjectMeta,
    /// The wish.
    #[serde(default, deserialize_with = "null_as_default")]
    pub spec: MachineDeploymentSpec,
    /// What machine-controller-manager says.
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

/// `MachineDeployment.spec` as far as it is read.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
pub struct MachineDeploymentSpec {
    /// Wanted machines; Go leaves out a zero.
    pub replicas: i32,
    /// What the machines are made from.
    pub template: MachineTemplate,
    /// How a change is rolled out.
    pub strategy: Option<DeploymentStrategy>,
    /// Whether a person holds changes back.
    pub paused: bool,
}

/// `spec.template` of a deployment. Its labels, annotations and class decide over a roll.
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
    /// Id at the cloud.
    #[serde(rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// Labels, annotations and taints of the Node.
    #[serde(default, deserialize_with = "null_as_default")]
    pub node_template: NodeTemplateOfMachine,
    /// Timeouts and retries. (No raw JSON inside, so flattening loses nothing.)
    #[serde(flatten)]
    pub settings: MachineSettings,
}

/// Reference to a machine class.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClassReference {
    /// API group; never written, because a change rolls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_group: Option<String>,
    /// `MachineClass`.
    pub kind: String,
    /// Name of the class.
    pub name: String,
}

/// Timeouts and retries of a machine, as machine-controller-manager names them.
#[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineSettings {
    /// Longest time for draining.
    pub drain_timeout: Option<Duration>,
    /// How long an unhealthy machine may stay.
    pub health_timeout: Option<Duration>,
    /// Longest time from creation to join.
    pub creation_timeout: Option<Duration>,
    /// Longest time for an update in place.
    pub in_place_update_timeout: Option<Duration>,
    /// How long a preserved machine stays.
    pub machine_preserve_timeout: Option<Duration>,
    /// Whether the health timeout does not count during an update in place.
    pub disable_health_timeout: Option<bool>,
    /// How often an eviction is tried.
    pub max_evict_retries: Option<i32>,
    /// Node conditions that make a machine unhealthy, joined by commas.
    pub node_conditions: Option<String>,
}

/// How a change of the template reaches the machines.
#[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentStrategy {
    /// `RollingUpdate` or `InPlaceUpdate`.
    #[serde(rename = "type", default, deserialize_with = "null_as_default")]
    pub strategy_type: String,
    /// Bounds of a roll.
    pub rolling_update: Option<RollingUpdateStrategy>,
    /// Bounds of an update in place.
    pub in_place_update: Option<InPlaceUpdateStrategy>,
}

impl DeploymentStrategy {
    /// Whether machines are updated where they are when a person selects them.
    #[must_use]
    pub fn is_manual_in_place(&self) -> bool {
        let orchestration = self.in_place_update.as_ref().and_then(|in_place| in_place.orchestration_type);
        orchestration == Some(OrchestrationType::Manual)
    }
}

/// Bounds of a roll.
#[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RollingUpdateStrategy {
    /// Machines that may be missing.
    pub max_unavailable: Option<IntOrString>,
    /// Machines above the wanted number.
    pub max_surge: Option<IntOrString>,
}

/// Bounds of an update in place.
#[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InPlaceUpdateStrategy {
    /// Machines that may be missing.
    pub max_unavailable: Option<IntOrString>,
    /// Machines above the wanted number.
    pub max_surge: Option<IntOrString>,
    /// Who selects the machines.
    pub orchestration_type: Option<OrchestrationType>,
}

/// Who selects machines for an update in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OrchestrationType {
    /// machine-controller-manager.
    Auto,
    /// A person.
    Manual,
}

/// `MachineDeployment.status`.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineDeploymentState {
    /// The generation that was seen last.
    pub observed_generation: i64,
    /// Machines there are.
    pub replicas: i32,
    /// Machines of the current template.
    pub updated_replicas: i32,
    /// Machines that are ready.
    pub ready_replicas: i32,
    /// Machines that are available.
    pub available_replicas: i32,
    /// Machines that are missing.
    pub unavailable_replicas: i32,
    /// Failed machines that are kept on purpose (newer machine-controller-manager).
    pub preserved_failed_replicas: i32,
    /// `Available`, `Progressing`, `ReplicaFailure`, `Frozen`.
    pub conditions: Vec<DeploymentCondition>,
    /// Machines that could not be made.
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
    /// Text for people.
    pub message: String,
}

/// A machine that could not be made.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailedMachine {
    /// Name of the Machine.
    pub name: String,
    /// What was tried last.
    pub last_operation: MachineLastOperation,
}

/// What machine-controller-manager tried last with a machine.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineLastOperation {
    /// The driver's text.
    #[serde(default, deserialize_with = "null_as_default")]
    pub description: String,
    /// The driver's code, such as `ResourceExhausted`.
    pub error_code: Option<String>,
    /// `Create`, `Delete`, `HealthCheck`, …
    #[serde(rename = "type", default, deserialize_with = "null_as_default")]
    pub operation_type: String,
}
