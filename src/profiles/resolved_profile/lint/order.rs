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
    /// Position of its kind.
    kind: usize,
}

/// Choices with the same flavors for the same machine types change together. Profiles have thousands of choices of each kind.
struct Contested<'a> {
    choices: Vec<ContestedChoice<'a>>,
    /// The first choice of each kind.
    kinds: Vec<usize>,
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
    fn contested(&self) -> Contested<'a> {
        let mut choices = Vec::new();
        let mut kinds = Vec::new();
        let mut kind_of: HashMap<(usize, usize, Option<usize>), usize> = HashMap::new();
        for resolved in self.resolution.versions().iter().filter(|version| !version.selectable.is_expired()) {
            for available in resolved.availability.iter().filter(|available| available.flavors.len() > 1) {
                let list = self.resolution.list(available);
                for group in self.resolution.groups() {
                    let Some(chosen) = self.resolution.chosen(group, available) else { continue };
                    let position = available.flavors.iter().position(|flavor| *flavor == chosen);
                    let kind = *kind_of.entry((group.number, list, position)).or_insert_with(|| {
                        kinds.push(choices.len());
                        kinds.len() - 1
                    });
                    choices.push(ContestedChoice { group, version: resolved.selectable, available, chosen, kind });
                }
            }
        }
        Contested { choices, kinds }
    }

    /// Finds the shortest move to the position of an earlier item that changes a choice. Longer moves need no finding
    /// of their own.
    fn first_change<'c>(
        &self,
        contested: &'c Contested<'c>,
        later: usize,
        reordered: impl Fn(usize) -> Vec<CapabilityDefinition>,
    ) -> Option<(usize, Changed<'c>)> {
        (0..later).rev().find_map(|earlier| {
            let changed = self.changed(contested, &reordered(earlier));
            (!changed.is_empty()).then_some((earlier, changed))
        })
    }

    fn changed<'c>(&self, contested: &'c Contested<'c>, definitions: &[CapabilityDefinition]) -> Changed<'c> {
        let winners = contested.kinds.iter().map(|first| {
            let ContestedChoice { group, available, chosen, .. } = contested.choices.get(*first)?;
            let flavors = self.resolution.flavors(available);
            let position = best_flavor(&group.capabilities, definitions, flavors, |flavor| flavor).ok()?;
            available.flavors.get(position).is_some_and(|winner| winner != chosen).then_some(position)
        });
        let winners: Vec<Option<usize>> = winners.collect();
        if winners.iter().all(Option::is_none) {
            return Vec::new();
        }
        let changed = contested.choices.iter().filter_map(|choice| {
            let position = (*winners.get(choice.kind)?)?;
            Some((choice, *choice.available.flavors.get(position)?))
        });
        changed.collect()
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
