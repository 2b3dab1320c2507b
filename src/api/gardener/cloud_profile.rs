//! What is read of a `CloudProfile` (`core.gardener.cloud/v1beta1`).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_with::apply;

use super::{Capabilities, CapabilityDefinition};
use crate::api::decoded_once::DecodedOnce;
use crate::api::gotext::json::null_as_default;
use crate::api::gotext::quantity::Quantity;

/// Machine types and images that a landscape offers.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CloudProfile {
    /// `CloudProfile` or `NamespacedCloudProfile`.
    pub kind: Option<String>,
    /// Group and version.
    pub api_version: Option<String>,
    /// Only the name counts.
    pub metadata: ObjectMeta,
    /// The offer.
    pub spec: CloudProfileSpec,
}

/// `CloudProfile.spec`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CloudProfileSpec {
    /// Capabilities in order of preference; empty for profiles in the old format.
    #[serde(default, deserialize_with = "null_as_default")]
    pub machine_capabilities: Vec<CapabilityDefinition>,
    /// Machine types.
    #[serde(default, deserialize_with = "null_as_default")]
    pub machine_types: Vec<MachineType>,
    /// The provider's `CloudProfileConfig` document.
    pub provider_config: Option<Box<RawValue>>,
    /// The same document decoded, once somebody needed it.
    #[serde(skip)]
    pub decoded_provider_config: DecodedOnce,
}

/// A machine type of a CloudProfile.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct MachineType {
    /// Name such as `Standard_D4s_v5`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// What machines of this type can do; a missing capability means every value.
    pub capabilities: Option<Capabilities>,
    /// The root volume that it brings. Few types have one.
    pub storage: Option<Box<MachineStorage>>,
}

/// The root volume that a machine type brings.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
pub struct MachineStorage {
    /// The cloud's kind of volume.
    #[serde(rename = "type")]
    pub volume_type: String,
    /// Its size.
    pub size: Option<Quantity>,
}
