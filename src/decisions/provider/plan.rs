//! The plan of a provider for a pool: the objects of each zone, ready to be written.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::pool::hash::{HashItems, InPlaceHash};
use crate::pool::names::{ClassName, DeploymentName};
use wire::api::gardener::Taint;
use wire::api::machine::{DeploymentStrategy, MachineClass, MachineSettings};

/// All target objects of one pool.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolPlan {
    /// Name of the pool.
    pub pool: String,
    /// One entry per zone in the order of the pool, or one entry without a zone.
    pub machines: Vec<MachinePlan>,
    /// The resolved image as it is recorded in the provider status.
    pub status_image: Value,
    /// Hash for `status.inPlaceUpdates`, only for in-place pools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_place_hash: Option<InPlaceHash>,
}

/// The machines of one pool in one zone.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MachinePlan {
    /// The zone, if the pool has zones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The machine class.
    pub class: MachineClass,
    /// The boot script, for the Secret with the name of the class.
    pub user_data: UserData,
    /// The machine deployment.
    pub deployment: TargetDeployment,
    /// Hash inputs of the class name.
    pub hash_items: HashItems,
}

/// The target machine deployment of one zone, without values from the live object.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetDeployment {
    /// Name of the deployment.
    pub name: DeploymentName,
    /// Name of the pool.
    pub pool_name: String,
    /// Name of the class; a new name rolls the nodes.
    pub class_name: ClassName,
    /// Name of the user data Secret.
    pub secret_name: ClassName,
    /// Minimum number of machines in the zone.
    pub minimum: i32,
    /// Maximum number of machines in the zone.
    pub maximum: i32,
    /// Priority for the priority expander.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Update strategy for the machines.
    pub strategy: DeploymentStrategy,
    /// Node labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Node annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Node taints.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// Timeouts and retries.
    pub machine_configuration: MachineSettings,
    /// Annotations for the cluster-autoscaler; an empty value removes the annotation.
    pub cluster_autoscaler_annotations: BTreeMap<String, String>,
    /// Maximum number of preserved failed machines in the zone, zero to remove the setting. Absent if the provider's
    /// Gardener library does not support it.
    #[serde(skip_serializing_if = "is_unset")]
    pub auto_preserve_failed_machine_max: Option<i32>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_unset(maximum: &Option<i32>) -> bool {
    maximum.unwrap_or_default() == 0
}

/// A boot script. It can contain tokens, so it is never printed or serialised.
#[derive(Clone, PartialEq, Eq)]
pub struct UserData(pub Vec<u8>);

impl fmt::Debug for UserData {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "UserData({} bytes)", self.0.len())
    }
}

impl Serialize for UserData {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{} bytes", self.0.len()))
    }
}
