//! Choices that depend only on the order of capabilities or of their values.
//!
//! In another order, the same classes have other images: existing nodes keep theirs, new nodes differ.

use std::collections::{BTreeSet, HashMap};

use super::Lint;
use super::finding::{Rule, count, machine_types};
use crate::resolved_profile::resolution::{Availability, TypeGroup};
use crate::resolved_profile::selectable::SelectableVersion;
use wire::api::gardener::CapabilityDefinition;
use wire::capabilities::best_flavor;

/// A choice between several flavors of a version that fit.
struct ContestedChoice<'a> {
    group: &'a TypeGroup<'a>,
    version: &'a SelectableVersion,
    available: &'a Availability<'a>,
    chosen: usize,
}

/// Choices that change in another order, with the flavor that would be chosen.
type Changed<'a> = Vec<(&'a ContestedChoice<'a>, usize)>;

impl<'a> Lint<'a> {
    pub(super) fn order(&mut self) {
        let resolved_profile = self.resolved_profile();
        if !resolved_profile.declares_capabilities {
            return;
        }
        let contested = self.contested();
        let definitions = &resolved_profile.definitions;
        for (later, definition) in definitions.iter().enumerate() {
            let change = self.first_change(&contested, later, |earlier| moved(definitions, later, earlier));
            if let Some((earlier, changed)) = change {
                let before = definitions.get(earlier).map_or("", |definition| &definition.name);
                let path = format!("spec.machineCapabilities[{later}]");
                self.order_matters(path, &definition.name, &definition.name, before, &changed);
            }
            for (position, value) in definition.values.iter().enumerate() {
                let change = self.first_change(&contested, position, |earlier| {
                    let mut reordered = definitions.clone();
                    if let Some(definition) = reordered.get_mut(later) {
                        definition.values = moved(&definition.values, position, earlier);
                    }
                    reordered
                });
                if let Some((earlier, changed)) = change {
                    let before = definition.values.get(earlier).map_or("", String::as_str);
                    let path = format!("spec.machineCapabilities[{later}].values[{position}]");
                    self.order_matters(path, &definition.name, value, before, &changed);
                }
            }
        }
    }

    /// Every choice between several flavors that fit, of versions that can be selected.
    fn contested(&self) -> Vec<ContestedChoice<'a>> {
        let mut contested = Vec::new();
        for resolved in self.resolution.versions().iter().filter(|version| !version.selectable.is_expired()) {
            for available in resolved.availability.iter().filter(|available| available.flavors.len() > 1) {
                let groups = self.resolution.groups().iter();
                let chosen = groups.filter_map(|group| Some((group, self.resolution.chosen(group, available)?)));
                let version = resolved.selectable;
                contested.extend(chosen.map(|(group, chosen)| ContestedChoice { group, version, available, chosen }));
            }
        }
        contested
    }

    /// Finds the shortest move to the position of an earlier item that changes a choice. Longer moves need no finding
    /// of their own.
    fn first_change<'c>(
        &self,
        contested: &'c [ContestedChoice<'c>],
        later: usize,
        reordered: impl Fn(usize) -> Vec<CapabilityDefinition>,
    ) -> Option<(usize, Changed<'c>)> {
        (0..later).rev().find_map(|earlier| {
            let changed = self.changed(contested, &reordered(earlier));
            (!changed.is_empty()).then_some((earlier, changed))
        })
    }

    fn changed<'c>(&self, contested: &'c [ContestedChoice<'c>], definitions: &[CapabilityDefinition]) -> Changed<'c> {
        let mut decided: HashMap<(usize, usize), Option<usize>> = HashMap::new();
        let mut changed = Vec::new();
        for contested in contested {
            let ContestedChoice { group, available, chosen, .. } = contested;
            let winner = *decided.entry((group.number, self.resolution.list(available))).or_insert_with(|| {
                best_flavor(&group.capabilities, definitions, self.resolution.flavors(available), |flavor| flavor).ok()
            });
            let winner = winner.and_then(|position| available.flavors.get(position));
            changed.extend(winner.filter(|winner| *winner != chosen).map(|winner| (contested, *winner)));
        }
        changed
    }

    fn order_matters(
        &mut self,
        path: String,
        subject: &str,
        moved: &str,
        before: &str,
        changed: &[(&ContestedChoice<'_>, usize)],
    ) {
        let Some((first, instead)) = changed.first() else { return };
        let groups: BTreeSet<usize> = changed.iter().map(|(contested, _)| contested.group.number).collect();
        let versions: BTreeSet<&str> = changed.iter().map(|(contested, _)| contested.version.path.as_str()).collect();
        let reason = format!(
            "Moving {moved} before {before} changes the image of {} at {}; for example flavor {instead} of {} instead of \
             flavor {}. Machine classes keep their names, so only new nodes would get it.",
            machine_types(&self.names(&groups)),
            count(versions.len(), "image version"),
            first.version.title(),
            first.chosen
        );
        let advice = "Leave the order as it is. To be independent of it, give each machine type one flavor that fits.";
        self.find(Rule::OrderSensitive, path, subject, reason, advice);
    }
}

/// The list with an item moved in front of an earlier one.
fn moved<T: Clone>(items: &[T], from: usize, to: usize) -> Vec<T> {
    let mut items = items.to_vec();
    if from < items.len() && to < items.len() {
        let item = items.remove(from);
        items.insert(to, item);
    }
    items
}
