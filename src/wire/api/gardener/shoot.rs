//! The members of a `Shoot` (`core.gardener.cloud/v1beta1`) that Workers depend on.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_with::apply;

use crate::api::gotext::json::null_as_default;
use crate::api::metadata::without_managers;

/// A cluster ordered by a user.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Shoot {
    /// Always `Shoot`.
    pub kind: Option<String>,
    /// API version.
    pub api_version: Option<String>,
    /// Name, project namespace, annotations.
    #[serde(default, deserialize_with = "without_managers")]
    pub metadata: ObjectMeta,
    /// Target state.
    #[serde(default, deserialize_with = "null_as_default")]
    pub spec: ShootSpec,
    /// Observed state.
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: ShootStatus,
}

/// `Shoot.spec`.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShootSpec {
    /// Region, from which the Azure cloud is derived.
    pub region: String,
    /// Reference to the profile of the shoot, only for messages.
    pub cloud_profile: Option<CloudProfileReference>,
    /// Version and components.
    pub kubernetes: Kubernetes,
    /// IP families and pod networks.
    pub networking: Option<Networking>,
    /// System components, such as node-local-dns.
    pub system_components: Option<SystemComponents>,
    /// Hibernation of the shoot.
    pub hibernation: Option<Hibernation>,
    /// Pools as specified by the user.
    pub provider: ShootProvider,
}

/// Kind and name of the profile that a shoot uses.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct CloudProfileReference {
    /// `CloudProfile` or `NamespacedCloudProfile`.
    pub kind: String,
    /// Name of the profile.
    pub name: String,
}

/// `Shoot.spec.kubernetes`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Kubernetes {
    /// Version of the control plane.
    #[serde(default, deserialize_with = "null_as_default")]
    pub version: String,
    /// Configuration of kube-proxy.
    pub kube_proxy: Option<KubeProxy>,
    /// Configuration of kube-controller-manager.
    pub kube_controller_manager: Option<KubeControllerManager>,
}

/// `kubeControllerManager` of a shoot.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct KubeControllerManager {
    /// Prefix length of each node's pod network.
    #[serde(rename = "nodeCIDRMaskSize")]
    pub node_cidr_mask_size: Option<i32>,
}

/// `kubeProxy` of a shoot.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct KubeProxy {
    /// Whether kube-proxy is deployed.
    pub enabled: Option<bool>,
    /// `IPTables`, `IPVS`, …
    pub mode: Option<String>,
}

/// `Shoot.spec.networking`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Networking {
    /// `IPv4`, `IPv6` or both, in order of preference.
    #[serde(default, deserialize_with = "null_as_default")]
    pub ip_families: Vec<String>,
    /// Network of the pods.
    pub pods: Option<String>,
}

/// `Shoot.status.networking`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct NetworkingStatus {
    /// Networks of the pods.
    #[serde(default, deserialize_with = "null_as_default")]
    pub pods: Vec<String>,
}

/// `Shoot.spec.systemComponents`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct SystemComponents {
    /// node-local-dns.
    #[serde(rename = "nodeLocalDNS")]
    pub node_local_dns: Option<NodeLocalDns>,
}

/// node-local-dns of a shoot.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct NodeLocalDns {
    /// Whether node-local-dns is deployed.
    #[serde(default, deserialize_with = "null_as_default")]
    pub enabled: bool,
}

/// `Shoot.spec.hibernation`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Hibernation {
    /// Whether the shoot should be hibernated.
    pub enabled: Option<bool>,
}

/// `Shoot.spec.provider`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ShootProvider {
    /// Pools as specified by the user.
    #[serde(default, deserialize_with = "null_as_default")]
    pub workers: Vec<ShootWorker>,
}

/// A pool of a shoot.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ShootWorker {
    /// Name of the pool.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// Container runtime.
    pub cri: Option<ContainerRuntime>,
}

/// Container runtime of a pool.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ContainerRuntime {
    /// `containerd`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
}

/// `Shoot.status`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShootStatus {
    /// Prefix of all object names.
    #[serde(rename = "technicalID", default, deserialize_with = "null_as_default")]
    pub technical_id: String,
    /// Networks.
    pub networking: Option<NetworkingStatus>,
    /// Whether the shoot is already hibernated.
    #[serde(default, deserialize_with = "null_as_default")]
    pub is_hibernated: bool,
    /// Last operation of the shoot.
    pub last_operation: Option<LastOperationState>,
    /// Rotation of credentials.
    pub credentials: Option<ShootCredentials>,
}

/// State of the shoot's last operation.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct LastOperationState {
    /// State; `Failed` stops every reconciliation.
    #[serde(default, deserialize_with = "null_as_default")]
    pub state: String,
}

/// `Shoot.status.credentials`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ShootCredentials {
    /// Rotations by kind.
    pub rotation: Option<CredentialsRotation>,
}

/// Rotations that roll nodes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CredentialsRotation {
    /// Certificate authorities.
    pub certificate_authorities: Option<RotationTimes>,
    /// Key for service account tokens.
    pub service_account_key: Option<RotationTimes>,
}

/// Start times of a rotation, for the shoot and for single pools.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RotationTimes {
    /// Start of the shoot's rotation (RFC 3339).
    pub last_initiation_time: Option<String>,
    /// Pools that are rolled later than the shoot.
    #[serde(default, deserialize_with = "null_as_default")]
    pub pending_workers_rollouts: Vec<PendingWorkersRollout>,
}

/// A pool that has not yet been rolled for the current rotation.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingWorkersRollout {
    /// Name of the pool.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// Start (RFC 3339) of the rotation that the pool still uses.
    pub last_initiation_time: Option<String>,
}

impl Shoot {
    /// Whether the shoot should be hibernated.
    #[must_use]
    pub fn should_hibernate(&self) -> bool {
        self.spec.hibernation.as_ref().and_then(|hibernation| hibernation.enabled) == Some(true)
    }

    /// Whether machine-controller-manager should be stopped once the shoot is hibernated. When a shoot is deleted, even
    /// a hibernated one, gardenlet starts it to delete the remaining machines.
    #[must_use]
    pub fn is_hibernation_requested(&self) -> bool {
        self.should_hibernate() && self.metadata.deletion_timestamp.is_none()
    }

    /// Annotations, empty if there are none.
    #[must_use]
    pub fn annotations(&self) -> &BTreeMap<String, String> {
        const NONE: &BTreeMap<String, String> = &BTreeMap::new();
        self.metadata.annotations.as_ref().unwrap_or(NONE)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn keeps_machine_controller_manager_for_deletion() {
        let stops =
            |shoot: Value| serde_json::from_str::<Shoot>(&shoot.to_string()).unwrap().is_hibernation_requested();
        let [hibernated, awake] = [true, false].map(|enabled| json!({"hibernation": {"enabled": enabled}}));
        assert!(stops(json!({"spec": hibernated})));
        assert!(!stops(json!({"spec": awake})) && !stops(json!({})));
        assert!(!stops(json!({"metadata": {"deletionTimestamp": "2026-11-24T10:00:00Z"}, "spec": hibernated})));
    }
}
