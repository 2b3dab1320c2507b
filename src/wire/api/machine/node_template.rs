//! `spec.nodeTemplate` of a machine, which machine-controller-manager syncs to the Node.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::api::gardener::Taint;
use crate::api::gotext::json::null_as_default;

/// Labels, annotations and taints of the Node. Changes don't roll machines.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeTemplateOfMachine {
    /// Labels and annotations.
    pub metadata: LabelsAndAnnotations,
    /// Taints.
    pub spec: NodeTemplateTaints,
}

/// Labels and annotations of a Node, or of a machine within a template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelsAndAnnotations {
    /// Labels.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// Taints of the Node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeTemplateTaints {
    /// Taints.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
}
