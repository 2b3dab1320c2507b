//! Selects the best image flavor for a machine type.

use std::fmt;

use serde::Serialize;

use super::compatibility::{Mismatch, are_compatible, first_mismatch, mismatches};
use super::defaults::values_of;
use crate::api::bounded_text::enumerated;
use crate::api::gardener::{Capabilities, CapabilityDefinition};

/// The selection of a flavor for a machine type with its reasons, or the reason why none was selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranking {
    /// Position of the selected flavor.
    pub chosen: Result<usize, NoFlavor>,
    /// The values that decided, in order.
    pub steps: Vec<RankingStep>,
    /// Result for each flavor.
    pub verdicts: Vec<FlavorVerdict>,
}

/// The result for a candidate flavor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "is")]
pub enum FlavorVerdict {
    /// The flavor was selected.
    Chosen,
    /// The flavor fits, but another one lists a preferred value.
    Outranked {
        /// The ranking step that eliminated it.
        #[serde(skip_serializing_if = "Option::is_none")]
        step: Option<usize>,
    },
    /// The flavor fits, but another one lists the same values.
    Tied,
    /// The flavor does not fit the machine type, or has no image reference.
    Rejected {
        /// Every capability without a shared value; empty if the flavor has no image reference.
        mismatches: Vec<Mismatch>,
    },
    /// The flavor fits, but so does an earlier one.
    NotReached,
    /// The flavor was not compared, because the machine type is unknown.
    NotCompared,
}

/// A preferred value that only some of the remaining flavors list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RankingStep {
    /// Name of the capability.
    pub capability: String,
    /// Preferred value.
    pub value: String,
    /// Positions of the flavors that list the value and remain.
    pub kept: Vec<usize>,
}

/// Reason why no flavor was selected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoFlavor {
    /// No flavor shares a value of every capability with the machine type.
    #[error("no compatible flavor found: {}", Reasons(mismatches))]
    NoneCompatible {
        /// First mismatch of the flavor at the same position.
        mismatches: Vec<Mismatch>,
    },
    /// Several flavors list the same defined values, so none is preferred.
    #[error(
        "could not determine a unique capability flavor: flavors {} list the same capabilities; \
         this is usually attributed to an invalid CloudProfile",
        enumerated(tied)
    )]
    Ambiguous {
        /// Positions of the flavors.
        tied: Vec<usize>,
    },
}

/// Selects the flavor for a machine type, by position.
///
/// Among the compatible flavors, those that list the first value of the first capability remain, if there are any. The
/// same applies to the second value, and so on through all values of all capabilities in the order of the definitions.
/// The values of the machine type don't affect the ranking.
///
/// # Errors
/// If no flavor is compatible, or more than one remains.
pub fn best_flavor<'a, F>(
    machine: &Capabilities,
    definitions: &[CapabilityDefinition],
    flavors: &'a [F],
    capabilities_of: impl Fn(&'a F) -> &'a Capabilities,
) -> Result<usize, NoFlavor> {
    rank(machine, definitions, flavors, capabilities_of, |_, _, _| {})
}

/// Selects like [`best_flavor`], with the reasons.
pub fn rank_flavors<'a, F>(
    machine: &Capabilities,
    definitions: &[CapabilityDefinition],
    flavors: &'a [F],
    capabilities_of: impl Fn(&'a F) -> &'a Capabilities,
) -> Ranking {
    let mut steps = Vec::new();
    let chosen = rank(machine, definitions, flavors, &capabilities_of, |definition, value, kept| {
        steps.push(RankingStep { capability: definition.name.clone(), value: value.to_owned(), kept: kept.to_vec() });
    });
    let verdict = |(position, flavor)| {
        let mismatches = mismatches(machine, capabilities_of(flavor), definitions);
        match &chosen {
            _ if !mismatches.is_empty() => FlavorVerdict::Rejected { mismatches },
            Ok(chosen) if *chosen == position => FlavorVerdict::Chosen,
            Err(NoFlavor::Ambiguous { tied }) if tied.contains(&position) => FlavorVerdict::Tied,
            _ => FlavorVerdict::Outranked { step: steps.iter().position(|step| !step.kept.contains(&position)) },
        }
    };
    let verdicts = flavors.iter().enumerate().map(verdict).collect();
    Ranking { chosen, verdicts, steps }
}

/// Performs the selection, and calls `decided` for every value that eliminates a flavor.
fn rank<'a, F>(
    machine: &Capabilities,
    definitions: &[CapabilityDefinition],
    flavors: &'a [F],
    capabilities_of: impl Fn(&'a F) -> &'a Capabilities,
    mut decided: impl FnMut(&CapabilityDefinition, &str, &[usize]),
) -> Result<usize, NoFlavor> {
    let fits = |(_, flavor): &(usize, &'a F)| are_compatible(machine, capabilities_of(flavor), definitions);
    let mut remaining: Vec<usize> = flavors.iter().enumerate().filter(fits).map(|(index, _)| index).collect();
    if remaining.is_empty() {
        let mismatches =
            flavors.iter().filter_map(|flavor| first_mismatch(machine, capabilities_of(flavor), definitions));
        return Err(NoFlavor::NoneCompatible { mismatches: mismatches.collect() });
    }
    for definition in definitions {
        for value in &definition.values {
            if let [index] = remaining[..] {
                return Ok(index);
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
        [index] => Ok(index),
        _ => Err(NoFlavor::Ambiguous { tied: remaining }),
    }
}

/// How much [`best_flavor`] prefers a flavor: for each defined value in order, whether the flavor lists it. Of the
/// compatible flavors the greatest wins, and equal ones tie. Rules that compare many orders use it, because it does not
/// depend on the machine type.
#[must_use]
pub fn preference(flavor: &Capabilities, definitions: &[CapabilityDefinition]) -> Vec<bool> {
    let mut lists = Vec::new();
    for definition in definitions {
        let values = values_of(flavor, definition);
        lists.extend(definition.values.iter().map(|value| values.contains(value)));
    }
    lists
}

/// The flavor that the text of the proposal (GEP-33) chooses: it compares the most preferred values of all capabilities
/// first, then the second ones, and so on. Gardener's code does not do that, so this is only for explanations. `None` if no
/// flavor fits, or several remain.
pub fn proposed_flavor<'a, F>(
    machine: &Capabilities,
    definitions: &[CapabilityDefinition],
    flavors: &'a [F],
    capabilities_of: impl Fn(&'a F) -> &'a Capabilities,
) -> Option<usize> {
    let fits = |(_, flavor): &(usize, &'a F)| are_compatible(machine, capabilities_of(flavor), definitions);
    let mut remaining: Vec<usize> = flavors.iter().enumerate().filter(fits).map(|(index, _)| index).collect();
    let most = definitions.iter().map(|definition| definition.values.len()).max().unwrap_or_default();
    for rank in 0..most {
        for definition in definitions {
            let Some(value) = definition.values.get(rank) else { continue };
            let lists = |index: &usize| {
                flavors.get(*index).is_some_and(|flavor| values_of(capabilities_of(flavor), definition).contains(value))
            };
            if remaining.iter().any(lists) {
                remaining.retain(lists);
            }
        }
    }
    match remaining[..] {
        [index] => Some(index),
        _ => None,
    }
}

/// Formats mismatches in one line, each with the position of its flavor.
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

    /// Parses `architecture=amd64,arm64 hyper=gen2` as capabilities.
    pub(in crate::capabilities) fn capabilities(text: &str) -> Capabilities {
        entries(text).collect()
    }

    /// Parses the same notation as definitions.
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
    }

    #[test]
    fn errors_help_the_operator() {
        let error = best("hyper=gen2", &["hyper=gen1", "net="]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no compatible flavor found: flavor 0: machine type requires hyper=gen2; image supports gen1; \
             flavor 1: machine type requires net=accelerated or standard; image supports none"
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
        let ranking = rank_flavors(&capabilities(""), &definitions(DEFINITIONS), &flavors, |flavor| flavor);
        assert_eq!(ranking.chosen, Ok(0));
        let step = |value: &str, kept: &[usize]| RankingStep {
            capability: "hyper".to_owned(),
            value: value.to_owned(),
            kept: kept.to_vec(),
        };
        assert_eq!(ranking.steps, [step("gen2", &[0, 2]), step("gen1", &[0])]);
        let outranked = |step| FlavorVerdict::Outranked { step: Some(step) };
        assert_eq!(ranking.verdicts, [FlavorVerdict::Chosen, outranked(0), outranked(1)]);
    }

    /// An equivalent algorithm.
    fn by_bits(
        machine: &Capabilities,
        definitions: &[CapabilityDefinition],
        flavors: &[Capabilities],
    ) -> Option<usize> {
        let bits = |flavor: &Capabilities| preference(flavor, definitions);
        let compatible: Vec<_> =
            (0..flavors.len()).filter(|index| are_compatible(machine, &flavors[*index], definitions)).collect();
        let best = compatible.iter().map(|index| bits(&flavors[*index])).max()?;
        let mut winners = compatible.into_iter().filter(|index| bits(&flavors[*index]) == best);
        let winner = winners.next();
        if winners.next().is_none() { winner } else { None }
    }

    proptest! {
        #[test]
        fn ranking_takes_the_greatest_string_of_bits(
            machine in any_capabilities(),
            definitions in any_definitions(),
            flavors in prop::collection::vec(any_capabilities(), 0..6),
        ) {
            let best = best_flavor(&machine, &definitions, &flavors, |flavor| flavor);
            let ranking = rank_flavors(&machine, &definitions, &flavors, |flavor| flavor);
            prop_assert_eq!(best.as_ref().ok().copied(), by_bits(&machine, &definitions, &flavors));
            let chosen = ranking.verdicts.iter().position(|verdict| *verdict == FlavorVerdict::Chosen);
            prop_assert_eq!(chosen, ranking.chosen.as_ref().ok().copied());
            prop_assert_eq!(best, ranking.chosen);
        }
    }

    #[test]
    fn proposal_compares_first_values_first() {
        let definitions = definitions("a=1,2,3 b=x,y");
        let flavors = ["a=1,3 b=x", "a=1,2 b=y"].map(capabilities);
        let machine = capabilities("");
        assert_eq!(best_flavor(&machine, &definitions, &flavors, |flavor| flavor), Ok(1));
        assert_eq!(proposed_flavor(&machine, &definitions, &flavors, |flavor| flavor), Some(0));
        let same = ["a=1 b=x", "a=1 b=x"].map(capabilities);
        assert_eq!(proposed_flavor(&machine, &definitions, &same, |flavor| flavor), None);
        assert_eq!(proposed_flavor(&capabilities("a=2"), &definitions, &flavors, |flavor| flavor), Some(1));
    }
}
