//! The members of a `Shoot` that maintenance reads and changes (docs/versions.md): versions, maintenance window and
//! pools.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::Value;
use serde_with::apply;

use super::{CloudProfileReference, ImageContainerRuntime, LastOperationState, MachineImage};
use crate::api::gotext::json::null_as_default;
use crate::api::metadata::without_managers;

/// A Shoot reduced to its versions.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct VersionedShoot {
    /// Name, project namespace, annotations.
    #[serde(default, deserialize_with = "without_managers")]
    pub metadata: ObjectMeta,
    /// Target state.
    #[serde(default, deserialize_with = "null_as_default")]
    pub spec: VersionedShootSpec,
    /// Observed state.
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: VersionedShootStatus,
}

/// `Shoot.spec`.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionedShootSpec {
    /// Reference to the profile …
    pub cloud_profile: Option<CloudProfileReference>,
    /// … or only its name in older shoots.
    pub cloud_profile_name: Option<String>,
    /// Region of the shoot.
    pub region: String,
    /// Version of the control plane.
    pub kubernetes: KubernetesOfPool,
    /// Maintenance window and automatic updates.
    pub maintenance: Option<Maintenance>,
    /// Pools of the shoot.
    pub provider: VersionedPools,
    /// The older reference to credentials, removed with Kubernetes 1.34.
    pub secret_binding_name: Option<String>,
    /// The newer reference to credentials.
    pub credentials_binding_name: Option<String>,
    /// Hibernation of the shoot.
    pub hibernation: VersionedHibernation,
}

/// `Shoot.spec.hibernation`.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
pub struct VersionedHibernation {
    /// Whether the shoot is hibernated.
    pub enabled: bool,
    /// Schedules for hibernation and wake-up.
    pub schedules: Vec<Value>,
}

/// A Kubernetes version; a pool without one uses that of the control plane.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct KubernetesOfPool {
    /// The version.
    pub version: Option<String>,
}

/// `Shoot.spec.maintenance`.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Maintenance {
    /// Time of day.
    pub time_window: Option<TimeWindow>,
    /// Automatic updates; absent means all of them.
    pub auto_update: Option<AutoUpdate>,
}

/// `Shoot.spec.maintenance.timeWindow`: times of day such as `220000+0100`.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct TimeWindow {
    /// Start of the window.
    pub begin: String,
    /// End of the window.
    pub end: String,
}

/// `Shoot.spec.maintenance.autoUpdate`.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AutoUpdate {
    /// Whether Kubernetes patch versions are updated; absent means no.
    pub kubernetes_version: bool,
    /// Whether machine images are updated; absent means yes.
    pub machine_image_version: Option<bool>,
}

/// `Shoot.spec.provider`.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
pub struct VersionedPools {
    /// Pools of the shoot.
    pub workers: Vec<VersionedPool>,
}

/// A pool with its versions.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionedPool {
    /// Name of the pool.
    pub name: String,
    /// Machine type, image, architecture.
    pub machine: VersionedMachine,
    /// Container runtime; absent means `containerd`.
    pub cri: Option<ImageContainerRuntime>,
    /// Kubernetes version of the pool.
    pub kubernetes: KubernetesOfPool,
    /// `AutoRollingUpdate`, `AutoInPlaceUpdate`, `ManualInPlaceUpdate`.
    pub update_strategy: String,
    /// Minimum number of nodes.
    pub minimum: u32,
    /// Maximum number of nodes; always set in a stored Shoot.
    pub maximum: Option<u32>,
    /// Additional nodes during a rolling update, as a number or percentage.
    pub max_surge: Option<Value>,
    /// Nodes that may be unavailable during a rolling update, as a number or percentage.
    pub max_unavailable: Option<Value>,
}

/// The machines of a pool.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct VersionedMachine {
    /// Machine type.
    #[serde(rename = "type")]
    pub machine_type: String,
    /// Image.
    pub image: Option<MachineImage>,
    /// CPU architecture.
    pub architecture: Option<String>,
}

/// `Shoot.status`.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionedShootStatus {
    /// Last operation of the shoot.
    pub last_operation: Option<LastOperationState>,
    /// Last maintenance of the shoot.
    pub last_maintenance: Option<LastOperationState>,
    /// State of in-place updates.
    pub in_place_updates: VersionedInPlaceUpdates,
}

/// `Shoot.status.inPlaceUpdates`.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionedInPlaceUpdates {
    /// Pools with outdated nodes.
    pub pending_worker_updates: PendingWorkerUpdates,
}

/// Names of pools by update strategy.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingWorkerUpdates {
    /// Pools for which the user selects nodes to update.
    pub manual_in_place_update: Vec<String>,
}

impl VersionedPool {
    /// Whether machines are updated in place.
    #[must_use]
    pub fn is_updated_in_place(&self) -> bool {
        ["AutoInPlaceUpdate", "ManualInPlaceUpdate"].contains(&self.update_strategy.as_str())
    }
}

impl VersionedShootSpec {
    /// Whether the shoot stays without nodes: it is hibernated and has no schedule to wake up.
    #[must_use]
    pub fn has_no_nodes(&self) -> bool {
        self.hibernation.enabled && self.hibernation.schedules.is_empty()
    }
}

impl VersionedShoot {
    /// Sets the defaults of the API server: all automatic updates are enabled unless specified.
    pub fn apply_defaults(&mut self) {
        // The API server always adds an annotation with the creator of the Shoot.
        self.metadata.annotations.get_or_insert_default();
        let maintenance = self.spec.maintenance.get_or_insert_default();
        let auto = maintenance
            .auto_update
            .get_or_insert(AutoUpdate { kubernetes_version: true, machine_image_version: Some(true) });
        auto.machine_image_version.get_or_insert(true);
    }

    /// Project namespace and name of the shoot, for messages.
    #[must_use]
    pub fn title(&self) -> String {
        let [namespace, name] =
            [&self.metadata.namespace, &self.metadata.name].map(|text| text.as_deref().unwrap_or_default());
        if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
    }
}
