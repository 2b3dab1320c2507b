//! The parts of a machine deployment that all providers share.

use std::collections::BTreeMap;

use super::TargetDeployment;
use crate::pool::bounds::Bounds;
use crate::pool::names::{ClassName, DeploymentName};
use crate::pool::settings::{cluster_autoscaler_annotations, machine_settings};
use crate::pool::strategy::deployment_strategy;
use crate::pool::zones::{ZonePosition, distribute};
use wire::api::gardener::WorkerPool;

impl TargetDeployment {
    /// The deployment of a part of a pool, with its name, its share of the machine counts, and its node labels.
    #[must_use]
    pub fn of_pool(
        pool: &WorkerPool,
        name: DeploymentName,
        class_name: &ClassName,
        bounds: Bounds,
        labels: BTreeMap<String, String>,
    ) -> Self {
        Self {
            name,
            pool_name: pool.name.clone(),
            class_name: class_name.clone(),
            secret_name: class_name.clone(),
            minimum: bounds.minimum,
            maximum: bounds.maximum,
            priority: pool.priority,
            strategy: deployment_strategy(pool.update_strategy, bounds.max_surge, bounds.max_unavailable),
            labels,
            annotations: pool.annotations.clone(),
            taints: pool.taints.clone(),
            machine_configuration: machine_settings(pool.machine_controller_manager.as_ref()),
            cluster_autoscaler_annotations: cluster_autoscaler_annotations(pool.cluster_autoscaler.as_ref()),
            auto_preserve_failed_machine_max: None,
        }
    }

    /// Lets machine-controller-manager preserve failed machines: all that the pool allows, or the share of a zone.
    pub(in crate::provider) fn preserve_failed_machines(&mut self, pool: &WorkerPool, zone: Option<ZonePosition>) {
        let settings = pool.machine_controller_manager.as_ref();
        let maximum = settings.and_then(|settings| settings.auto_preserve_failed_machine_max).unwrap_or_default();
        let share = zone.map_or(maximum, |zone| distribute(maximum, zone));
        self.auto_preserve_failed_machine_max = Some(share);
    }
}
