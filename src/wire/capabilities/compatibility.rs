//! Checks whether two sides share a value of every capability.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use serde::Serialize;

use super::defaults::values_of;
use crate::api::gardener::{Capabilities, CapabilityDefinition};

/// The shared values of every name that both sides list, without duplicates and in the order of `a`.
///
/// A name without shared values gets an empty list. In Go, the order of the values is undefined.
pub fn intersection(a: &Capabilities, b: &Capabilities) -> Capabilities {
    let common = |values: &[String], others: &[String]| {
        let mut common: Vec<String> = Vec::new();
        for value in values {
            if others.contains(value) && !common.contains(value) {
                common.push(value.clone());
            }
        }
        common
    };
    a.0.iter().filter_map(|(name, values)| Some((name.as_str(), common(values, b.values(name)?)))).collect()
}

/// Whether both sides share a value of every defined capability. Symmetric.
///
/// A side that does not list a capability has all its values. Undefined capabilities are ignored.
pub fn are_compatible(a: &Capabilities, b: &Capabilities, definitions: &[CapabilityDefinition]) -> bool {
    differing(a, b, definitions).next().is_none()
}

/// Whether one of the flavors of an image version fits a machine type. A version without flavors fits every machine
/// type, even if the machine type has an empty list for a capability.
pub fn is_supported_by_image(
    machine: &Capabilities,
    flavors: &[Capabilities],
    definitions: &[CapabilityDefinition],
) -> bool {
    flavors.is_empty() || flavors.iter().any(|flavor| are_compatible(machine, flavor, definitions))
}

/// The first defined capability without a shared value: `a` is the machine, `b` the image.
pub(super) fn first_mismatch(
    a: &Capabilities,
    b: &Capabilities,
    definitions: &[CapabilityDefinition],
) -> Option<Mismatch> {
    differing(a, b, definitions).next().map(|definition| Mismatch::of(a, b, definition))
}

/// Every defined capability without a shared value, in the order of the definitions.
pub fn mismatches(a: &Capabilities, b: &Capabilities, definitions: &[CapabilityDefinition]) -> Vec<Mismatch> {
    differing(a, b, definitions).map(|definition| Mismatch::of(a, b, definition)).collect()
}

fn differing<'a>(
    a: &'a Capabilities,
    b: &'a Capabilities,
    definitions: &'a [CapabilityDefinition],
) -> impl Iterator<Item = &'a CapabilityDefinition> {
    definitions.iter().filter(|definition| {
        let selectable = values_of(b, definition);
        !values_of(a, definition).iter().any(|value| selectable.contains(value))
    })
}

/// Whether both sides have the same names with the same values, regardless of order and duplicates.
pub fn are_equal(a: &Capabilities, b: &Capabilities) -> bool {
    a.0.len() == b.0.len()
        && a.0.iter().all(|(name, values)| b.values(name).is_some_and(|others| are_same_values(values, others)))
}

/// Whether both sides are equal for every defined capability: [`are_equal`] of both
/// [with defaults](super::with_defaults), without allocating them.
pub fn mean_the_same(a: &Capabilities, b: &Capabilities, definitions: &[CapabilityDefinition]) -> bool {
    // If a name is defined twice, the later definition wins.
    let mut last = definitions
        .iter()
        .enumerate()
        .filter(|(index, definition)| !definitions.iter().skip(index + 1).any(|later| later.name == definition.name));
    last.all(|(_, definition)| are_same_values(values_of(a, definition), values_of(b, definition)))
}

/// Computes the meaning of capabilities, to compare many of them. For the same definitions, meanings are equal if and
/// only if [`mean_the_same`] holds.
#[derive(Debug)]
pub struct Meanings<'a> {
    /// The values of a side that does not name the capability.
    defaults: HashMap<&'a str, BTreeSet<&'a str>>,
}

/// The meaning of one side: the values of the capabilities that differ from the defaults.
pub type Meaning<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

impl<'a> Meanings<'a> {
    /// For these definitions.
    #[must_use]
    pub fn new(definitions: &'a [CapabilityDefinition]) -> Self {
        let default = |definition: &'a CapabilityDefinition| (definition.name.as_str(), as_set(&definition.values));
        Self { defaults: definitions.iter().map(default).collect() }
    }

    /// The meaning of a side. It takes as much memory as the side itself.
    #[must_use]
    pub fn of<'b>(&self, side: &'b Capabilities) -> Meaning<'b> {
        let named = side.0.iter().map(|(name, values)| (name.as_str(), as_set(values)));
        named.filter(|(name, values)| self.defaults.get(name).is_some_and(|default| default != values)).collect()
    }
}

fn as_set(values: &[String]) -> BTreeSet<&str> {
    values.iter().map(String::as_str).collect()
}

fn are_same_values(values: &[String], others: &[String]) -> bool {
    let all_in = |values: &[String], others: &[String]| values.iter().all(|value| others.contains(value));
    all_in(values, others) && all_in(others, values)
}

/// A capability without a value shared by machine and image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// Name of the capability.
    pub capability: String,
    /// Values of the machine.
    #[serde(rename = "wanted")]
    pub required: Vec<String>,
    /// Values of the image.
    #[serde(rename = "offered")]
    pub provided: Vec<String>,
}

impl Mismatch {
    fn of(a: &Capabilities, b: &Capabilities, definition: &CapabilityDefinition) -> Self {
        let [required, provided] = [a, b].map(|side| values_of(side, definition).to_vec());
        Self { capability: definition.name.clone(), required, provided }
    }
}

impl fmt::Display for Mismatch {
    /// Message for operators: `machine type requires hypervisorType=gen2; image supports gen1`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let provided = if self.provided.is_empty() { "none".to_owned() } else { self.provided.join(", ") };
        let required = self.required.join(" or ");
        write!(formatter, "machine type requires {}={required}; image supports {provided}", self.capability)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capabilities::ranking::tests::{any_capabilities, any_definitions};
    use crate::capabilities::with_defaults;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_means_the_same_is_equal_with_defaults(
            a in any_capabilities(), b in any_capabilities(), definitions in any_definitions()
        ) {
            let equal = are_equal(&with_defaults(&a, &definitions), &with_defaults(&b, &definitions));
            prop_assert_eq!(mean_the_same(&a, &b, &definitions), equal);
        }

        #[test]
        fn compatibility_is_symmetric_and_equals_the_intersection_of_the_defaulted_maps(
            a in any_capabilities(), b in any_capabilities(), definitions in any_definitions()
        ) {
            let compatible = are_compatible(&a, &b, &definitions);
            prop_assert_eq!(compatible, are_compatible(&b, &a, &definitions));
            prop_assert_eq!(compatible, first_mismatch(&a, &b, &definitions).is_none());
            let common = intersection(&with_defaults(&a, &definitions), &with_defaults(&b, &definitions));
            prop_assert_eq!(compatible, common.0.values().all(|values| !values.is_empty()));
        }
    }
}
