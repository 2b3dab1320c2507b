//! The node template in the provider config of a pool, which overrides the template of the pool.

use crate::provider::document::documents;
use std::collections::BTreeMap;

use wire::api::gardener::NodeTemplate;
use wire::api::gotext::quantity::Quantity;

documents! { strict
    /// A node template inside a strict document.
    #[derive(PartialEq, Eq)]
    pub struct StrictNodeTemplate {
        /// Resources of the node.
        pub capacity: BTreeMap<String, Quantity>,
        /// Resources that exist only for the autoscaler; an empty object differs from an absent one.
        pub virtual_capacity: Option<BTreeMap<String, Quantity>>,
    }
}

impl StrictNodeTemplate {
    /// Resources of the node in one line: `cpu=2, memory=8Gi`.
    #[must_use]
    pub fn capacity_text(&self) -> String {
        let resources = self.capacity.iter().map(|(resource, quantity)| format!("{resource}={quantity}"));
        resources.collect::<Vec<_>>().join(", ")
    }

    /// Overrides the resources of `template`.
    pub fn override_in(&self, template: &mut NodeTemplate) {
        let Self { capacity, virtual_capacity } = self.clone();
        template.capacity.extend(capacity);
        template.virtual_capacity.extend(virtual_capacity.unwrap_or_default());
    }
}
