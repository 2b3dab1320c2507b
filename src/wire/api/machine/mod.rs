//! Kinds of `machine.sapcloud.io/v1alpha1`, which machine-controller-manager reconciles
//! (docs/contract.md#machine-objects). Integer members that Go omits if zero are optional here.

mod machine_class;
mod machine_deployment;
mod machine_set;
mod node_template;

pub use machine_class::*;
pub use machine_deployment::*;
pub use machine_set::*;
pub use node_template::*;
