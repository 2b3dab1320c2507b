//! What maintenance reads of a `Shoot` and changes in it (docs/versions.md): its versions, its window and its pools.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::Value;
use serde_with::apply;

use super::{CloudProfileReference, ImageContainerRuntime, LastOperationState, MachineImage};
use crate::api::gotext::json::null_as_default;
use crate::api::metadata::without_managers;

/// A Shoot as far as its versions are concerned.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct VersionedShoot {
    /// Name, project namespace, annotations.
    #[serde(default, deserialize_with = "without_managers")]
    pub metadata: ObjectMeta,
    /// The order.
    #[serde(default, deserialize_with = "null_as_default")]
    pub spec: VersionedShootSpec,
    /// What Gardener made of it.
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: VersionedShootStatus,
}

/// `Shoot.spec`.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionedShootSpec {
    /// Which profile the shoot uses …
    pub cloud_profile: Option<CloudProfileReference>,
    /// … or, in older shoots, only its name.
    pub cloud_profile_name: Option<String>,
    /// The control plane.
    pub kubernetes: KubernetesOfPool,
    /// When and what Gardener updates by itself.
    pub maintenance: Option<Maintenance>,
    /// Pools.
    pub provider: VersionedPools,
    /// The older reference to credentials, gone with Kubernetes 1.34.
    pub secret_binding_name: Option<String>,
    /// The newer one.
    pub credentials_binding_name: Option<String>,
    /// Whether the shoot has no nodes now.
    pub hibernation: VersionedHibernation,
}

/// `Shoot.spec.hibernation`.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
pub struct VersionedHibernation {
    /// Whether it is hibernated.
    pub enabled: bool,
    /// When it is hibernated and woken up.
    pub schedules: Vec<Value>,
}

/// A Kubernetes version; a pool without one has that of the control plane.
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
    /// The time of day.
    pub time_window: Option<TimeWindow>,
    /// What is updated without need; absent means everything.
    pub auto_update: Option<AutoUpdate>,
}

/// `Shoot.spec.maintenance.timeWindow`: times of a day as `220000+0100`.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct TimeWindow {
    /// Its begin.
    pub begin: String,
    /// Its end.
    pub end: String,
}

/// `Shoot.spec.maintenance.autoUpdate`.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AutoUpdate {
    /// Patches of Kubernetes; absent means no.
    pub kubernetes_version: bool,
    /// Machine images; absent means yes.
    pub machine_image_version: Option<bool>,
}

/// `Shoot.spec.provider`.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
pub struct VersionedPools {
    /// The pools.
    pub workers: Vec<VersionedPool>,
}

/// A pool.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionedPool {
    /// Its name.
    pub name: String,
    /// Machine type, image, architecture.
    pub machine: VersionedMachine,
    /// Container runtime; absent means `containerd`.
    pub cri: Option<ImageContainerRuntime>,
    /// Its own Kubernetes version.
    pub kubernetes: KubernetesOfPool,
    /// `AutoRollingUpdate`, `AutoInPlaceUpdate`, `ManualInPlaceUpdate`.
    pub update_strategy: String,
    /// Fewest nodes.
    pub minimum: u32,
    /// Most nodes; a stored Shoot always has it.
    pub maximum: Option<u32>,
    /// Nodes more while it rolls: a number or a percentage.
    pub max_surge: Option<Value>,
    /// Nodes less while it rolls.
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
    /// How the last operation ended.
    pub last_operation: Option<LastOperationState>,
    /// How the last maintenance ended.
    pub last_maintenance: Option<LastOperationState>,
    /// Updates in place.
    pub in_place_updates: VersionedInPlaceUpdates,
}

/// `Shoot.status.inPlaceUpdates`.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionedInPlaceUpdates {
    /// Pools with nodes that are not updated yet.
    pub pending_worker_updates: PendingWorkerUpdates,
}

/// Names of pools by their strategy.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingWorkerUpdates {
    /// Updated as a person selects nodes.
    pub manual_in_place_update: Vec<String>,
}

impl VersionedPool {
    /// Whether machines are updated without being replaced.
    #[must_use]
    pub fn is_updated_in_place(&self) -> bool {
        ["AutoInPlaceUpdate", "ManualInPlaceUpdate"].contains(&self.update_strategy.as_str())
    }
}

impl VersionedShootSpec {
    /// Whether there are no nodes, and will be none: without a schedule that wakes it up.
    #[must_use]
    pub fn has_no_nodes(&self) -> bool {
        self.hibernation.enabled && self.hibernation.schedules.is_empty()
    }
}

impl VersionedShoot {
    /// Sets what the API server sets: everything is updated automatically where nothing is said.
    pub fn apply_defaults(&mut self) {
        // It notes there who has created the Shoot.
        self.metadata.annotations.get_or_insert_default();
        let maintenance = self.spec.maintenance.get_or_insert_default();
        let auto = maintenance
            .auto_update
            .get_or_insert(AutoUpdate { kubernetes_version: true, machine_image_version: Some(true) });
        auto.machine_image_version.get_or_insert(true);
    }

    /// Project namespace and name, as messages name a shoot.
    #[must_use]
    pub fn title(&self) -> String {
        let [namespace, name] =
            [&self.metadata.namespace, &self.metadata.name].map(|text| text.as_deref().unwrap_or_default());
        if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
    }
}
