//! The relevant members of `Deployment` (apps/v1) for machine-controller-manager: target and available replicas.

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_with::apply;

use super::kubernetes_kind;
use super::machine::DeploymentCondition;
use crate::api::gotext::json::null_as_default;
use crate::api::metadata::without_managers;

/// A Deployment, without its pod template.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Deployment {
    /// Name, version.
    #[serde(default, deserialize_with = "without_managers")]
    pub metadata: ObjectMeta,
    /// Target replicas.
    #[serde(default, deserialize_with = "null_as_default")]
    pub spec: DeploymentSpec,
    /// Observed replicas.
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: DeploymentStatus,
}

kubernetes_kind!(Deployment, "apps", "v1", "Deployment", "deployments", NamespaceResourceScope);

impl Deployment {
    /// Target number of pods, 1 by default.
    #[must_use]
    pub fn replicas(&self) -> i32 {
        self.spec.replicas.unwrap_or(1)
    }
}

/// Relevant members of `Deployment.spec`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct DeploymentSpec {
    /// Target number of pods.
    pub replicas: Option<i32>,
}

/// Relevant members of `Deployment.status`.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentStatus {
    /// Number of available pods.
    pub available_replicas: i32,
    /// Conditions `Available`, `Progressing`, `ReplicaFailure`.
    pub conditions: Vec<DeploymentCondition>,
}
