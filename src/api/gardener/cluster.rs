//! `Cluster` of `extensions.gardener.cloud/v1alpha1`: Shoot, Seed and CloudProfile mirrored into the seed.

use std::sync::Arc;

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use super::{CloudProfile, Shoot};
use crate::api::kubernetes_kind;
use crate::api::metadata::without_managers;

/// The garden's view of one shoot; named like the shoot's control-plane namespace.
///
/// Decode it from text: the CloudProfile in it keeps raw bytes.
#[derive(Clone, Debug, Deserialize)]
pub struct Cluster {
    /// Only the name counts.
    #[serde(default, deserialize_with = "without_managers")]
    pub metadata: ObjectMeta,
    /// The mirrored objects.
    pub spec: ClusterSpec,
}

kubernetes_kind!(Cluster, "extensions.gardener.cloud", "v1alpha1", "Cluster", "clusters", ClusterResourceScope);

/// `Cluster.spec`; the Seed is not read (it is absent for self-hosted shoots).
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSpec {
    /// The CloudProfile, merged with a NamespacedCloudProfile where the shoot uses one.
    pub cloud_profile: Option<Arc<CloudProfile>>,
    /// The Shoot.
    pub shoot: Option<Shoot>,
}
