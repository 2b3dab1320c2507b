//! Choices that depend only on the order of capabilities or of their values.
//!
//! In another order, the same classes have other images: existing nodes keep theirs, new nodes differ.

use std::collections::{BTreeSet, HashMap};

use super::Lint;
use super::finding::{Rule, count, machine_types};
use crate::resolved_profile::resolution::{Availability, TypeGroup};
use crate::resolved_profile::selectable::SelectableVersion;
use wire::api::gardener::{Capabilities, CapabilityDefinition};
use wire::capabilities::{are_compatible, preference};

/// The choices between several flavors. Profiles have hundreds of versions with the same list of flavors.
#[derive(Default)]
struct Contested<'a> {
    lists: Vec<ContestedList<'a>>,
    occurrences: Vec<ListOccurrence<'a>>,
}

/// A list of flavors, with the choice of each group of machine types.
struct ContestedList<'a> {
    flavors: &'a [Capabilities],
    choices: Vec<ContestedChoice>,
}

/// The choice of a group. Positions are those of a list.
struct ContestedChoice {
    group: usize,
    chosen: usize,
    /// The flavors that fit.
    fitting: Vec<usize>,
}

/// Where a list is offered.
struct ListOccurrence<'a> {
    version: &'a SelectableVersion,
    available: &'a Availability<'a>,
    /// Position of the list.
    list: usize,
}

/// What another order changes.
struct ChangedChoices<'a> {
    groups: BTreeSet<usize>,
    versions: usize,
    /// The first changed choice: its version, its flavor, and the flavor that would be chosen instead.
    first: (&'a SelectableVersion, usize, usize),
}

impl<'a> Lint<'a> {
    pub(super) fn order(&mut self) {
        let resolved_profile = self.resolved_profile();
        if !resolved_profile.declares_capabilities {
            return;
        }
        let contested = self.contested();
        let definitions = &resolved_profile.definitions;
        for (later, definition) in definitions.iter().enumerate() {
            let change = Self::first_change(&contested, later, |earlier| moved(definitions, later, earlier));
            if let Some((earlier, changed)) = change {
                let before = definitions.get(earlier).map_or("", |definition| &definition.name);
                let path = format!("spec.machineCapabilities[{later}]");
                self.order_matters(path, &definition.name, &definition.name, before, &changed);
            }
            for (position, value) in definition.values.iter().enumerate() {
                let change = Self::first_change(&contested, position, |earlier| {
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

    /// Every choice between several flavors, of versions that can be selected.
    fn contested(&self) -> Contested<'a> {
        let mut contested = Contested::default();
        let mut known: HashMap<usize, usize> = HashMap::new();
        for resolved in self.resolution.versions().iter().filter(|version| !version.selectable.is_expired()) {
            for available in resolved.availability.iter().filter(|available| available.flavors.len() > 1) {
                let list = *known.entry(self.resolution.list(available)).or_insert_with(|| {
                    contested.lists.push(self.contested_list(available));
                    contested.lists.len() - 1
                });
                contested.occurrences.push(ListOccurrence { version: resolved.selectable, available, list });
            }
        }
        contested
    }

    fn contested_list(&self, available: &'a Availability<'a>) -> ContestedList<'a> {
        let definitions = &self.resolved_profile().definitions;
        let flavors = self.resolution.flavors(available);
        let choice = |group: &TypeGroup<'_>| {
            let chosen = self.resolution.best_position(group, available)?;
            let fits = |position: &usize| {
                let flavor = flavors.get(*position);
                flavor.is_some_and(|flavor| are_compatible(&group.capabilities, flavor, definitions))
            };
            Some(ContestedChoice { group: group.number, chosen, fitting: (0..flavors.len()).filter(fits).collect() })
        };
        ContestedList { flavors, choices: self.resolution.groups().iter().filter_map(choice).collect() }
    }

    /// Finds the shortest move to the position of an earlier item that changes a choice. Longer moves need no finding
    /// of their own.
    fn first_change<'c>(
        contested: &'c Contested<'a>,
        later: usize,
        reordered: impl Fn(usize) -> Vec<CapabilityDefinition>,
    ) -> Option<(usize, ChangedChoices<'c>)> {
        let mut moves = (0..later).rev();
        moves.find_map(|earlier| Some((earlier, contested.changed(&reordered(earlier))?)))
    }

    fn order_matters(&mut self, path: String, subject: &str, moved: &str, before: &str, changed: &ChangedChoices<'_>) {
        let (version, chosen, instead) = changed.first;
        let reason = format!(
            "Moving {moved} before {before} changes the image of {} at {}; for example flavor {instead} of {} instead of \
             flavor {chosen}. Machine classes keep their names, so only new nodes would get it.",
            machine_types(&self.names(&changed.groups)),
            count(changed.versions, "image version"),
            version.title(),
        );
        let advice = "Leave the order as it is. To be independent of it, give each machine type one flavor that fits.";
        self.find(Rule::OrderSensitive, path, subject, reason, advice);
    }
}

impl<'a> Contested<'a> {
    /// What changes if the definitions have this order.
    fn changed(&self, definitions: &[CapabilityDefinition]) -> Option<ChangedChoices<'a>> {
        let changes: Vec<Vec<(&ContestedChoice, usize)>> =
            self.lists.iter().map(|list| list.changed(definitions)).collect();
        let mut changed: Option<ChangedChoices<'a>> = None;
        let mut counted: Option<&SelectableVersion> = None;
        let mut is_complete = vec![false; self.lists.len()];
        for occurrence in &self.occurrences {
            let of_list = changes.get(occurrence.list).map(Vec::as_slice).unwrap_or_default();
            let mut usable = of_list.iter().filter(|(choice, _)| occurrence.is_usable(choice.chosen)).peekable();
            let Some((choice, instead)) = usable.peek() else { continue };
            let first = (occurrence.version, occurrence.flavor(choice.chosen), occurrence.flavor(*instead));
            let changed = changed.get_or_insert_with(|| ChangedChoices { groups: BTreeSet::new(), versions: 0, first });
            if !counted.is_some_and(|counted| std::ptr::eq(counted, occurrence.version)) {
                changed.versions += 1;
                counted = Some(occurrence.version);
            }
            // Another occurrence whose flavors are all usable has the same groups.
            if let Some(is_complete) = is_complete.get_mut(occurrence.list).filter(|is_complete| !**is_complete) {
                changed.groups.extend(usable.map(|(choice, _)| choice.group));
                *is_complete = occurrence.available.are_all_usable();
            }
        }
        changed
    }
}

impl ContestedList<'_> {
    /// The choices that change with this order, with the new position.
    fn changed(&self, definitions: &[CapabilityDefinition]) -> Vec<(&ContestedChoice, usize)> {
        let preferences: Vec<Vec<bool>> = self.flavors.iter().map(|flavor| preference(flavor, definitions)).collect();
        let mut changed = Vec::new();
        for choice in &self.choices {
            if let Some(winner) = winner(&choice.fitting, &preferences).filter(|winner| *winner != choice.chosen) {
                changed.push((choice, winner));
            }
        }
        changed
    }
}

impl ListOccurrence<'_> {
    fn flavor(&self, position: usize) -> usize {
        self.available.flavors.get(position).copied().unwrap_or_default()
    }

    fn is_usable(&self, position: usize) -> bool {
        self.available.is_usable(self.flavor(position))
    }
}

/// The position that is preferred to all others, if there is one.
fn winner(fitting: &[usize], preferences: &[Vec<bool>]) -> Option<usize> {
    let best = fitting.iter().filter_map(|position| preferences.get(*position)).max()?;
    let mut winners = fitting.iter().filter(|position| preferences.get(**position) == Some(best));
    let winner = winners.next().copied();
    if winners.next().is_none() { winner } else { None }
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
