//! How a changed pool is updated.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::api::gardener::UpdateStrategy;
use crate::api::machine::{DeploymentStrategy, InPlaceUpdateStrategy, OrchestrationType, RollingUpdateStrategy};

/// The strategy of a machine deployment whose pool has the given update strategy and bounds.
#[must_use]
pub fn deployment_strategy(
    update_strategy: Option<UpdateStrategy>,
    max_surge: IntOrString,
    max_unavailable: IntOrString,
) -> DeploymentStrategy {
    let orchestration_type = match update_strategy {
        None | Some(UpdateStrategy::AutoRollingUpdate) => None,
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
