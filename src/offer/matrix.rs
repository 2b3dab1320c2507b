//! The matrix of a profile: machine type × image version → flavor and reference, or why there is none.
//!
//! Machine types that can do the same are one row, and decisions that came about in the same way are written once, so that
//! a large profile stays a document that a browser can hold.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

use super::offered::{Defect, Offer, OfferedFlavor, OfferedVersion};
use super::resolution::{Availability, Decision, FlavorChoice, Resolution, TypeGroup};
use super::selection::Selection;
use crate::api::gardener::{Capabilities, CapabilityDefinition};
use crate::capabilities::Classification;
use crate::provider::explanation::ImageName;

/// Name and version of the schema. A new member does not change it; another meaning does.
pub const SCHEMA: &str = "cloudprofile-matrix/v1";

/// The matrix, ready to be written as JSON.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Matrix<'a> {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Name of the profile.
    pub profile: &'a str,
    /// `spec.type`.
    pub provider: &'a str,
    /// Capabilities in order of preference.
    pub capabilities: &'a [CapabilityDefinition],
    /// Whether the profile itself declares them; else they are what the old format stands for.
    pub declares_capabilities: bool,
    /// Regions that were looked at; empty where the provider's images are the same in every region.
    pub regions: Vec<&'a str>,
    /// Machine types that can do the same.
    pub groups: Vec<Group<'a>>,
    /// Image versions in the order of the profile.
    pub images: Vec<Image<'a>>,
    /// How choices came about.
    pub decisions: Vec<Decision>,
}

/// Machine types that can do the same.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Group<'a> {
    /// What they can do, defaults included.
    pub capabilities: Capabilities,
    /// The architecture by which Gardener admits them; the same as among their capabilities, where those are compared.
    #[serde(skip)]
    pub architecture: &'a str,
    /// The machine types.
    pub machine_types: Vec<MachineTypeName<'a>>,
}

/// A machine type of a group.
#[derive(Clone, Debug, Serialize)]
pub struct MachineTypeName<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether shoots may use it.
    pub usable: bool,
}

/// An image version.
#[derive(Clone, Debug, Serialize)]
pub struct Image<'a> {
    /// Name of the image.
    pub name: &'a str,
    /// The version.
    pub version: &'a str,
    /// Its stage now.
    pub classification: Classification,
    /// When it expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// Its flavors in the order of the provider config.
    pub flavors: Vec<Flavor<'a>>,
    /// What each group gets, in each part of the regions.
    pub choices: Vec<Choice<'a>>,
}

/// A flavor of an image version.
#[derive(Clone, Debug, Serialize)]
pub struct Flavor<'a> {
    /// What machines must be able to do; a capability that is not named means every value.
    pub capabilities: &'a Capabilities,
    /// Why machines can't start from it although it can be chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub defect: Option<Defect>,
    /// The image where no region has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<&'a ImageName>,
    /// The image of each region.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub regions: BTreeMap<&'a str, &'a ImageName>,
}

/// What a group of machine types gets.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Choice<'a> {
    /// Position of the group.
    pub group: usize,
    /// In these regions; absent when in all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<&'a str>,
    /// What came of it.
    pub outcome: ChoiceOutcome,
    /// Position of the chosen flavor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flavor: Option<usize>,
    /// Positions of the flavors that could be chosen; the verdicts of the decision are in this order.
    pub candidates: Vec<usize>,
    /// Position of the decision.
    pub decision: usize,
    /// Whether Gardener lets a Shoot have this combination.
    pub admitted: bool,
}

/// What came of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ChoiceOutcome {
    /// A flavor.
    Chosen,
    /// A flavor that machines can't start from.
    Unusable,
    /// Several flavors that list the same.
    Tied,
    /// No flavor fits.
    NoneFits,
    /// There is no flavor at all, or none with an image in these regions.
    NoFlavors,
}

impl ChoiceOutcome {
    /// For people.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Chosen => "chosen",
            Self::Unusable => "unusable flavor",
            Self::Tied => "tied",
            Self::NoneFits => "no flavor fits",
            Self::NoFlavors => "no image",
        }
    }
}

impl From<&FlavorChoice> for ChoiceOutcome {
    fn from(choice: &FlavorChoice) -> Self {
        match choice {
            FlavorChoice::Chosen(_) => Self::Chosen,
            FlavorChoice::Unusable(_) => Self::Unusable,
            FlavorChoice::Tied(_) => Self::Tied,
            FlavorChoice::NoneFits => Self::NoneFits,
            FlavorChoice::NoFlavors => Self::NoFlavors,
        }
    }
}

/// The matrix of what was asked for.
#[must_use]
pub fn matrix<'a>(resolution: &'a Resolution<'a>, selection: &Selection) -> Matrix<'a> {
    let offer = resolution.offer();
    let mut decisions = Decisions::default();
    let groups = groups(resolution, selection);
    let mut images: Vec<Image<'a>> = Vec::new();
    for resolved in resolution.versions().iter().filter(|resolved| selection.wants_image(resolved.offered)) {
        let version = resolved.offered;
        let mut choices = Vec::new();
        for available in &resolved.availability {
            let Some(regions) = Regions::of(offer, selection, available) else { continue };
            let asked = Asked { resolution, selection, version, available, regions };
            choices.extend(groups.iter().enumerate().filter_map(|(number, (group, _))| {
                asked.choice(group, &mut decisions).map(|choice| Choice { group: number, ..choice })
            }));
        }
        if !choices.is_empty() || (selection.asks_for_everything() && groups.is_empty()) {
            let flavors = version.flavors.iter().map(|flavor| shown(flavor, offer, selection)).collect();
            images.push(Image {
                name: &version.image,
                version: &version.version,
                classification: version.classification,
                expires: version.expires,
                flavors,
                choices,
            });
        }
    }
    let is_regional = offer.images.iter().any(OfferedVersion::is_regional);
    let regions = offer.regions.iter().map(String::as_str);
    let mut matrix = Matrix {
        schema: SCHEMA,
        profile: &offer.name,
        provider: &offer.provider,
        capabilities: &offer.definitions,
        declares_capabilities: offer.declares_capabilities,
        regions: regions.filter(|region| is_regional && selection.wants_region(region)).collect(),
        groups: groups.into_iter().map(|(_, group)| group).collect(),
        images,
        decisions: decisions.in_order,
    };
    if !selection.asks_for_everything() {
        drop_silent_groups(&mut matrix);
    }
    matrix
}

/// Groups that no choice mentions are not part of an answer.
fn drop_silent_groups(matrix: &mut Matrix<'_>) {
    let choices = matrix.images.iter().flat_map(|image| &image.choices);
    let mentioned: BTreeSet<usize> = choices.map(|choice| choice.group).collect();
    let mut positions = 0..;
    matrix.groups.retain(|_| positions.next().is_some_and(|position| mentioned.contains(&position)));
    for choice in matrix.images.iter_mut().flat_map(|image| &mut image.choices) {
        choice.group = mentioned.range(..choice.group).count();
    }
}

fn groups<'a>(resolution: &'a Resolution<'a>, selection: &Selection) -> Vec<(&'a TypeGroup<'a>, Group<'a>)> {
    let wanted = resolution.groups().iter().filter_map(|group| {
        let TypeGroup { capabilities, architecture, types, .. } = group;
        let types = types.iter().filter(|known| selection.wants_type(&known.name));
        let types = types.filter(|known| selection.wants_architecture(&known.architecture));
        let machine_types: Vec<_> =
            types.map(|known| MachineTypeName { name: &known.name, usable: known.usable }).collect();
        let is_wanted = !machine_types.is_empty();
        is_wanted.then(|| (group, Group { capabilities: capabilities.clone(), architecture, machine_types }))
    });
    wanted.collect()
}

/// The regions of an availability that were asked for.
#[derive(Clone, Debug)]
struct Regions<'a> {
    names: Vec<&'a str>,
    /// Whether they are all that were asked for, or the provider knows no regions.
    all: bool,
}

impl<'a> Regions<'a> {
    /// `None` when none of them was asked for.
    fn of(offer: &'a Offer, selection: &Selection, available: &Availability<'a>) -> Option<Self> {
        if available.regions.is_empty() {
            return Some(Self { names: Vec::new(), all: true });
        }
        let names: Vec<_> = available.regions.iter().copied().filter(|name| selection.wants_region(name)).collect();
        let asked = offer.regions.iter().filter(|region| selection.wants_region(region)).count();
        (!names.is_empty()).then_some(Self { all: names.len() == asked, names })
    }
}

/// A version in some regions.
struct Asked<'a, 's> {
    resolution: &'a Resolution<'a>,
    selection: &'s Selection,
    version: &'a OfferedVersion,
    available: &'a Availability<'a>,
    regions: Regions<'a>,
}

impl<'a> Asked<'a, '_> {
    /// What a group gets, if that is asked for.
    fn choice(&self, group: &TypeGroup<'_>, decisions: &mut Decisions) -> Option<Choice<'a>> {
        let Self { resolution, selection, version, available, regions } = self;
        let choice = resolution.choice(group, available);
        let flavor = if let FlavorChoice::Chosen(flavor) = choice { Some(flavor) } else { None };
        let chosen = flavor.and_then(|flavor| version.flavors.get(flavor));
        if !selection.wants_flavor(chosen, &regions.names, &resolution.offer().definitions) {
            return None;
        }
        let admitted = resolution.admits(version, group);
        let is_problem = admitted && flavor.is_none() && !version.is_expired();
        if selection.only_problems && !is_problem {
            return None;
        }
        Some(Choice {
            group: group.number,
            regions: if regions.all { Vec::new() } else { regions.names.clone() },
            outcome: ChoiceOutcome::from(&choice),
            flavor,
            candidates: available.flavors.clone(),
            decision: decisions.number(resolution, group, available),
            admitted,
        })
    }
}

/// Decisions, each written once.
#[derive(Default)]
struct Decisions {
    known: HashMap<(usize, usize), usize>,
    in_order: Vec<Decision>,
}

impl Decisions {
    fn number(&mut self, resolution: &Resolution<'_>, group: &TypeGroup<'_>, available: &Availability<'_>) -> usize {
        let in_order = &mut self.in_order;
        *self.known.entry((group.number, resolution.list(available))).or_insert_with(|| {
            in_order.push(resolution.decision(group, available));
            in_order.len() - 1
        })
    }
}

/// A flavor as far as the asked regions know it.
fn shown<'a>(flavor: &'a OfferedFlavor, offer: &'a Offer, selection: &Selection) -> Flavor<'a> {
    let is_regional = !flavor.by_region.is_empty();
    let wanted = offer.regions.iter().filter(|region| is_regional && selection.wants_region(region));
    let named = wanted.filter_map(|region| Some((region.as_str(), flavor.in_region(region)?)));
    let regions = named.filter(|(_, name)| selection.wants_reference(name)).collect();
    Flavor { capabilities: &flavor.capabilities, defect: flavor.defect, reference: flavor.anywhere.as_ref(), regions }
}
