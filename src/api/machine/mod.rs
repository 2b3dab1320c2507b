//! The kinds of `machine.sapcloud.io/v1alpha1` that machine-controller-manager works on (docs/contract.md#machine-objects).
//! Integer members that Go omits when zero are optional here.

mod machine_class;
mod machine_deployment;
mod machine_set;
mod node_template;

pub use machine_class::{MachineClass, MachineClassNodeTemplate};
pub use machine_deployment::{
    ClassReference, DeploymentCondition, DeploymentStrategy, FailedMachine, InPlaceUpdateStrategy, MachineDeployment,
    MachineDeploymentSpec, MachineDeploymentState, MachineLastOperation, MachineSettings, MachineSpec, MachineTemplate,
    OrchestrationType, RollingUpdateStrategy,
};
pub use machine_set::{
    Machine, MachineClassOfMachine, MachineSet, MachineSetSpec, MachineSetState, MachineSetTemplate, MachineState,
};
pub use node_template::{LabelsAndAnnotations, NodeTemplateOfMachine, NodeTemplateTaints};
