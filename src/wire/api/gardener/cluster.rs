//! `Cluster` of `extensions.gardener.cloud/v1alpha1`: Shoot, Seed and CloudProfile mirrored into the seed.

use std::sync::Arc;

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use super::{CloudProfile, Shoot};
use crate::api::kubernetes_kind;
use crate::api::metadata::without_managers;

/// The garden's objects for one shoot. Its name is the shoot namespace in the seed.
///
/// Must be decoded from text, because the CloudProfile keeps raw bytes.
#[derive(Clone, Debug, Deserialize)]
pub struct Cluster {
    /// Metadata, of which only the name is used.
    #[serde(default, deserialize_with = "without_managers")]
    pub metadata: ObjectMeta,
    /// The mirrored objects.
    pub spec: ClusterSpec,
}

kubernetes_kind!(Cluster, "extensions.gardener.cloud", "v1alpha1", "Cluster", "clusters", ClusterResourceScope);

/// `Cluster.spec` without the Seed, which is unused (and absent for self-hosted shoots).
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSpec {
    /// The CloudProfile, merged with a NamespacedCloudProfile if the shoot uses one.
    pub cloud_profile: Option<Arc<CloudProfile>>,
    /// The Shoot.
    pub shoot: Option<Shoot>,
}
