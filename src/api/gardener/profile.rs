//! The whole `spec` of a `CloudProfile` and a `NamespacedCloudProfile` (docs/contract.md#shape-of-a-cloudprofile), for
//! those who judge, change or merge profiles. Workers need a fraction of it: [`CloudProfileSpec`](super::CloudProfileSpec).
//!
//! Members that nothing here looks into are kept as they are. The provider's document keeps its raw bytes, so decode these
//! types from text.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use serde_with::apply;

use super::profile_versions::{KubernetesSettings, ProfileImage};
use super::{Capabilities, CapabilityDefinition};
use crate::api::gotext::json::null_as_default;

/// A CloudProfile as a document of its own.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ProfileObject {
    /// Name, labels.
    pub metadata: ObjectMeta,
    /// The offer.
    pub spec: ProfileSpec,
}

/// `CloudProfile.spec`, complete.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProfileSpec {
    /// Certificates that nodes trust.
    #[serde(rename = "caBundle")]
    pub ca_bundle: Option<String>,
    /// Kubernetes versions.
    pub kubernetes: KubernetesSettings,
    /// Images by name and version.
    pub machine_images: Vec<ProfileImage>,
    /// Machine types.
    pub machine_types: Vec<ProfileMachineType>,
    /// The provider's `CloudProfileConfig` document.
    pub provider_config: Option<Box<RawValue>>,
    /// Regions and their zones.
    pub regions: Vec<Region>,
    /// Which seeds may be used.
    pub seed_selector: Option<Value>,
    /// The provider, such as `azure`.
    #[serde(rename = "type")]
    pub provider_type: String,
    /// Kinds of volumes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volume_types: Vec<VolumeType>,
    /// Which machine and image bastions use.
    pub bastion: Option<Bastion>,
    /// Limits for shoots.
    pub limits: Option<Limits>,
    /// Capabilities in order of preference; empty for profiles in the old format.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub machine_capabilities: Vec<CapabilityDefinition>,
    /// Settings of control planes.
    pub control_plane: Option<Value>,
}

/// A machine type of a CloudProfile, complete.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProfileMachineType {
    /// CPUs, a quantity.
    pub cpu: Value,
    /// Graphics processors, a quantity.
    pub gpu: Value,
    /// Memory, a quantity.
    pub memory: Value,
    /// Name such as `Standard_D4s_v5`.
    pub name: String,
    /// Its own volume.
    pub storage: Option<Value>,
    /// Whether shoots may use it; absent means yes.
    pub usable: Option<bool>,
    /// CPU architecture, superseded by the capability of that name.
    pub architecture: Option<String>,
    /// What machines of this type can do; a missing capability means every value.
    #[serde(skip_serializing_if = "Capabilities::is_empty")]
    pub capabilities: Capabilities,
    /// Settings for machine-controller-manager.
    pub machine_controller_manager: Option<Value>,
}

/// A kind of volume.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeType {
    /// `standard`, `premium`.
    pub class: String,
    /// The cloud's name for it.
    pub name: String,
    /// Whether shoots may use it; absent means yes.
    pub usable: Option<bool>,
    /// The smallest size.
    pub min_size: Option<Value>,
}

/// A region of a cloud.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Region {
    /// The cloud's name for it.
    pub name: String,
    /// Its zones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<Zone>,
    /// Labels for choosing seeds.
    pub labels: Option<Value>,
    /// Names by which other systems know it.
    pub access_restrictions: Option<Value>,
}

/// A zone of a region, with what it lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Zone {
    /// The cloud's name for it.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// Machine types that it lacks.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub unavailable_machine_types: Vec<String>,
    /// Kinds of volumes that it lacks.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub unavailable_volume_types: Vec<String>,
}

/// Which machine and image bastions use.
#[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bastion {
    /// The image; without a version the newest supported one.
    pub machine_image: Option<BastionImage>,
    /// The machine type.
    pub machine_type: Option<BastionMachineType>,
}

/// The image of bastions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BastionImage {
    /// Name of an image.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// One of its versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// The machine type of bastions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BastionMachineType {
    /// Name of a machine type.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
}

/// Limits for shoots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Most nodes of a shoot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_nodes_total: Option<i32>,
}

/// A NamespacedCloudProfile: a project's changes to a CloudProfile.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
pub struct NamespacedCloudProfile {
    /// Name, namespace, generation.
    pub metadata: ObjectMeta,
    /// The changes.
    pub spec: NamespacedProfileSpec,
    /// The merged profile.
    pub status: NamespacedProfileStatus,
}

/// `NamespacedCloudProfile.spec`.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamespacedProfileSpec {
    /// The profile that it extends.
    pub parent: ParentReference,
    /// Certificates in addition to the parent's.
    #[serde(rename = "caBundle")]
    pub ca_bundle: Option<String>,
    /// Later expiration of Kubernetes versions.
    pub kubernetes: Option<KubernetesSettings>,
    /// Further or changed images.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub machine_images: Vec<ProfileImage>,
    /// Further or changed machine types.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub machine_types: Vec<ProfileMachineType>,
    /// Further or changed kinds of volumes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volume_types: Vec<VolumeType>,
    /// The provider's `CloudProfileConfig` document with what it adds.
    pub provider_config: Option<Box<RawValue>>,
    /// Limits for shoots.
    pub limits: Option<Limits>,
}

/// The profile that a NamespacedCloudProfile extends.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentReference {
    /// Always `CloudProfile`.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// `NamespacedCloudProfile.status`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamespacedProfileStatus {
    /// Parent and changes together.
    #[serde(default, deserialize_with = "null_as_default")]
    pub cloud_profile_spec: MergedProfile,
    /// The generation that was merged.
    pub observed_generation: Option<i64>,
}

/// What is read of a merged profile.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MergedProfile {
    /// The provider, such as `azure`.
    #[serde(rename = "type", default, deserialize_with = "null_as_default")]
    pub provider_type: String,
    /// The provider's `CloudProfileConfig` document: at first the parent's, then both merged.
    pub provider_config: Option<Box<RawValue>>,
}
