//! The pools of a `Shoot` as specified by the user, for validation (docs/contract.md#pools-of-a-shoot). Workers need
//! only the members of [`Shoot`](super::Shoot).

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_with::apply;

use super::{CloudProfileReference, MachineImage};
use crate::api::gotext::json::null_as_default;

/// A Shoot with its pools. Must be decoded from text, because provider documents keep their raw bytes.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
pub struct OrderedShoot {
    /// Name, project namespace.
    pub metadata: ObjectMeta,
    /// Target state.
    pub spec: OrderedShootSpec,
}

/// `Shoot.spec`.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OrderedShootSpec {
    /// Region of the shoot.
    pub region: String,
    /// Reference to the profile …
    pub cloud_profile: Option<CloudProfileReference>,
    /// … or only its name in older shoots.
    pub cloud_profile_name: Option<String>,
    /// Pools and their infrastructure.
    pub provider: ShootPools,
}

/// `Shoot.spec.provider`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShootPools {
    /// Provider type, such as `azure`.
    #[serde(rename = "type", default, deserialize_with = "null_as_default")]
    pub provider_type: String,
    /// The provider's `InfrastructureConfig` document.
    pub infrastructure_config: Option<Box<RawValue>>,
    /// The pools.
    #[serde(default, deserialize_with = "null_as_default")]
    pub workers: Vec<ShootPool>,
}

/// A pool of a Shoot.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShootPool {
    /// Name of the pool.
    pub name: String,
    /// Machine type and image.
    pub machine: PoolMachine,
    /// Root volume.
    pub volume: Option<ShootVolume>,
    /// Additional volumes.
    pub data_volumes: Vec<ShootVolume>,
    /// Node labels.
    pub labels: BTreeMap<String, String>,
    /// Zones of the pool.
    pub zones: Vec<String>,
    /// `AutoRollingUpdate`, `AutoInPlaceUpdate`, `ManualInPlaceUpdate`.
    pub update_strategy: String,
    /// The provider's `WorkerConfig` document.
    pub provider_config: Option<Box<RawValue>>,
}

impl ShootPool {
    /// Whether machines are updated in place.
    #[must_use]
    pub fn is_updated_in_place(&self) -> bool {
        ["AutoInPlaceUpdate", "ManualInPlaceUpdate"].contains(&self.update_strategy.as_str())
    }
}

/// The machines of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct PoolMachine {
    /// Machine type.
    #[serde(rename = "type", default, deserialize_with = "null_as_default")]
    pub machine_type: String,
    /// Image.
    pub image: Option<MachineImage>,
    /// CPU architecture.
    pub architecture: Option<String>,
}

/// A volume of a pool.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ShootVolume {
    /// Name of the volume; optional for root volumes.
    pub name: String,
    /// Volume type of the cloud.
    #[serde(rename = "type")]
    pub volume_type: String,
    /// Size, such as `30Gi`.
    pub size: String,
    /// Whether the volume is encrypted.
    pub encrypted: Option<bool>,
}
