//! The update strategy of machine deployments.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use wire::api::gardener::UpdateStrategy;
use wire::api::machine::{DeploymentStrategy, InPlaceUpdateStrategy, OrchestrationType, RollingUpdateStrategy};

/// Maps the update strategy and the bounds of a pool to the strategy of a machine deployment.
#[must_use]
pub fn deployment_strategy(
    update_strategy: Option<UpdateStrategy>,
    max_surge: IntOrString,
    max_unavailable: IntOrString,
) -> DeploymentStrategy {
    let orchestration_type = match update_strategy {
        None | Some(UpdateStrategy::AutoRollingUpdate | UpdateStrategy::Other) => None,
        Some(UpdateStrategy::AutoInPlaceUpdate) => Some(OrchestrationType::Auto),
        Some(UpdateStrategy::ManualInPlaceUpdate) => Some(OrchestrationType::Manual),
    };
    match orchestration_type {
        None => DeploymentStrategy {
            strategy_type: "RollingUpdate".to_owned(),
            rolling_update: Some(RollingUpdateStrategy {
                max_unavailable: Some(max_unavailable),
                max_surge: Some(max_surge),
            }),
            in_place_update: None,
        },
        Some(orchestration_type) => DeploymentStrategy {
            strategy_type: "InPlaceUpdate".to_owned(),
            rolling_update: None,
            in_place_update: Some(InPlaceUpdateStrategy {
                max_unavailable: Some(max_unavailable),
                max_surge: Some(max_surge),
                orchestration_type: Some(orchestration_type),
            }),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::api::gardener::WorkerSpec;

    #[test]
    fn unknown_strategy_rolls_only_its_pool() {
        let spec = r#"{"type": "azure", "pools": [{"name": "a", "updateStrategy": "Sometimes"}, {"name": "b"}]}"#;
        let spec: WorkerSpec = serde_json::from_str(spec).unwrap();
        assert_eq!(spec.pools.len(), 2);
        let strategy = deployment_strategy(spec.pools[0].update_strategy, IntOrString::Int(1), IntOrString::Int(0));
        assert_eq!(strategy.strategy_type, "RollingUpdate");
    }
}
