//! The members of a `CloudProfile` (`core.gardener.cloud/v1beta1`) that Workers depend on.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_with::apply;

use super::{Capabilities, CapabilityDefinition};
use crate::api::decoded_once::DecodedOnce;
use crate::api::gotext::json::null_as_default;
use crate::api::gotext::quantity::Quantity;

/// Machine types and images of a landscape.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CloudProfile {
    /// `CloudProfile` or `NamespacedCloudProfile`.
    pub kind: Option<String>,
    /// API version.
    pub api_version: Option<String>,
    /// Metadata, of which only the name is used.
    pub metadata: ObjectMeta,
    /// Machine types and images.
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
    /// The decoded provider config, cached on first use.
    #[serde(skip)]
    pub decoded_provider_config: DecodedOnce,
}

/// A machine type of a CloudProfile.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct MachineType {
    /// Name such as `Standard_D4s_v5`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// Capabilities of machines of this type; a missing capability means every value.
    pub capabilities: Option<Capabilities>,
    /// Built-in root volume, which few types have.
    pub storage: Option<Box<MachineStorage>>,
}

/// The built-in root volume of a machine type.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
pub struct MachineStorage {
    /// Volume type of the cloud.
    #[serde(rename = "type")]
    pub volume_type: String,
    /// Size of the volume.
    pub size: Option<Quantity>,
}
