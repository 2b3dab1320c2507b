//! Versions of images and Kubernetes in a CloudProfile, with their lifecycle (docs/contract.md#versions).

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::apply;

use super::Capabilities;
use crate::api::gotext::json::null_as_default;

/// `spec.kubernetes` of a CloudProfile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KubernetesSettings {
    /// Kubernetes versions.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<ExpirableVersion>,
}

/// Only the versions of a CloudProfile's spec, with their lifecycle.
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
    /// Versions of the image.
    pub versions: Vec<ExpirableVersion>,
}

/// A version with its lifecycle, in one of two formats.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExpirableVersion {
    /// The version.
    pub version: String,
    /// Time (RFC 3339) from which the version is expired.
    pub expiration_date: Option<String>,
    /// `preview`, `supported`, `deprecated`.
    pub classification: Option<String>,
    /// The newer format: every lifecycle stage with its start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lifecycle: Vec<LifecycleStage>,
}

/// A lifecycle stage of a version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LifecycleStage {
    /// `preview`, `supported`, `deprecated`, `expired`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub classification: String,
    /// Start (RFC 3339); absent means from the beginning.
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
    /// Versions of the image.
    pub versions: Vec<ProfileImageVersion>,
    /// Range of automatic updates: `patch`, `minor`, `major`.
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
    /// Time (RFC 3339) from which the version is expired.
    pub expiration_date: Option<String>,
    /// `preview`, `supported`, `deprecated`.
    pub classification: Option<String>,
    /// The newer format: every lifecycle stage with its start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lifecycle: Vec<LifecycleStage>,
    /// Container runtimes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cri: Vec<ImageContainerRuntime>,
    /// CPU architectures, superseded by the capability `architecture` of the flavors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub architectures: Vec<String>,
    /// Supported kubelet versions.
    pub kubelet_version_constraint: Option<String>,
    /// Whether nodes can be updated in place to this version.
    pub in_place_updates: Option<ImageInPlaceUpdates>,
    /// Required capabilities of each flavor; an empty list means one flavor for all machines.
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
    /// Additional runtimes such as gVisor.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub container_runtimes: Vec<ImageRuntimeClass>,
}

/// An additional container runtime of an image version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageRuntimeClass {
    /// Type, such as `gvisor`.
    #[serde(rename = "type", default, deserialize_with = "null_as_default")]
    pub runtime_type: String,
    /// Settings of the extension for the runtime.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_config: Option<Value>,
}

/// Support for in-place updates to an image version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageInPlaceUpdates {
    /// Whether in-place updates are supported.
    #[serde(default, deserialize_with = "null_as_default")]
    pub supported: bool,
    /// Minimum version to update from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_version_for_update: Option<String>,
}
