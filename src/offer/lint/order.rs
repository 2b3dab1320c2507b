//! Choices that hang on the order of capabilities or of their values alone.
//!
//! Another order gives the same classes other images: the nodes there are keep theirs, every new one differs.

use std::collections::BTreeSet;

use super::Lint;
use super::finding::{Rule, Severity, count, some_of};
use crate::api::gardener::CapabilityDefinition;
use crate::capabilities::best_flavor;
use crate::offer::resolution::{Availability, Outcome};

/// A choice that several flavors of a version compete for.
struct Contest {
    group: usize,
    version: usize,
    available: Availability,
    chosen: usize,
}

impl Lint<'_> {
    pub(super) fn order(&mut self) {
        let offer = self.offer();
        if !offer.declares_capabilities {
            return;
        }
        let contests = self.contests();
        let definitions = &offer.definitions;
        for later in 0..definitions.len() {
            // The shortest move that changes something says it all.
            let moved = (0..later).rev().find_map(|earlier| {
                let changed = self.changed(&contests, &moved(definitions, later, earlier));
                (!changed.is_empty()).then_some((earlier, changed))
            });
            if let (Some((earlier, changed)), Some(definition)) = (moved, definitions.get(later)) {
                let before = definitions.get(earlier).map(|definition| definition.name.as_str()).unwrap_or_default();
                let path = format!("spec.machineCapabilities[{later}]");
                self.order_matters(path, &definition.name, &definition.name, before, &changed);
            }
        }
        for (position, definition) in definitions.iter().enumerate() {
            for later in 0..definition.values.len() {
                let moved = (0..later).rev().find_map(|earlier| {
                    let mut reordered = definitions.clone();
                    let values = reordered.get_mut(position).map(|definition| &mut definition.values)?;
                    *values = moved(values, later, earlier);
                    let changed = self.changed(&contests, &reordered);
                    (!changed.is_empty()).then_some((earlier, changed))
                });
                if let (Some((earlier, changed)), Some(value)) = (moved, definition.values.get(later)) {
                    let before = definition.values.get(earlier).map(String::as_str).unwrap_or_default();
                    let path = format!("spec.machineCapabilities[{position}].values[{later}]");
                    self.order_matters(path, &definition.name, value, before, &changed);
                }
            }
        }
    }

    /// Every choice between several flavors that fit, of versions that can be selected.
    fn contests(&self) -> Vec<Contest> {
        let choices = self.resolution.each().filter_map(|(group, version, available)| {
            let Outcome::Chosen(chosen) = self.resolution.outcome(group, available) else { return None };
            let is_contested = available.flavors.len() > 1 && !self.is_over(version);
            is_contested.then(|| Contest { group, version, available: available.clone(), chosen })
        });
        choices.collect()
    }

    /// The contests that another order decides otherwise, with the flavor that would win.
    fn changed<'a>(&self, contests: &'a [Contest], definitions: &[CapabilityDefinition]) -> Vec<(&'a Contest, usize)> {
        let mut decided: std::collections::HashMap<(usize, usize), Option<usize>> = std::collections::HashMap::new();
        let mut changed = Vec::new();
        for contest in contests {
            let winner =
                *decided.entry((contest.group, self.resolution.list(&contest.available))).or_insert_with(|| {
                    let machine = &self.resolution.groups().get(contest.group)?.capabilities;
                    let flavors = self.resolution.flavors(&contest.available);
                    best_flavor(machine, definitions, flavors, |flavor| flavor).ok()
                });
            let winner = winner.and_then(|position| contest.available.flavors.get(position).copied());
            if let Some(winner) = winner.filter(|winner| *winner != contest.chosen) {
                changed.push((contest, winner));
            }
        }
        changed
    }

    fn order_matters(&mut self, path: String, subject: &str, moved: &str, before: &str, changed: &[(&Contest, usize)]) {
        let Some((first, instead)) = changed.first() else { return };
        let groups: BTreeSet<usize> = changed.iter().map(|(contest, _)| contest.group).collect();
        let versions: BTreeSet<usize> = changed.iter().map(|(contest, _)| contest.version).collect();
        let names = || groups.iter().flat_map(|group| self.resolution.type_names(*group));
        let title = self.offer().images.get(first.version).map(|version| version.title()).unwrap_or_default();
        let reason = format!(
            "Moving {moved} before {before} changes the image of {} ({}) at {}; for example flavor {instead} of {title} \
             instead of flavor {}. Machine classes keep their names, so only new nodes would get it.",
            count(names().count(), "machine type"),
            some_of(names()),
            count(versions.len(), "image version"),
            first.chosen
        );
        let advice = "Leave the order as it is. To be independent of it, give each machine type one flavor that fits.";
        self.find(Severity::Note, Rule::OrderSensitive, path, subject, reason, advice);
    }
}

/// A list with one item moved to the front of an earlier one.
fn moved<T: Clone>(items: &[T], from: usize, to: usize) -> Vec<T> {
    let mut items = items.to_vec();
    if from < items.len() && to < items.len() {
        let item = items.remove(from);
        items.insert(to, item);
    }
    items
}
