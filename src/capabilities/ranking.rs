//! The best of several image flavors for a machine type.

use std::fmt;

use serde::Serialize;

use super::compatibility::{Mismatch, are_compatible, first_mismatch};
use super::defaults::values_of;
use crate::api::gardener::{Capabilities, CapabilityDefinition};

/// The flavor that was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Position of the flavor in the list.
    pub index: usize,
    /// The values that decided, in order. Only [`explain_ranking`] fills it in.
    pub trace: Vec<RankingStep>,
}

/// A preferred value that some of the remaining flavors list and others do not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RankingStep {
    /// Name of the capability.
    pub capability: String,
    /// The value.
    pub value: String,
    /// Positions of the flavors that list it and so remain.
    pub kept: Vec<usize>,
}

/// Why no flavor could be chosen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoFlavor {
    /// No flavor shares a value of every capability with the machine type.
    #[error("no compatible flavor found: {}", Reasons(mismatches))]
    NoneCompatible {
        /// What the flavor at the same position lacks.
        mismatches: Vec<Mismatch>,
    },
    /// Several flavors list the same defined values, so that nothing prefers one.
    #[error(
        "could not determine a unique capability flavor: flavors {} list the same capabilities; \
         this is usually attributed to an invalid CloudProfile",
        Positions(tied)
    )]
    Ambiguous {
        /// Positions of these flavors.
        tied: Vec<usize>,
    },
}

/// Chooses the flavor for a machine type (gardener-core section 1.4).
///
/// Of the compatible flavors those remain that list the first value of the first capability, if any does; of these the
/// ones that list the second value, and so on through all values of all capabilities in the order of the definitions.
/// The machine type does not take part in the ranking.
///
/// # Errors
/// When no flavor is compatible, or more than one is left at the end.
pub fn best_flavor<'a, F>(
    machine: &Capabilities,
    definitions: &[CapabilityDefinition],
    flavors: &'a [F],
    capabilities_of: impl Fn(&'a F) -> &'a Capabilities,
) -> Result<Choice, NoFlavor> {
    rank(machine, definitions, flavors, capabilities_of, |_, _, _| {})
}

/// Chooses like [`best_flavor`] and records the values that decided.
///
/// # Errors
/// Those of [`best_flavor`].
pub fn explain_ranking<'a, F>(
    machine: &Capabilities,
    definitions: &[CapabilityDefinition],
    flavors: &'a [F],
    capabilities_of: impl Fn(&'a F) -> &'a Capabilities,
) -> Result<Choice, NoFlavor> {
    let (trace, choice) = trace_ranking(machine, definitions, flavors, capabilities_of);
    Ok(Choice { trace, ..choice? })
}

/// Chooses like [`best_flavor`] and returns the values that decided also where no choice came of them.
pub fn trace_ranking<'a, F>(
    machine: &Capabilities,
    definitions: &[CapabilityDefinition],
    flavors: &'a [F],
    capabilities_of: impl Fn(&'a F) -> &'a Capabilities,
) -> (Vec<RankingStep>, Result<Choice, NoFlavor>) {
    let mut trace = Vec::new();
    let choice = rank(machine, definitions, flavors, capabilities_of, |definition, value, kept| {
        trace.push(RankingStep { capability: definition.name.clone(), value: value.to_owned(), kept: kept.to_vec() });
    });
    (trace, choice)
}

/// The choice itself. `decided` hears of every value that removed a flavor.
fn rank<'a, F>(
    machine: &Capabilities,
    definitions: &[CapabilityDefinition],
    flavors: &'a [F],
    capabilities_of: impl Fn(&'a F) -> &'a Capabilities,
    mut decided: impl FnMut(&CapabilityDefinition, &str, &[usize]),
) -> Result<Choice, NoFlavor> {
    let mut remaining: Vec<usize> = Vec::new();
    for (index, flavor) in flavors.iter().enumerate() {
        if are_compatible(machine, capabilities_of(flavor), definitions) {
            remaining.push(index);
        }
    }
    if remaining.is_empty() {
        return Err(NoFlavor::NoneCompatible {
            mismatches: flavors
                .iter()
                .filter_map(|flavor| first_mismatch(machine, capabilities_of(flavor), definitions))
                .collect(),
        });
    }
    for definition in definitions {
        for value in &definition.values {
            if let [index] = remaining[..] {
                return Ok(chosen(index));
            }
            let lists = |index: &usize| {
                flavors.get(*index).is_some_and(|flavor| values_of(capabilities_of(flavor), definition).contains(value))
            };
            let count = remaining.iter().filter(|index| lists(index)).count();
            if count > 0 && count < remaining.len() {
                remaining.retain(lists);
                decided(definition, value, &remaining);
            }
        }
    }
    match remaining[..] {
        [index] => Ok(chosen(index)),
        _ => Err(NoFlavor::Ambiguous { tied: remaining }),
    }
}

fn chosen(index: usize) -> Choice {
    Choice { index, trace: Vec::new() }
}

/// Mismatches in one line, each with the position of its flavor.
struct Reasons<'a>(&'a [Mismatch]);

impl fmt::Display for Reasons<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return formatter.write_str("the image version has no flavors");
        }
        for (index, mismatch) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(formatter, "{separator}flavor {index}: {mismatch}")?;
        }
        Ok(())
    }
}

/// Positions in one line: `0, 2 and 5`.
struct Positions<'a>(&'a [usize]);

impl fmt::Display for Positions<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, index) in self.0.iter().enumerate() {
            let separator = match place {
                0 => "",
                _ if place + 1 == self.0.len() => " and ",
                _ => ", ",
            };
            write!(formatter, "{separator}{index}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entries(text: &str) -> impl Iterator<Item = (&str, Vec<String>)> {
        text.split_whitespace().map(|entry| {
            let (name, values) = entry.split_once('=').unwrap();
            let values = values.split(',').filter(|value| !value.is_empty());
            (name, values.map(str::to_owned).collect())
        })
    }

    /// `architecture=amd64,arm64 hyper=gen2` as capabilities.
    pub(in crate::capabilities) fn capabilities(text: &str) -> Capabilities {
        entries(text).collect()
    }

    /// The same notation as definitions.
    pub(in crate::capabilities) fn definitions(text: &str) -> Vec<CapabilityDefinition> {
        entries(text).map(|(name, values)| CapabilityDefinition { name: name.to_owned(), values }).collect()
    }

    fn values() -> impl Strategy<Value = Vec<String>> {
        prop::collection::vec("[w-z]", 0..4)
    }

    pub(in crate::capabilities) fn any_capabilities() -> impl Strategy<Value = Capabilities> {
        prop::collection::btree_map("[a-d]", values(), 0..4).prop_map(Capabilities)
    }

    pub(in crate::capabilities) fn any_definitions() -> impl Strategy<Value = Vec<CapabilityDefinition>> {
        prop::collection::btree_map("[a-d]", values(), 0..4).prop_map(|definitions| {
            definitions.into_iter().rev().map(|(name, values)| CapabilityDefinition { name, values }).collect()
        })
    }

    const DEFINITIONS: &str = "architecture=amd64,arm64 hyper=gen2,gen1 net=accelerated,standard";

    fn best(machine: &str, flavors: &[&str]) -> Result<usize, NoFlavor> {
        let flavors: Vec<_> = flavors.iter().map(|text| capabilities(text)).collect();
        best_flavor(&capabilities(machine), &definitions(DEFINITIONS), &flavors, |flavor| flavor)
            .map(|choice| choice.index)
    }

    #[test]
    fn decides_the_worked_examples_of_the_specification() {
        let amd64 = "architecture=amd64";
        assert_eq!(best(amd64, &["hyper=gen1 net=accelerated", "hyper=gen2 net=standard"]), Ok(1));
        assert_eq!(best(amd64, &["hyper=gen2", "hyper=gen2,gen1"]), Ok(1), "a superset wins");
        assert_eq!(best(amd64, &["", "hyper=gen2"]), Ok(0), "omitted means all");
        assert_eq!(best(amd64, &["hyper=gen1", "hyper=gen1", "hyper=gen2"]), Ok(2), "losers may tie");
        assert_eq!(best("hyper=gen1", &["hyper=gen1", "hyper=gen2,gen1"]), Ok(1), "the machine does not rank");
        assert_eq!(
            best(amd64, &["hyper=gen2,gen1", "net=standard,accelerated"]),
            Err(NoFlavor::Ambiguous { tied: vec![0, 1] })
        );
    }

    #[test]
    fn errors_help_the_operator() {
        let error = best("hyper=gen2", &["hyper=gen1", "net="]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no compatible flavor found: flavor 0: needs hyper ∩ {gen2}, image has {gen1}; \
             flavor 1: needs net ∩ {accelerated, standard}, image has {}"
        );
        assert_eq!(
            best("", &[]).unwrap_err().to_string(),
            "no compatible flavor found: the image version has no flavors"
        );
        assert_eq!(
            best("", &["hyper=gen1", "", "", ""]).unwrap_err().to_string(),
            "could not determine a unique capability flavor: flavors 1, 2 and 3 list the same capabilities; \
             this is usually attributed to an invalid CloudProfile"
        );
    }

    #[test]
    fn the_explanation_lists_the_values_that_decided() {
        let flavors = ["net=standard", "hyper=gen1", "hyper=gen2"].map(capabilities);
        let choice = explain_ranking(&capabilities(""), &definitions(DEFINITIONS), &flavors, |flavor| flavor).unwrap();
        assert_eq!(choice.index, 0);
        let step = |value: &str, kept: &[usize]| RankingStep {
            capability: "hyper".to_owned(),
            value: value.to_owned(),
            kept: kept.to_vec(),
        };
        assert_eq!(choice.trace, [step("gen2", &[0, 2]), step("gen1", &[0])]);
    }

    /// The other way to say it: one bit for each defined value, the greatest string of bits wins.
    fn by_bits(
        machine: &Capabilities,
        definitions: &[CapabilityDefinition],
        flavors: &[Capabilities],
    ) -> Option<usize> {
        let bits = |flavor: &Capabilities| -> Vec<bool> {
            let flavor = crate::capabilities::with_defaults(flavor, definitions);
            definitions
                .iter()
                .flat_map(|definition| definition.values.iter().map(move |value| (&definition.name, value)))
                .map(|(name, value)| flavor.0[name].contains(value))
                .collect()
        };
        let compatible: Vec<_> =
            (0..flavors.len()).filter(|index| are_compatible(machine, &flavors[*index], definitions)).collect();
        let best = compatible.iter().map(|index| bits(&flavors[*index])).max()?;
        let mut winners = compatible.into_iter().filter(|index| bits(&flavors[*index]) == best);
        winners.next().filter(|_| winners.next().is_none())
    }

    proptest! {
        #[test]
        fn ranking_takes_the_greatest_string_of_bits(
            machine in any_capabilities(),
            definitions in any_definitions(),
            flavors in prop::collection::vec(any_capabilities(), 0..6),
        ) {
            let best = best_flavor(&machine, &definitions, &flavors, |flavor| flavor);
            let explained = explain_ranking(&machine, &definitions, &flavors, |flavor| flavor);
            prop_assert_eq!(best.as_ref().ok().map(|choice| choice.index), by_bits(&machine, &definitions, &flavors));
            prop_assert_eq!(best.map(|choice| choice.index), explained.map(|choice| choice.index));
        }
    }
}
