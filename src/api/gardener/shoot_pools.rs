//! The pools of a `Shoot` as a user orders them, for those who judge the order (docs/contract.md#pools-of-a-shoot). Workers
//! need less of a Shoot: [`Shoot`](super::Shoot).

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_with::apply;

use super::{CloudProfileReference, MachineImage};
use crate::api::gotext::json::null_as_default;

/// A Shoot with its pools. Decode it from text: documents of providers keep their bytes.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
pub struct OrderedShoot {
    /// Name, project namespace.
    pub metadata: ObjectMeta,
    /// The order.
    pub spec: OrderedShootSpec,
}

/// `Shoot.spec`.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OrderedShootSpec {
    /// Region.
    pub region: String,
    /// Which profile the shoot uses …
    pub cloud_profile: Option<CloudProfileReference>,
    /// … or, in older shoots, only its name.
    pub cloud_profile_name: Option<String>,
    /// Pools and the infrastructure for them.
    pub provider: ShootPools,
}

/// `Shoot.spec.provider`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShootPools {
    /// The provider, such as `azure`.
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
    /// Its name.
    pub name: String,
    /// Its machines.
    pub machine: PoolMachine,
    /// Root volume.
    pub volume: Option<ShootVolume>,
    /// Further volumes.
    pub data_volumes: Vec<ShootVolume>,
    /// Labels of its nodes.
    pub labels: BTreeMap<String, String>,
    /// Zones.
    pub zones: Vec<String>,
    /// `AutoRollingUpdate`, `AutoInPlaceUpdate`, `ManualInPlaceUpdate`.
    pub update_strategy: String,
    /// The provider's `WorkerConfig` document.
    pub provider_config: Option<Box<RawValue>>,
}

impl ShootPool {
    /// Whether machines are updated without being replaced.
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
    /// Its name; root volumes need none.
    pub name: String,
    /// The cloud's kind of volume.
    #[serde(rename = "type")]
    pub volume_type: String,
    /// Such as `30Gi`.
    pub size: String,
    /// Whether it is encrypted.
    pub encrypted: Option<bool>,
}
