//! `MachineSet` and `Machine` as far as progress is read from them.

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_with::apply;

use super::DeploymentCondition;
use super::machine_deployment::{ClassReference, MachineLastOperation};
use crate::api::gotext::json::null_as_default;
use crate::api::kubernetes_kind;
use crate::api::metadata::without_managers;

/// Machines of one template; owned by a MachineDeployment.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct MachineSet {
    /// Name, owner.
    #[serde(default, deserialize_with = "without_managers")]
    pub metadata: ObjectMeta,
    /// The template.
    #[serde(default, deserialize_with = "null_as_default")]
    pub spec: MachineSetSpec,
    /// Numbers.
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: MachineSetState,
}

kubernetes_kind!(MachineSet, "machine.sapcloud.io", "v1alpha1", "MachineSet", "machinesets", NamespaceResourceScope);

/// `MachineSet.spec` as far as it is read.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct MachineSetSpec {
    /// The template that the machines are made from.
    #[serde(default, deserialize_with = "null_as_default")]
    pub template: MachineSetTemplate,
}

/// `MachineSet.spec.template` as far as it is read.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct MachineSetTemplate {
    /// The class.
    #[serde(default, deserialize_with = "null_as_default")]
    pub spec: MachineClassOfMachine,
}

/// `MachineSet.status` as far as it is read.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineSetState {
    /// Machines there are.
    pub replicas: i32,
    /// The generation that machine-controller-manager has taken up; 0 when it has not seen the set yet.
    pub observed_generation: i64,
}

/// One machine; owned by a MachineSet.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Machine {
    /// Name, labels, owner.
    #[serde(default, deserialize_with = "without_managers")]
    pub metadata: ObjectMeta,
    /// The class.
    #[serde(default, deserialize_with = "null_as_default")]
    pub spec: MachineClassOfMachine,
    /// Conditions.
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: MachineState,
}

kubernetes_kind!(Machine, "machine.sapcloud.io", "v1alpha1", "Machine", "machines", NamespaceResourceScope);

/// `Machine.spec` as far as it is read.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct MachineClassOfMachine {
    /// The machine class.
    #[serde(default, deserialize_with = "null_as_default")]
    pub class: ClassReference,
}

/// `Machine.status` as far as it is read.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineState {
    /// Node conditions and `InPlaceUpdate`.
    pub conditions: Vec<DeploymentCondition>,
    /// What machine-controller-manager tried last.
    pub last_operation: MachineLastOperation,
}
