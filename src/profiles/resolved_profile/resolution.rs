//! The image that every machine type gets for every image version in every region.
//!
//! ```text
//!  machine types ── equal capabilities ──► groups ──────┐
//!                                                       ├─ rank once per pair ─► FlavorChoice
//!  versions ── flavors of a region ──► flavor lists ────┘
//! ```
//!
//! Profiles are repetitive: hundreds of machine types have equal capabilities, and hundreds of versions have the same
//! flavors. Each distinct pair is ranked once.

use std::collections::HashMap;

use serde::Serialize;

use super::selectable::{ResolvedProfile, SelectableType, SelectableVersion};
use wire::api::gardener::{Capabilities, CapabilityDefinition};
use wire::capabilities::{
    FlavorVerdict, NoFlavor, RankingStep, best_flavor, proposed_flavor, rank_flavors, with_defaults,
};

/// Machine types with equal capabilities that Gardener admits by the same architecture.
#[derive(Clone, Debug)]
pub struct TypeGroup<'a> {
    /// Its position in the list of groups.
    pub number: usize,
    /// Their common capabilities, defaults included.
    pub capabilities: Capabilities,
    /// The architecture by which Gardener admits them.
    pub architecture: &'a str,
    /// The machine types in the order of the profile.
    pub types: Vec<&'a SelectableType>,
}

/// A version with its flavors in each region. Every region of the profile is in exactly one entry; for a provider
/// without regions, there is one entry.
#[derive(Clone, Debug)]
pub struct ResolvedVersion<'a> {
    /// The version.
    pub selectable: &'a SelectableVersion,
    /// Its regions, grouped by their flavors.
    pub availability: Vec<Availability<'a>>,
    /// Number of what Gardener admits it by, shared by versions with the same architectures and flavors.
    admission: usize,
}

/// The flavors of a version in some regions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Availability<'a> {
    /// The regions; empty if the provider's images are not regional.
    pub regions: Vec<&'a str>,
    /// Positions of the flavors in the version.
    pub flavors: Vec<usize>,
    /// Positions of the flavors that machines can't start from.
    unusable: Vec<usize>,
    /// Number of the list of their capabilities, shared by versions with the same list.
    list: usize,
}

/// What choices depend on, besides the group of machine types.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ranking {
    list: usize,
    flavors: Vec<usize>,
    unusable: Vec<usize>,
}

/// The result of choosing a flavor for a group of machine types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlavorChoice {
    /// A flavor is chosen; has its position in the version.
    Chosen(usize),
    /// No image, because the chosen flavor is one that machines can't start from; has its position in the version.
    Unusable(usize),
    /// No image, because several flavors have the same capabilities; has their positions in the version.
    Tied(Vec<usize>),
    /// No image, because no flavor fits.
    NoneFits,
    /// No image, because the version has no flavors.
    NoFlavors,
}

/// The reasons for a choice. Positions refer to the available flavors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// The verdict on each flavor.
    pub verdicts: Vec<FlavorVerdict>,
    /// The capability values that decided, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranking: Vec<RankingStep>,
    /// The flavor that the text of the proposal (GEP-33) would choose, if it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposed: Option<usize>,
}

/// All choices of an offer.
#[derive(Clone, Debug)]
pub struct Resolution<'a> {
    resolved_profile: &'a ResolvedProfile,
    groups: Vec<TypeGroup<'a>>,
    group_of_type: Vec<usize>,
    versions: Vec<ResolvedVersion<'a>>,
    lists: Vec<Vec<Capabilities>>,
    /// The best flavors by list, then by group.
    ranked: Vec<Vec<Ranked>>,
    /// Whether Gardener admits a group, by the number of the version's admission, then by group.
    admitted: Vec<Vec<bool>>,
}

/// The best position in a list, or the positions that tie; an empty error means that no flavor fits.
type Ranked = Result<usize, Vec<usize>>;

impl<'a> Resolution<'a> {
    /// Resolves all choices of an offer.
    #[must_use]
    pub fn of(resolved_profile: &'a ResolvedProfile) -> Self {
        let (groups, group_of_type) = groups(resolved_profile);
        let mut lists = Interned::default();
        let mut admissions = Admissions::default();
        let resolved = |selectable| ResolvedVersion {
            selectable,
            availability: availability(resolved_profile, selectable, &mut lists),
            admission: admissions.number(selectable, resolved_profile, &groups),
        };
        let versions = resolved_profile.images.iter().map(resolved).collect();
        let admitted = admissions.in_order;
        let lists = lists.in_order;
        let rank = |list: &Vec<Capabilities>| -> Vec<Ranked> {
            groups.iter().map(|group| ranked(&group.capabilities, &resolved_profile.definitions, list)).collect()
        };
        let ranked = lists.iter().map(rank).collect();
        Self { resolved_profile, groups, group_of_type, versions, lists, ranked, admitted }
    }

    /// The resolved offer.
    #[must_use]
    pub fn resolved_profile(&self) -> &'a ResolvedProfile {
        self.resolved_profile
    }

    /// Groups of machine types with equal capabilities, in the order of their first machine type.
    #[must_use]
    pub fn groups(&self) -> &[TypeGroup<'a>] {
        &self.groups
    }

    /// The machine types of the profile, each with its group.
    pub fn types(&self) -> impl Iterator<Item = (&'a SelectableType, &TypeGroup<'a>)> {
        let groups = self.group_of_type.iter().filter_map(|group| self.groups.get(*group));
        self.resolved_profile.machine_types.iter().zip(groups)
    }

    /// The versions in the order of the profile.
    #[must_use]
    pub fn versions(&self) -> &[ResolvedVersion<'a>] {
        &self.versions
    }

    /// The choice for a group from the available flavors.
    #[must_use]
    pub fn choice(&self, group: &TypeGroup<'_>, available: &Availability<'_>) -> FlavorChoice {
        if available.flavors.is_empty() {
            return FlavorChoice::NoFlavors;
        }
        let in_version = |position: &usize| available.flavors.get(*position).copied().unwrap_or_default();
        match self.ranked.get(available.list).and_then(|of_list| of_list.get(group.number)) {
            Some(Ok(position)) => match in_version(position) {
                unusable if available.unusable.contains(&unusable) => FlavorChoice::Unusable(unusable),
                usable => FlavorChoice::Chosen(usable),
            },
            Some(Err(tied)) if !tied.is_empty() => FlavorChoice::Tied(tied.iter().map(in_version).collect()),
            _ => FlavorChoice::NoneFits,
        }
    }

    /// The flavor that a group gets from the available ones.
    #[must_use]
    pub fn chosen(&self, group: &TypeGroup<'_>, available: &Availability<'_>) -> Option<usize> {
        match self.choice(group, available) {
            FlavorChoice::Chosen(flavor) => Some(flavor),
            _ => None,
        }
    }

    /// The position of the best flavor in the list of the available ones, usable or not.
    pub(super) fn best_position(&self, group: &TypeGroup<'_>, available: &Availability<'_>) -> Option<usize> {
        self.ranked.get(available.list)?.get(group.number)?.as_ref().ok().copied()
    }

    /// Whether Gardener admits machine types of a group with a version.
    #[must_use]
    pub fn admits(&self, version: &ResolvedVersion<'_>, group: &TypeGroup<'_>) -> bool {
        let groups = self.admitted.get(version.admission);
        groups.and_then(|groups| groups.get(group.number)).copied().unwrap_or_default()
    }

    /// The reasons for a choice.
    #[must_use]
    pub fn decision(&self, group: &TypeGroup<'_>, available: &Availability<'_>) -> Decision {
        let flavors = self.flavors(available);
        let ranking = rank_flavors(&group.capabilities, &self.resolved_profile.definitions, flavors, |flavor| flavor);
        let proposed =
            proposed_flavor(&group.capabilities, &self.resolved_profile.definitions, flavors, |flavor| flavor);
        let proposed = proposed.filter(|proposed| ranking.chosen.as_ref().is_ok_and(|chosen| chosen != proposed));
        Decision { verdicts: ranking.verdicts, ranking: ranking.steps, proposed }
    }

    /// The capabilities of the available flavors, defaults included.
    #[must_use]
    pub fn flavors(&self, available: &Availability<'_>) -> &[Capabilities] {
        self.lists.get(available.list).map(Vec::as_slice).unwrap_or_default()
    }

    /// What choices depend on, besides the group: with an equal ranking, a group gets the flavor at the same position of the version.
    pub(super) fn ranking(&self, available: &Availability<'_>) -> Ranking {
        Ranking { list: available.list, flavors: available.flavors.clone(), unusable: available.unusable.clone() }
    }

    /// The number of the list of capabilities. If it is equal, a group gets the same choice for the same reasons.
    #[must_use]
    pub fn list(&self, available: &Availability<'_>) -> usize {
        available.list
    }
}

impl Availability<'_> {
    /// Whether machines can start from the flavor at this position of the version.
    pub(super) fn is_usable(&self, flavor: usize) -> bool {
        !self.unusable.contains(&flavor)
    }

    /// Whether machines can start from all flavors.
    pub(super) fn are_all_usable(&self) -> bool {
        self.unusable.is_empty()
    }
}

impl<'a> TypeGroup<'a> {
    /// Names of the machine types.
    pub fn names(&self) -> impl Iterator<Item = &'a str> {
        self.types.iter().map(|machine_type| machine_type.name.as_str())
    }
}

fn groups(resolved_profile: &ResolvedProfile) -> (Vec<TypeGroup<'_>>, Vec<usize>) {
    let mut known: HashMap<(String, &str), usize> = HashMap::new();
    let mut groups: Vec<TypeGroup<'_>> = Vec::new();
    let mut group_of_type = Vec::with_capacity(resolved_profile.machine_types.len());
    for machine_type in &resolved_profile.machine_types {
        let capabilities = with_defaults(&machine_type.capabilities, &resolved_profile.definitions);
        let architecture = machine_type.architecture.as_str();
        let number = *known.entry((key(&capabilities), architecture)).or_insert_with(|| {
            groups.push(TypeGroup { number: groups.len(), capabilities, architecture, types: Vec::new() });
            groups.len() - 1
        });
        if let Some(group) = groups.get_mut(number) {
            group.types.push(machine_type);
        }
        group_of_type.push(number);
    }
    (groups, group_of_type)
}

/// Which groups Gardener admits; equal ones are computed once.
#[derive(Default)]
struct Admissions {
    known: HashMap<String, usize>,
    in_order: Vec<Vec<bool>>,
}

impl Admissions {
    fn number(
        &mut self,
        version: &SelectableVersion,
        resolved_profile: &ResolvedProfile,
        groups: &[TypeGroup<'_>],
    ) -> usize {
        let key = format!("{:?} {:?}", version.architectures, version.admitted);
        *self.known.entry(key).or_insert_with(|| {
            let is_admitted = |group: &TypeGroup<'_>| {
                group.types.iter().any(|machine_type| version.admits(machine_type, &resolved_profile.definitions))
            };
            self.in_order.push(groups.iter().map(is_admitted).collect());
            self.in_order.len() - 1
        })
    }
}

/// Lists of capabilities; equal lists are stored once.
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

/// A unique text for capabilities: `Debug` escapes the separators in values.
fn key(capabilities: &Capabilities) -> String {
    format!("{:?}", capabilities.0)
}

fn availability<'a>(
    resolved_profile: &'a ResolvedProfile,
    version: &SelectableVersion,
    lists: &mut Interned,
) -> Vec<Availability<'a>> {
    let mut available = |regions: Vec<&'a str>, flavors: Vec<usize>| {
        let of_version = || flavors.iter().filter_map(|position| Some((*position, version.flavors.get(*position)?)));
        let list = of_version()
            .map(|(_, flavor)| with_defaults(&flavor.capabilities, &resolved_profile.definitions))
            .collect();
        let unusable =
            of_version().filter(|(_, flavor)| flavor.defect.is_some()).map(|(position, _)| position).collect();
        Availability { regions, unusable, list: lists.number(list), flavors }
    };
    let flavors = version.flavors.iter().enumerate();
    if !version.is_regional() {
        return vec![available(Vec::new(), flavors.map(|(position, _)| position).collect())];
    }
    let mut found: Vec<Availability<'a>> = Vec::new();
    for region in &resolved_profile.regions {
        let there = flavors.clone().filter(|(_, flavor)| flavor.in_region(region).is_some());
        let there: Vec<usize> = there.map(|(position, _)| position).collect();
        match found.iter_mut().find(|known| known.flavors == there) {
            Some(known) => known.regions.push(region),
            None => found.push(available(vec![region], there)),
        }
    }
    found
}

fn ranked(machine: &Capabilities, definitions: &[CapabilityDefinition], list: &[Capabilities]) -> Ranked {
    best_flavor(machine, definitions, list, |flavor| flavor).map_err(|none| match none {
        NoFlavor::Ambiguous { tied } => tied,
        NoFlavor::NoneCompatible { .. } => Vec::new(),
    })
}
