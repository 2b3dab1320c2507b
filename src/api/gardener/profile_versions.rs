//! Versions of images and of Kubernetes in a CloudProfile, with their life (docs/contract.md#versions).

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::apply;

use super::Capabilities;
use crate::api::gotext::json::null_as_default;

/// `spec.kubernetes` of a CloudProfile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KubernetesSettings {
    /// The versions.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<ExpirableVersion>,
}

/// The versions of a CloudProfile's spec with their life, and nothing else of it.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProfileVersions {
    /// Kubernetes versions.
    pub kubernetes: KubernetesSettings,
    /// Images by name and version.
    pub machine_images: Vec<ImageVersions>,
}

/// The versions of an image.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ImageVersions {
    /// Name such as `gardenlinux`.
    pub name: String,
    /// Its versions.
    pub versions: Vec<ExpirableVersion>,
}

/// A version with its life, written in one of two ways.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExpirableVersion {
    /// The version.
    pub version: String,
    /// RFC 3339; from then on the version is expired.
    pub expiration_date: Option<String>,
    /// `preview`, `supported`, `deprecated`.
    pub classification: Option<String>,
    /// The newer way: every stage with its start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lifecycle: Vec<LifecycleStage>,
}

/// A stage in the life of a version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LifecycleStage {
    /// `preview`, `supported`, `deprecated`, `expired`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub classification: String,
    /// RFC 3339; absent means from the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<String>,
}

/// An image of a CloudProfile.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProfileImage {
    /// Name such as `gardenlinux`.
    pub name: String,
    /// Its versions.
    pub versions: Vec<ProfileImageVersion>,
    /// How far automatic updates go: `patch`, `minor`, `major`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_strategy: Option<String>,
}

/// A version of an image.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProfileImageVersion {
    /// The version.
    pub version: String,
    /// RFC 3339; from then on the version is expired.
    pub expiration_date: Option<String>,
    /// `preview`, `supported`, `deprecated`.
    pub classification: Option<String>,
    /// The newer way: every stage with its start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lifecycle: Vec<LifecycleStage>,
    /// Container runtimes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cri: Vec<ImageContainerRuntime>,
    /// CPU architectures, superseded by the capability `architecture` of the flavors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub architectures: Vec<String>,
    /// Which kubelets it can run.
    pub kubelet_version_constraint: Option<String>,
    /// Whether nodes can be updated in place to it.
    pub in_place_updates: Option<ImageInPlaceUpdates>,
    /// What each flavor of the version runs on; none means everything.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capability_flavors: Vec<Capabilities>,
}

/// A container runtime of an image version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageContainerRuntime {
    /// `containerd`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// Further runtimes such as gVisor.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub container_runtimes: Vec<ImageRuntimeClass>,
}

/// A further container runtime of an image version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageRuntimeClass {
    /// Such as `gvisor`.
    #[serde(rename = "type", default, deserialize_with = "null_as_default")]
    pub runtime_type: String,
    /// Settings of the extension that runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_config: Option<Value>,
}

/// Whether nodes can be updated in place to an image version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageInPlaceUpdates {
    /// Whether they can.
    #[serde(default, deserialize_with = "null_as_default")]
    pub supported: bool,
    /// From which version on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_version_for_update: Option<String>,
}
