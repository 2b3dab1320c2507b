//! `MachineClass`: cloud settings for the machines of one pool and zone.

use std::collections::BTreeMap;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::SecretReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::apply;

use crate::api::gotext::json::null_as_default;
use crate::api::gotext::quantity::Quantity;
use crate::api::kubernetes_kind;

/// A machine class. Its members are at the top level, without a `spec`.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineClass {
    /// Name, namespace, labels.
    pub metadata: ObjectMeta,
    /// Capacity of a node of this class, for scaling from zero.
    pub node_template: Option<MachineClassNodeTemplate>,
    /// Secret with the cloud credentials.
    pub credentials_secret_ref: Option<SecretReference>,
    /// Name of the driver that creates the machines, such as `Azure`.
    pub provider: String,
    /// The driver-specific document.
    pub provider_spec: Value,
    /// Secret with the user data.
    pub secret_ref: Option<SecretReference>,
}

kubernetes_kind!(
    MachineClass,
    "machine.sapcloud.io",
    "v1alpha1",
    "MachineClass",
    "machineclasses",
    NamespaceResourceScope
);

/// Capacity of a node of a class.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineClassNodeTemplate {
    /// CPU architecture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// Resources of the node.
    pub capacity: BTreeMap<String, Quantity>,
    /// Resources that exist only for the autoscaler.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub virtual_capacity: BTreeMap<String, Quantity>,
    /// Machine type.
    pub instance_type: String,
    /// Region.
    pub region: String,
    /// Zone as in node labels.
    pub zone: String,
}
