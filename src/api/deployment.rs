//! `Deployment` (apps/v1) as far as that of a controller is read: whether it is meant to run, and whether it does.

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_with::apply;

use super::kubernetes_kind;
use super::machine::DeploymentCondition;
use crate::api::gotext::json::null_as_default;
use crate::api::metadata::without_managers;

/// Pods of one template. What a pod is made of is not read.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Deployment {
    /// Name, version.
    #[serde(default, deserialize_with = "without_managers")]
    pub metadata: ObjectMeta,
    /// How many pods there shall be.
    #[serde(default, deserialize_with = "null_as_default")]
    pub spec: DeploymentSpec,
    /// How many there are.
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: DeploymentStatus,
}

kubernetes_kind!(Deployment, "apps", "v1", "Deployment", "deployments", NamespaceResourceScope);

impl Deployment {
    /// How many pods there shall be: one where nobody says.
    #[must_use]
    pub fn replicas(&self) -> i32 {
        self.spec.replicas.unwrap_or(1)
    }
}

/// `Deployment.spec` as far as it is read.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct DeploymentSpec {
    /// Pods there shall be.
    pub replicas: Option<i32>,
}

/// `Deployment.status` as far as it is read.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentStatus {
    /// Pods that have been ready for long enough.
    pub available_replicas: i32,
    /// `Available`, `Progressing`, `ReplicaFailure`.
    pub conditions: Vec<DeploymentCondition>,
}
