//! The complete `spec` of a `CloudProfile` and a `NamespacedCloudProfile` (docs/contract.md#shape-of-a-cloudprofile),
//! for validating, changing or merging profiles. Workers need only [`CloudProfileSpec`](super::CloudProfileSpec).
//!
//! Unused members are kept as raw JSON. The provider config keeps its raw bytes, so these types must be decoded from
//! text.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use serde_with::apply;

use super::profile_versions::{KubernetesSettings, ProfileImage};
use super::{Capabilities, CapabilityDefinition};
use crate::api::gotext::json::null_as_default;

/// A CloudProfile document.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ProfileObject {
    /// Name, labels.
    pub metadata: ObjectMeta,
    /// Content of the profile.
    pub spec: ProfileSpec,
}

/// Complete `CloudProfile.spec`.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProfileSpec {
    /// CA certificates for nodes.
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
    /// Selector for seeds.
    pub seed_selector: Option<Value>,
    /// Provider type, such as `azure`.
    #[serde(rename = "type")]
    pub provider_type: String,
    /// Volume types.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volume_types: Vec<VolumeType>,
    /// Machine type and image of bastions.
    pub bastion: Option<Bastion>,
    /// Limits for shoots.
    pub limits: Option<Limits>,
    /// Capabilities in order of preference; empty for profiles in the old format.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub machine_capabilities: Vec<CapabilityDefinition>,
    /// Settings of control planes.
    pub control_plane: Option<Value>,
}

/// Complete machine type of a CloudProfile.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProfileMachineType {
    /// CPUs as a quantity.
    pub cpu: Value,
    /// GPUs as a quantity.
    pub gpu: Value,
    /// Memory as a quantity.
    pub memory: Value,
    /// Name such as `Standard_D4s_v5`.
    pub name: String,
    /// Built-in root volume.
    pub storage: Option<Value>,
    /// Whether shoots may use the type; absent means yes.
    pub usable: Option<bool>,
    /// CPU architecture, superseded by the capability of that name.
    pub architecture: Option<String>,
    /// Capabilities of machines of this type; a missing capability means every value.
    #[serde(skip_serializing_if = "Capabilities::is_empty")]
    pub capabilities: Capabilities,
    /// Settings for machine-controller-manager.
    pub machine_controller_manager: Option<Value>,
}

/// A volume type.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeType {
    /// Class, such as `standard` or `premium`.
    pub class: String,
    /// Name in the cloud.
    pub name: String,
    /// Whether shoots may use the type; absent means yes.
    pub usable: Option<bool>,
    /// Minimum size.
    pub min_size: Option<Value>,
}

/// A region of a cloud.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Region {
    /// Name in the cloud.
    pub name: String,
    /// Zones of the region.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<Zone>,
    /// Labels for seed selection.
    pub labels: Option<Value>,
    /// Access restrictions of the region.
    pub access_restrictions: Option<Value>,
}

/// A zone of a region, with the types that are unavailable there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Zone {
    /// Name in the cloud.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// Unavailable machine types.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub unavailable_machine_types: Vec<String>,
    /// Unavailable volume types.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub unavailable_volume_types: Vec<String>,
}

/// Machine type and image of bastions.
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
    /// Version of the image.
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
    /// Maximum number of nodes of a shoot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_nodes_total: Option<i32>,
}

/// A NamespacedCloudProfile, which extends a CloudProfile for one project.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
pub struct NamespacedCloudProfile {
    /// Name, namespace, generation.
    pub metadata: ObjectMeta,
    /// Changes to the parent.
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
    /// The extended profile.
    pub parent: ParentReference,
    /// CA certificates in addition to those of the parent.
    #[serde(rename = "caBundle")]
    pub ca_bundle: Option<String>,
    /// Extended expiration of Kubernetes versions.
    pub kubernetes: Option<KubernetesSettings>,
    /// Additional or changed images.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub machine_images: Vec<ProfileImage>,
    /// Additional or changed machine types.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub machine_types: Vec<ProfileMachineType>,
    /// Additional or changed volume types.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volume_types: Vec<VolumeType>,
    /// The additions to the provider's `CloudProfileConfig` document.
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
    /// Name of the CloudProfile.
    pub name: String,
}

/// `NamespacedCloudProfile.status`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamespacedProfileStatus {
    /// Parent merged with the changes.
    #[serde(default, deserialize_with = "null_as_default")]
    pub cloud_profile_spec: MergedProfile,
    /// The generation that was merged.
    pub observed_generation: Option<i64>,
}

/// The relevant members of a merged profile.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MergedProfile {
    /// Provider type, such as `azure`.
    #[serde(rename = "type", default, deserialize_with = "null_as_default")]
    pub provider_type: String,
    /// The provider's `CloudProfileConfig` document: initially that of the parent, later the merged one.
    pub provider_config: Option<Box<RawValue>>,
}
