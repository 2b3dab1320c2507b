//! The members of `MachineSet` and `Machine` from which progress is computed.

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_with::apply;

use super::DeploymentCondition;
use super::machine_deployment::{ClassReference, MachineLastOperation};
use crate::api::gotext::json::null_as_default;
use crate::api::kubernetes_kind;
use crate::api::metadata::without_managers;

/// Machines with the same template; owned by a MachineDeployment.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct MachineSet {
    /// Name, owner.
    #[serde(default, deserialize_with = "without_managers")]
    pub metadata: ObjectMeta,
    /// Template of the machines.
    #[serde(default, deserialize_with = "null_as_default")]
    pub spec: MachineSetSpec,
    /// Observed state.
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: MachineSetState,
}

kubernetes_kind!(MachineSet, "machine.sapcloud.io", "v1alpha1", "MachineSet", "machinesets", NamespaceResourceScope);

/// Relevant members of `MachineSet.spec`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct MachineSetSpec {
    /// Template of the machines.
    #[serde(default, deserialize_with = "null_as_default")]
    pub template: MachineSetTemplate,
}

/// Relevant members of `MachineSet.spec.template`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct MachineSetTemplate {
    /// Class of the machines.
    #[serde(default, deserialize_with = "null_as_default")]
    pub spec: MachineClassOfMachine,
}

/// Relevant members of `MachineSet.status`.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineSetState {
    /// Number of machines.
    pub replicas: i32,
    /// The generation observed by machine-controller-manager; 0 for a new set.
    pub observed_generation: i64,
}

/// One machine; owned by a MachineSet.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Machine {
    /// Name, labels, owner.
    #[serde(default, deserialize_with = "without_managers")]
    pub metadata: ObjectMeta,
    /// Class of the machine.
    #[serde(default, deserialize_with = "null_as_default")]
    pub spec: MachineClassOfMachine,
    /// Observed state.
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: MachineState,
}

kubernetes_kind!(Machine, "machine.sapcloud.io", "v1alpha1", "Machine", "machines", NamespaceResourceScope);

/// Relevant members of `Machine.spec`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct MachineClassOfMachine {
    /// The machine class.
    #[serde(default, deserialize_with = "null_as_default")]
    pub class: ClassReference,
}

/// Relevant members of `Machine.status`.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineState {
    /// Node conditions and `InPlaceUpdate`.
    pub conditions: Vec<DeploymentCondition>,
    /// Last operation of machine-controller-manager.
    pub last_operation: MachineLastOperation,
    /// Phase of the machine.
    pub current_status: MachineCurrentStatus,
}

/// Relevant members of `Machine.status.currentStatus`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct MachineCurrentStatus {
    /// `Pending`, `Running`, `Unknown`, `Failed`, …
    #[serde(default, deserialize_with = "null_as_default")]
    pub phase: String,
}
