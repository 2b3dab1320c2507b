//! Test objects that several rooms share. Names differ from defaults, so that a swapped name shows up.

#![allow(clippy::unwrap_used, reason = "only tests use it")]

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{MachinePlan, TargetDeployment, UserData};
use crate::pool::hash::HashItems;
use crate::pool::names::{ClassName, DeploymentName};
use crate::pool::settings::cluster_autoscaler_annotations;
use crate::pool::strategy::deployment_strategy;
use wire::api::machine::{MachineClass, MachineSettings};

/// A deployment of two to five machines in one zone.
pub fn target_deployment() -> TargetDeployment {
    TargetDeployment {
        name: DeploymentName("shoot--p--s-a-z1".to_owned()),
        pool_name: "a".to_owned(),
        class_name: ClassName("shoot--p--s-a-4f8a0-z1".to_owned()),
        secret_name: ClassName("shoot--p--s-a-4f8a0-z1".to_owned()),
        minimum: 2,
        maximum: 5,
        priority: None,
        strategy: deployment_strategy(None, IntOrString::Int(1), IntOrString::Int(0)),
        labels: [].into(),
        annotations: [].into(),
        taints: vec![],
        machine_configuration: MachineSettings::default(),
        cluster_autoscaler_annotations: cluster_autoscaler_annotations(None),
        auto_preserve_failed_machine_max: None,
    }
}

/// Namespace of [`machine_plan`].
pub const NAMESPACE: &str = "shoot--p--s";

/// The machines of [`target_deployment`].
pub fn machine_plan() -> MachinePlan {
    let deployment = target_deployment();
    let metadata = serde_json::json!({"name": deployment.class_name, "namespace": NAMESPACE});
    MachinePlan {
        zone: Some("1".to_owned()),
        class: MachineClass {
            metadata: serde_json::from_value(metadata).unwrap(),
            provider: "Azure".to_owned(),
            provider_spec: serde_json::json!({"location": "north"}),
            ..MachineClass::default()
        },
        user_data: UserData(b"boot-script-with-a-token".to_vec()),
        deployment,
        hash_items: HashItems::default(),
    }
}
