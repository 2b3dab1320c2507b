//! Detects images of different products under one flavor: their names differ in the text of an inner wildcard, or in the
//! template of their lookups. The newest of them is not a newer build of the others.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::lookup::Lookup;
use wire::api::bounded_text::{Bound, named};

/// Maximum size of the list in an error.
const LIST: Bound = Bound { items: 10, bytes: 2000 };

/// The products of a flavor, by the template that matches only their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variants(BTreeMap<Arc<str>, Example>);

/// The first lookup and name of a product.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Example {
    lookup: String,
    name: String,
}

impl Variants {
    /// Adds the product of an image.
    pub(super) fn add(&mut self, variant: Arc<str>, lookup: &Lookup, name: &str) {
        self.0.entry(variant).or_insert_with(|| Example { lookup: lookup.name.clone(), name: name.to_owned() });
    }

    /// Adds the products of another lookup.
    pub(super) fn extend(&mut self, other: &Self) {
        for (variant, example) in &other.0 {
            self.0.entry(Arc::clone(variant)).or_insert_with(|| example.clone());
        }
    }

    /// Whether no image was found by name.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Verifies that there is at most one product.
    ///
    /// # Errors
    /// If there is more than one.
    pub(super) fn ensure_one(&self, flavor: &impl fmt::Display) -> Result<(), MixedVariants> {
        if self.0.len() < 2 {
            return Ok(());
        }
        let variant = |(template, example): (&Arc<str>, &Example)| {
            format!("lookup {}: {template} matches {}", example.lookup, example.name)
        };
        Err(MixedVariants { flavor: flavor.to_string(), variants: self.0.iter().map(variant).collect() })
    }
}

/// Images of different products have one flavor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct MixedVariants {
    flavor: String,
    variants: Vec<String>,
}

impl fmt::Display for MixedVariants {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "spec.lookupFormat: {} has images of {} variants. Write one of these patterns into each lookup, and another \
             image or custom field for each variant: {}",
            self.flavor,
            self.variants.len(),
            named(&self.variants, LIST)
        )
    }
}
