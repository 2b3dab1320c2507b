//! Flavors that tie, that can run the same, and that nobody gets.

use std::collections::{BTreeMap, BTreeSet};

use super::Lint;
use super::finding::{Rule, Severity, and, count, some_of};
use crate::api::gardener::Capabilities;
use crate::capabilities::FlavorVerdict;
use crate::capabilities::{Classification, are_equal, with_defaults};
use crate::offer::offered::{Defect, OfferedFlavor, OfferedVersion};
use crate::offer::resolution::{Availability, Outcome};
use crate::provider::explanation::capabilities_text;

/// What becomes of the flavors of one version.
#[derive(Default)]
struct Fates {
    chosen: BTreeSet<usize>,
    /// Flavors that machines can't start from, with the groups that would.
    unusable: BTreeMap<usize, BTreeSet<usize>>,
    /// Flavors that tie, with the groups that get nothing because of it.
    tied: BTreeMap<Vec<usize>, BTreeSet<usize>>,
}

impl Lint<'_> {
    /// Finds versions that no machine type can use; their positions in the offer.
    pub(super) fn versions_without_types(&mut self) -> BTreeSet<usize> {
        let offer = self.offer();
        let is_unused = |position: &usize| {
            let fates = self.fates(*position);
            let version = offer.images.get(*position);
            let has_flavors = version.is_some_and(|version| !version.flavors.is_empty());
            has_flavors
                && fates.chosen.is_empty()
                && fates.tied.is_empty()
                && fates.unusable.is_empty()
                && !self.is_over(*position)
        };
        let unused: BTreeSet<usize> = (0..offer.images.len()).filter(is_unused).collect();
        for version in unused.iter().filter_map(|position| offer.images.get(*position)) {
            let wants = version.flavors.iter().map(|flavor| wants(&flavor.capabilities)).collect::<Vec<_>>();
            let reason = format!(
                "No machine type of the profile fits one of its {}: {}.",
                count(version.flavors.len(), "flavor"),
                wants.join("; ")
            );
            let advice = "Remove the version, or correct the capabilities of its flavors or of the machine types.";
            self.find(Severity::Warning, Rule::UnusedVersion, &version.path, version.title(), reason, advice);
        }
        unused
    }

    /// Finds ties, equal flavors and those that nobody gets; versions that are `unused` as a whole are left out.
    pub(super) fn flavors(&mut self, unused: &BTreeSet<usize>) {
        let offer = self.offer();
        for (position, version) in offer.images.iter().enumerate() {
            if self.is_over(position) || unused.contains(&position) {
                continue;
            }
            let fates = self.fates(position);
            for (tied, groups) in &fates.tied {
                self.tie(version, tied, groups);
            }
            for (flavor, groups) in &fates.unusable {
                self.unusable(version, *flavor, groups);
            }
            let tied: BTreeSet<usize> = fates.tied.keys().flatten().copied().collect();
            let equal = self.equal_flavors(position, version);
            for (earlier, later) in
                equal.iter().filter(|(earlier, later)| !(tied.contains(earlier) && tied.contains(later)))
            {
                let reason = format!(
                    "Flavors {earlier} and {later} list the same capabilities ({}). No machine type is hurt today, because \
                     others are preferred or none fits; one that would get them gets none.",
                    wants_of(version, *later)
                );
                let advice = "Remove one of them, or name the capability that tells them apart.";
                self.find(
                    Severity::Warning,
                    Rule::IdenticalFlavors,
                    path(version, *later),
                    version.title(),
                    reason,
                    advice,
                );
            }
            let in_pairs: BTreeSet<usize> = equal.iter().flat_map(|(earlier, later)| [*earlier, *later]).collect();
            for (flavor, offered) in version.flavors.iter().enumerate() {
                let is_told_otherwise = tied.contains(&flavor) || in_pairs.contains(&flavor) || has_empty_list(offered);
                let is_chosen = fates.chosen.contains(&flavor) || fates.unusable.contains_key(&flavor);
                if !is_chosen && !is_told_otherwise {
                    self.unreachable(position, version, flavor, offered);
                }
            }
        }
    }

    /// Whether a version has expired: nothing about it matters any more.
    pub(super) fn is_over(&self, version: usize) -> bool {
        let version = self.offer().images.get(version);
        version.is_none_or(|version| version.classification == Classification::Expired)
    }

    fn fates(&self, version: usize) -> Fates {
        let mut fates = Fates::default();
        for available in self.resolution.availability(version) {
            for group in 0..self.resolution.groups().len() {
                match self.resolution.outcome(group, available) {
                    Outcome::Chosen(flavor) => drop(fates.chosen.insert(flavor)),
                    Outcome::Unusable(flavor) => drop(fates.unusable.entry(flavor).or_default().insert(group)),
                    Outcome::Tied(tied) => drop(fates.tied.entry(tied).or_default().insert(group)),
                    Outcome::NoneFits | Outcome::NoFlavors => {}
                }
            }
        }
        fates
    }

    fn unusable(&mut self, version: &OfferedVersion, flavor: usize, groups: &BTreeSet<usize>) {
        let names = || groups.iter().flat_map(|group| self.resolution.type_names(*group));
        let defect = version.flavors.get(flavor).and_then(|flavor| flavor.defect);
        let reason = format!(
            "Flavor {flavor} is chosen for {} ({}), but {}: Gardener admits such machines, and the pool fails.",
            count(names().count(), "machine type"),
            some_of(names()),
            defect.map(Defect::text).unwrap_or_default()
        );
        let advice = match defect {
            Some(Defect::NoArchitecture) => "Name the architecture, also where spec.machineCapabilities has only one.",
            _ => "Name the image, or remove the flavor.",
        };
        self.find(Severity::Error, Rule::UnusableFlavor, path(version, flavor), version.title(), reason, advice);
    }

    fn tie(&mut self, version: &OfferedVersion, tied: &[usize], groups: &BTreeSet<usize>) {
        let names = || groups.iter().flat_map(|group| self.resolution.type_names(*group));
        let last = tied.last().copied().unwrap_or_default();
        let reason = format!(
            "Flavors {} list the same capabilities ({}), and nothing is better for {}: {}. Gardener admits such machines; \
             they get no image, and the pool fails.",
            and(tied),
            wants_of(version, last),
            count(names().count(), "machine type"),
            some_of(names())
        );
        let advice = "Remove all but one of these flavors, or name the capability that tells them apart.";
        self.find(Severity::Error, Rule::Tie, path(version, last), version.title(), reason, advice);
    }

    /// Pairs of flavors that list the same and meet in a region.
    fn equal_flavors(&self, position: usize, version: &OfferedVersion) -> Vec<(usize, usize)> {
        let definitions = &self.offer().definitions;
        let defaulted: Vec<Capabilities> =
            version.flavors.iter().map(|flavor| with_defaults(&flavor.capabilities, definitions)).collect();
        let meet = |a: usize, b: usize| {
            let both = |available: &Availability| available.flavors.contains(&a) && available.flavors.contains(&b);
            self.resolution.availability(position).iter().any(both)
        };
        let mut pairs = Vec::new();
        for (later, capabilities) in defaulted.iter().enumerate() {
            let earlier = defaulted.iter().take(later).position(|earlier| are_equal(earlier, capabilities));
            pairs.extend(earlier.filter(|earlier| meet(*earlier, later)).map(|earlier| (earlier, later)));
        }
        pairs
    }

    fn unreachable(&mut self, position: usize, version: &OfferedVersion, flavor: usize, offered: &OfferedFlavor) {
        let (reason, advice) = match self.preferred_to(position, flavor) {
            Some((group, winner, because)) => (
                format!(
                    "Nobody gets it: where it fits ({}), flavor {winner} is preferred{because}.",
                    some_of(self.resolution.type_names(group))
                ),
                "Remove it, or narrow the flavor that is preferred so that both have machines of their own.",
            ),
            None => (
                format!("Nobody gets it: no machine type of the profile has {}.", wants(&offered.capabilities)),
                "Remove it, or add the capability to the machine types that it is for.",
            ),
        };
        self.find(Severity::Warning, Rule::UnreachableFlavor, &offered.path, version.title(), reason, advice);
    }

    /// A group that the flavor fits, what the group gets instead, and the value that decided.
    fn preferred_to(&self, position: usize, flavor: usize) -> Option<(usize, usize, String)> {
        for available in self.resolution.availability(position) {
            let Some(place) = available.flavors.iter().position(|known| *known == flavor) else { continue };
            for group in 0..self.resolution.groups().len() {
                let decision = self.resolution.decision(group, available);
                let Some(FlavorVerdict::Outranked { step }) = decision.verdicts.get(place) else { continue };
                let Outcome::Chosen(winner) = self.resolution.outcome(group, available) else { continue };
                let step = step.and_then(|step| decision.ranking.get(step));
                let because = step.map(|step| format!(", because it lists {}={}", step.capability, step.value));
                return Some((group, winner, because.unwrap_or_default()));
            }
        }
        None
    }
}

fn has_empty_list(flavor: &OfferedFlavor) -> bool {
    flavor.capabilities.0.values().any(Vec::is_empty)
}

fn path(version: &OfferedVersion, flavor: usize) -> &str {
    version.flavors.get(flavor).map_or(version.path.as_str(), |flavor| flavor.path.as_str())
}

fn wants_of(version: &OfferedVersion, flavor: usize) -> String {
    version.flavors.get(flavor).map(|flavor| wants(&flavor.capabilities)).unwrap_or_default()
}

/// What a flavor runs on, in words.
pub(super) fn wants(capabilities: &Capabilities) -> String {
    let text = capabilities_text(capabilities);
    if text.is_empty() { "every capability".to_owned() } else { text }
}
