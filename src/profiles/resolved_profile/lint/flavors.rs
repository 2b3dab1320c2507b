//! Flavors that tie, that have the same capabilities, or that no machine type gets.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::finding::{Rule, count, machine_types, some_of};
use super::{Lint, Preference};
use crate::resolved_profile::resolution::{Availability, FlavorChoice, Ranking, ResolvedVersion, TypeGroup};
use crate::resolved_profile::selectable::{Defect, SelectableFlavor, SelectableVersion};
use decisions::provider::explanation::capabilities_text;
use wire::api::bounded_text::enumerated;
use wire::api::gardener::Capabilities;
use wire::capabilities::{FlavorVerdict, are_equal, with_defaults};

/// How machine types use the flavors of a version.
#[derive(Default)]
struct FlavorUse {
    chosen: BTreeSet<usize>,
    /// Flavors that machines can't start from, with the groups for which they are chosen.
    unusable: BTreeMap<usize, BTreeSet<usize>>,
    /// Flavors that tie, with the groups that get no image because of it.
    tied: BTreeMap<Vec<usize>, BTreeSet<usize>>,
}

impl FlavorUse {
    fn add(&mut self, other: &Self) {
        self.chosen.extend(&other.chosen);
        for (flavor, groups) in &other.unusable {
            self.unusable.entry(*flavor).or_default().extend(groups);
        }
        for (tied, groups) in &other.tied {
            self.tied.entry(tied.clone()).or_default().extend(groups);
        }
    }

    fn is_empty(&self) -> bool {
        self.chosen.is_empty() && self.unusable.is_empty() && self.tied.is_empty()
    }
}

impl Lint<'_> {
    /// Reports versions that no machine type can use, ties, equal flavors, and flavors that no machine type gets.
    pub(super) fn flavors(&mut self) {
        let mut known = HashMap::new();
        for resolved in self.resolution.versions().iter().filter(|version| !version.selectable.is_expired()) {
            let version = resolved.selectable;
            let uses = self.flavor_use(resolved, &mut known);
            if uses.is_empty() {
                self.unused(version);
                continue;
            }
            for (tied, groups) in &uses.tied {
                self.tie(version, tied, groups);
            }
            for (flavor, groups) in &uses.unusable {
                self.unusable(version, *flavor, groups);
            }
            let tied: BTreeSet<usize> = uses.tied.keys().flatten().copied().collect();
            let mut reported = tied.clone();
            for (earlier, later) in self.equal_flavors(resolved) {
                if !(tied.contains(&earlier) && tied.contains(&later)) {
                    self.identical(version, earlier, later);
                }
                reported.extend([earlier, later]);
            }
            for (flavor, selectable) in version.flavors.iter().enumerate() {
                let is_chosen = uses.chosen.contains(&flavor) || uses.unusable.contains_key(&flavor);
                if !is_chosen && !reported.contains(&flavor) && !has_empty_list(selectable) {
                    self.unreachable(resolved, flavor, selectable);
                }
            }
        }
    }

    /// `known` has the uses of flavors by ranking, because profiles have hundreds of versions with equal flavors.
    fn flavor_use(&self, version: &ResolvedVersion<'_>, known: &mut HashMap<Ranking, FlavorUse>) -> FlavorUse {
        let mut found = FlavorUse::default();
        for available in &version.availability {
            let ranking = self.resolution.ranking(available);
            found.add(known.entry(ranking).or_insert_with(|| self.flavor_use_in(available)));
        }
        found
    }

    fn flavor_use_in(&self, available: &Availability<'_>) -> FlavorUse {
        let mut found = FlavorUse::default();
        for group in self.resolution.groups() {
            match self.resolution.choice(group, available) {
                FlavorChoice::Chosen(flavor) => drop(found.chosen.insert(flavor)),
                FlavorChoice::Unusable(flavor) => {
                    found.unusable.entry(flavor).or_default().insert(group.number);
                }
                FlavorChoice::Tied(tied) => drop(found.tied.entry(tied).or_default().insert(group.number)),
                FlavorChoice::NoneFits | FlavorChoice::NoFlavors => {}
            }
        }
        found
    }

    fn unused(&mut self, version: &SelectableVersion) {
        if version.flavors.is_empty() {
            return;
        }
        let required = version.flavors.iter().map(|flavor| requirements(&flavor.capabilities)).collect::<Vec<_>>();
        let reason = format!(
            "No machine type of the profile fits one of its {}: {}.",
            count(version.flavors.len(), "flavor"),
            required.join("; ")
        );
        let advice = "Remove the version, or correct the capabilities of its flavors or of the machine types.";
        self.find(Rule::UnusedVersion, &version.path, version.title(), reason, advice);
    }

    fn identical(&mut self, version: &SelectableVersion, earlier: usize, later: usize) {
        let reason = format!(
            "Flavors {earlier} and {later} list the same capabilities ({}). No machine type is hurt today, because \
             others are preferred or none fits; one that would get them gets none.",
            requirements_of(version, later)
        );
        let advice = "Remove one of them, or name the capability that distinguishes them.";
        self.find(Rule::IdenticalFlavors, path(version, later), version.title(), reason, advice);
    }

    fn unusable(&mut self, version: &SelectableVersion, flavor: usize, groups: &BTreeSet<usize>) {
        let defect = version.flavors.get(flavor).and_then(|flavor| flavor.defect);
        let reason = format!(
            "Flavor {flavor} is chosen for {}, but {}: Gardener admits such machines, and the pool fails.",
            machine_types(&self.names(groups)),
            defect.map(Defect::text).unwrap_or_default()
        );
        let advice = match defect {
            Some(Defect::NoArchitecture) => "Name the architecture, also where spec.machineCapabilities has only one.",
            _ => "Name the image, or remove the flavor.",
        };
        self.find(Rule::UnusableFlavor, path(version, flavor), version.title(), reason, advice);
    }

    fn tie(&mut self, version: &SelectableVersion, tied: &[usize], groups: &BTreeSet<usize>) {
        let names = self.names(groups);
        let last = tied.last().copied().unwrap_or_default();
        let reason = format!(
            "Flavors {} list the same capabilities ({}), and nothing is better for {}: {}. Gardener admits such machines; \
             they get no image, and the pool fails.",
            enumerated(tied),
            requirements_of(version, last),
            count(names.len(), "machine type"),
            some_of(names)
        );
        let advice = "Remove all but one of these flavors, or name the capability that distinguishes them.";
        self.find(Rule::Tie, path(version, last), version.title(), reason, advice);
    }

    /// Pairs of flavors with the same capabilities and a common region.
    fn equal_flavors(&self, version: &ResolvedVersion<'_>) -> Vec<(usize, usize)> {
        let definitions = &self.resolved_profile().definitions;
        let defaulted: Vec<Capabilities> =
            version.selectable.flavors.iter().map(|flavor| with_defaults(&flavor.capabilities, definitions)).collect();
        let meet = |a: usize, b: usize| {
            let both = |available: &Availability<'_>| available.flavors.contains(&a) && available.flavors.contains(&b);
            version.availability.iter().any(both)
        };
        let mut pairs = Vec::new();
        for (later, capabilities) in defaulted.iter().enumerate() {
            let earlier = defaulted.iter().take(later).position(|earlier| are_equal(earlier, capabilities));
            pairs.extend(earlier.filter(|earlier| meet(*earlier, later)).map(|earlier| (earlier, later)));
        }
        pairs
    }

    fn unreachable(&mut self, version: &ResolvedVersion<'_>, flavor: usize, selectable: &SelectableFlavor) {
        let (reason, advice) = match self.preferred_to(version, flavor) {
            Some(Preference { group, winner, because }) => (
                format!(
                    "No pool gets it: where it fits ({}), flavor {winner} is preferred{because}.",
                    some_of(self.resolution.groups().get(group).into_iter().flat_map(TypeGroup::names))
                ),
                "Remove it, or narrow the flavor that is preferred so that both have machines of their own.",
            ),
            None => (
                format!(
                    "No pool gets it: no machine type of the profile has {}.",
                    requirements(&selectable.capabilities)
                ),
                "Remove it, or add the capability to the machine types that it is for.",
            ),
        };
        self.find(Rule::UnreachableFlavor, &selectable.path, version.selectable.title(), reason, advice);
    }

    /// The flavor that machine types get instead of this one, which fits them.
    fn preferred_to(&mut self, version: &ResolvedVersion<'_>, flavor: usize) -> Option<Preference> {
        for available in &version.availability {
            let Some(position) = available.flavors.iter().position(|listed| *listed == flavor) else { continue };
            let key = (self.resolution.ranking(available), position);
            let preference = match self.preferences.get(&key) {
                Some(preference) => preference.clone(),
                None => {
                    let preference = self.preferred_in(available, position);
                    self.preferences.insert(key, preference.clone());
                    preference
                }
            };
            if preference.is_some() {
                return preference;
            }
        }
        None
    }

    fn preferred_in(&self, available: &Availability<'_>, position: usize) -> Option<Preference> {
        for group in self.resolution.groups() {
            let decision = self.resolution.decision(group, available);
            let Some(FlavorVerdict::Outranked { step }) = decision.verdicts.get(position) else { continue };
            let Some(winner) = self.resolution.chosen(group, available) else { continue };
            let step = step.and_then(|step| decision.ranking.get(step));
            let because = step.map(|step| format!(", because it lists {}={}", step.capability, step.value));
            return Some(Preference { group: group.number, winner, because: because.unwrap_or_default() });
        }
        None
    }
}

fn has_empty_list(flavor: &SelectableFlavor) -> bool {
    flavor.capabilities.0.values().any(Vec::is_empty)
}

fn path(version: &SelectableVersion, flavor: usize) -> &str {
    version.flavors.get(flavor).map_or(version.path.as_str(), |flavor| flavor.path.as_str())
}

fn requirements_of(version: &SelectableVersion, flavor: usize) -> String {
    version.flavors.get(flavor).map(|flavor| requirements(&flavor.capabilities)).unwrap_or_default()
}

/// The capabilities that a flavor requires, as text.
pub(super) fn requirements(capabilities: &Capabilities) -> String {
    let text = capabilities_text(capabilities);
    if text.is_empty() { "every capability".to_owned() } else { text }
}
