//! Which image every machine type gets of every image version, in every region.
//!
//! ```text
//!  machine types ── equal capabilities ──► groups ──────┐
//!                                                       ├─ rank once per pair ─► Outcome
//!  versions ── flavors of a region ──► flavor lists ────┘
//! ```
//!
//! Profiles repeat themselves: hundreds of machine types can do the same, hundreds of versions have the same flavors. Only
//! what differs is ranked.

use std::collections::HashMap;

use serde::Serialize;

use super::offered::{Offer, OfferedType, OfferedVersion};
use crate::api::gardener::{Capabilities, CapabilityDefinition};
use crate::capabilities::{FlavorVerdict, NoFlavor, Ranking, RankingStep, best_flavor, rank_flavors, with_defaults};

/// Machine types that can do the same, and that Gardener admits by the same architecture.
#[derive(Clone, Debug)]
pub struct TypeGroup {
    /// What they can do, defaults included.
    pub capabilities: Capabilities,
    /// Positions in the offer.
    pub types: Vec<usize>,
}

/// The flavors that a version has in some regions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Availability {
    /// Positions of the regions in the offer; empty where the provider knows no regions.
    pub regions: Vec<usize>,
    /// Positions of the flavors in the version.
    pub flavors: Vec<usize>,
    /// Those of them that machines can't start from.
    unusable: Vec<usize>,
    /// The list of their capabilities, shared with versions that have the same.
    list: usize,
}

/// What a group of machine types gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// This flavor; its position in the version.
    Chosen(usize),
    /// Nothing, because this flavor is chosen and machines can't start from it; its position in the version.
    Unusable(usize),
    /// Nothing, because these list the same; their positions in the version.
    Tied(Vec<usize>),
    /// Nothing, because none fits.
    NoneFits,
    /// Nothing, because there is no flavor at all.
    NoFlavors,
}

/// How an outcome came about. Positions are those within the flavors that are available.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// What became of each flavor.
    pub verdicts: Vec<FlavorVerdict>,
    /// The values that decided, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranking: Vec<RankingStep>,
}

/// Every outcome of an offer.
#[derive(Clone, Debug)]
pub struct Resolution<'a> {
    offer: &'a Offer,
    groups: Vec<TypeGroup>,
    group_of_type: Vec<usize>,
    availability: Vec<Vec<Availability>>,
    lists: Vec<Vec<Capabilities>>,
    /// By list, then by group.
    outcomes: Vec<Vec<Ranked>>,
}

/// An outcome with positions within a list.
#[derive(Clone, Debug)]
enum Ranked {
    Chosen(usize),
    Tied(Vec<usize>),
    NoneFits,
}

impl<'a> Resolution<'a> {
    /// Resolves everything.
    #[must_use]
    pub fn of(offer: &'a Offer) -> Self {
        let (groups, group_of_type) = groups(offer);
        let mut lists = Interned::default();
        let availability: Vec<Vec<Availability>> =
            offer.images.iter().map(|version| availability(offer, version, &mut lists)).collect();
        let lists = lists.in_order;
        let rank = |list: &Vec<Capabilities>| -> Vec<Ranked> {
            groups.iter().map(|group| ranked(&group.capabilities, &offer.definitions, list)).collect()
        };
        let outcomes = lists.iter().map(rank).collect();
        Self { offer, groups, group_of_type, availability, lists, outcomes }
    }

    /// The offer.
    #[must_use]
    pub fn offer(&self) -> &'a Offer {
        self.offer
    }

    /// Machine types that can do the same, in the order of their first one.
    #[must_use]
    pub fn groups(&self) -> &[TypeGroup] {
        &self.groups
    }

    /// The group of a machine type, by its position in the offer.
    #[must_use]
    pub fn group_of_type(&self, machine_type: usize) -> usize {
        self.group_of_type.get(machine_type).copied().unwrap_or_default()
    }

    /// The regions of a version by the flavors they have, the version by its position in the offer. All regions of the
    /// profile are in it once; a provider without regions has one entry.
    #[must_use]
    pub fn availability(&self, version: usize) -> &[Availability] {
        self.availability.get(version).map(Vec::as_slice).unwrap_or_default()
    }

    /// What a group gets where these flavors are available.
    #[must_use]
    pub fn outcome(&self, group: usize, available: &Availability) -> Outcome {
        if available.flavors.is_empty() {
            return Outcome::NoFlavors;
        }
        let in_version = |position: &usize| available.flavors.get(*position).copied().unwrap_or_default();
        match self.outcomes.get(available.list).and_then(|of_list| of_list.get(group)) {
            Some(Ranked::Chosen(position)) => match in_version(position) {
                unusable if available.unusable.contains(&unusable) => Outcome::Unusable(unusable),
                usable => Outcome::Chosen(usable),
            },
            Some(Ranked::Tied(positions)) => Outcome::Tied(positions.iter().map(in_version).collect()),
            Some(Ranked::NoneFits) | None => Outcome::NoneFits,
        }
    }

    /// How the outcome came about.
    #[must_use]
    pub fn decision(&self, group: usize, available: &Availability) -> Decision {
        let machine = self.groups.get(group).map(|group| &group.capabilities);
        let (Some(machine), Some(list)) = (machine, self.lists.get(available.list)) else {
            return Decision { verdicts: Vec::new(), ranking: Vec::new() };
        };
        let Ranking { verdicts, steps, .. } = rank_flavors(machine, &self.offer.definitions, list, |flavor| flavor);
        Decision { verdicts, ranking: steps }
    }

    /// What the available flavors run on, defaults included.
    #[must_use]
    pub fn flavors(&self, available: &Availability) -> &[Capabilities] {
        self.lists.get(available.list).map(Vec::as_slice).unwrap_or_default()
    }

    /// A number that two places share when groups get the same there for the same reasons.
    #[must_use]
    pub fn list(&self, available: &Availability) -> usize {
        available.list
    }

    /// Every group with every version and its regions.
    pub fn each(&self) -> impl Iterator<Item = (usize, usize, &Availability)> {
        (0..self.offer.images.len()).flat_map(move |version| {
            let available = self.availability(version).iter();
            available.flat_map(move |available| (0..self.groups.len()).map(move |group| (group, version, available)))
        })
    }

    /// The machine types of a group.
    pub fn machine_types(&self, group: usize) -> impl Iterator<Item = &'a OfferedType> {
        let types = self.groups.get(group).map(|group| group.types.as_slice()).unwrap_or_default();
        let offered = &self.offer.machine_types;
        types.iter().filter_map(|position| offered.get(*position))
    }

    /// Names of the machine types of a group.
    pub fn type_names(&self, group: usize) -> impl Iterator<Item = &'a str> {
        self.machine_types(group).map(|machine_type| machine_type.name.as_str())
    }
}

fn groups(offer: &Offer) -> (Vec<TypeGroup>, Vec<usize>) {
    let mut known: HashMap<(String, &str), usize> = HashMap::new();
    let mut groups: Vec<TypeGroup> = Vec::new();
    let mut group_of_type = Vec::with_capacity(offer.machine_types.len());
    for (position, machine_type) in offer.machine_types.iter().enumerate() {
        let capabilities = with_defaults(&machine_type.capabilities, &offer.definitions);
        let admitted_by = (key(&capabilities), machine_type.architecture.as_str());
        let group = *known.entry(admitted_by).or_insert_with(|| {
            groups.push(TypeGroup { capabilities, types: Vec::new() });
            groups.len() - 1
        });
        if let Some(group) = groups.get_mut(group) {
            group.types.push(position);
        }
        group_of_type.push(group);
    }
    (groups, group_of_type)
}

/// Lists of capabilities, each kept once.
#[derive(Default)]
struct Interned {
    known: HashMap<String, usize>,
    in_order: Vec<Vec<Capabilities>>,
}

impl Interned {
    fn number(&mut self, list: Vec<Capabilities>) -> usize {
        let key = list.iter().map(key).collect();
        *self.known.entry(key).or_insert_with(|| {
            self.in_order.push(list);
            self.in_order.len() - 1
        })
    }
}

/// A text that equal capabilities share and others don't: values can't contain its separators unescaped.
fn key(capabilities: &Capabilities) -> String {
    format!("{:?}", capabilities.0)
}

fn availability(offer: &Offer, version: &OfferedVersion, lists: &mut Interned) -> Vec<Availability> {
    let mut list = |flavors: &[usize]| {
        let available = flavors.iter().filter_map(|position| version.flavors.get(*position));
        let list = available.map(|flavor| with_defaults(&flavor.capabilities, &offer.definitions)).collect();
        lists.number(list)
    };
    let unusable = |flavors: &[usize]| -> Vec<usize> {
        let has_defect =
            |position: &&usize| version.flavors.get(**position).is_some_and(|flavor| flavor.defect.is_some());
        flavors.iter().filter(has_defect).copied().collect()
    };
    let is_regional = version.flavors.iter().any(|flavor| !flavor.by_region.is_empty());
    if !is_regional {
        let flavors: Vec<usize> = (0..version.flavors.len()).collect();
        return vec![Availability { regions: Vec::new(), unusable: unusable(&flavors), list: list(&flavors), flavors }];
    }
    let mut found: Vec<Availability> = Vec::new();
    for (region, name) in offer.regions.iter().enumerate() {
        let there = |(position, flavor): (usize, &super::offered::OfferedFlavor)| {
            flavor.in_region(name).is_some().then_some(position)
        };
        let flavors: Vec<usize> = version.flavors.iter().enumerate().filter_map(there).collect();
        match found.iter_mut().find(|known| known.flavors == flavors) {
            Some(known) => known.regions.push(region),
            None => found.push(Availability {
                regions: vec![region],
                unusable: unusable(&flavors),
                list: list(&flavors),
                flavors,
            }),
        }
    }
    found
}

fn ranked(machine: &Capabilities, definitions: &[CapabilityDefinition], list: &[Capabilities]) -> Ranked {
    match best_flavor(machine, definitions, list, |flavor| flavor) {
        Ok(chosen) => Ranked::Chosen(chosen),
        Err(NoFlavor::Ambiguous { tied }) => Ranked::Tied(tied),
        Err(NoFlavor::NoneCompatible { .. }) => Ranked::NoneFits,
    }
}
