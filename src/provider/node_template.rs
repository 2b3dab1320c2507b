//! The node template that a pool's provider config may hold: it overrides the pool's own.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::api::gardener::NodeTemplate;
use crate::api::gotext::json::null_as_default;
use crate::api::gotext::quantity::Quantity;

/// A node template inside a strict document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StrictNodeTemplate {
    #[serde(default, deserialize_with = "null_as_default")]
    capacity: BTreeMap<String, Quantity>,
    virtual_capacity: Option<BTreeMap<String, Quantity>>,
}

impl StrictNodeTemplate {
    /// Whether a virtual capacity is given; an empty object counts.
    #[must_use]
    pub fn has_virtual_capacity(&self) -> bool {
        self.virtual_capacity.is_some()
    }

    /// Resources of the node.
    #[must_use]
    pub fn capacity(&self) -> &BTreeMap<String, Quantity> {
        &self.capacity
    }

    /// Resources that exist only for the autoscaler, if any are given.
    #[must_use]
    pub fn virtual_capacity(&self) -> Option<&BTreeMap<String, Quantity>> {
        self.virtual_capacity.as_ref()
    }

    /// Resources of the node in one line: `cpu=2, memory=8Gi`.
    #[must_use]
    pub fn capacity_text(&self) -> String {
        let resources = self.capacity.iter().map(|(resource, quantity)| format!("{resource}={quantity}"));
        resources.collect::<Vec<_>>().join(", ")
    }

    /// Writes its resources over those of `template`.
    pub fn override_in(&self, template: &mut NodeTemplate) {
        template.capacity.extend(self.capacity.clone());
        template.virtual_capacity.extend(self.virtual_capacity.clone().unwrap_or_default());
    }
}
