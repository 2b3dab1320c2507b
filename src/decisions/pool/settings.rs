//! Settings of a pool for machine-controller-manager and annotations for the cluster-autoscaler. None of them rolls
//! nodes.

use std::collections::BTreeMap;

use wire::api::gardener::{ClusterAutoscalerOptions, MachineControllerManagerSettings, WorkerPool};
use wire::api::gotext::duration::Duration;
use wire::api::machine::MachineSettings;

/// Maps the settings to those of machine-controller-manager; node conditions are joined by commas.
#[must_use]
pub fn machine_settings(settings: Option<&MachineControllerManagerSettings>) -> MachineSettings {
    let Some(settings) = settings.cloned() else { return MachineSettings::default() };
    let MachineControllerManagerSettings {
        machine_drain_timeout,
        machine_health_timeout,
        machine_creation_timeout,
        in_place_update_timeout,
        machine_preserve_timeout,
        disable_health_timeout,
        max_evict_retries,
        node_conditions,
        // Split among zones by the providers whose Gardener library supports it.
        auto_preserve_failed_machine_max: _,
    } = settings;
    MachineSettings {
        drain_timeout: machine_drain_timeout,
        health_timeout: machine_health_timeout,
        creation_timeout: machine_creation_timeout,
        in_place_update_timeout,
        machine_preserve_timeout,
        disable_health_timeout,
        max_evict_retries,
        node_conditions: (!node_conditions.is_empty()).then(|| node_conditions.join(",")),
    }
}

/// The five annotations of the cluster-autoscaler. Every key is present; an empty value means "remove it".
#[must_use]
pub fn cluster_autoscaler_annotations(options: Option<&ClusterAutoscalerOptions>) -> BTreeMap<String, String> {
    let ClusterAutoscalerOptions {
        scale_down_utilization_threshold,
        scale_down_gpu_utilization_threshold,
        scale_down_unneeded_time,
        scale_down_unready_time,
        max_node_provision_time,
    } = options.cloned().unwrap_or_default();
    let duration = |value: Option<Duration>| value.map(|duration| duration.to_string());
    [
        ("max-node-provision-time", duration(max_node_provision_time)),
        ("scale-down-gpu-utilization-threshold", scale_down_gpu_utilization_threshold),
        ("scale-down-unneeded-time", duration(scale_down_unneeded_time)),
        ("scale-down-unready-time", duration(scale_down_unready_time)),
        ("scale-down-utilization-threshold", scale_down_utilization_threshold),
    ]
    .into_iter()
    .map(|(option, value)| (format!("autoscaler.gardener.cloud/{option}"), value.unwrap_or_default()))
    .collect()
}

/// Whether the shoot has a cluster-autoscaler, because some pool can grow. If so, the autoscaler owns the replicas.
#[must_use]
pub fn is_autoscaler_used(pools: &[WorkerPool]) -> bool {
    pools.iter().any(|pool| pool.maximum > pool.minimum)
}
