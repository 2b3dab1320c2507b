//! The matrix of a profile: the flavor and image for each machine type and image version, or the reason why there is
//! none.
//!
//! Machine types with equal capabilities are one row, and equal decisions are written once, so that the matrix of a
//! large profile stays small enough for a browser.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

use super::resolution::{Availability, Decision, FlavorChoice, Resolution, ResolvedVersion, TypeGroup};
use super::selectable::{Defect, ResolvedProfile, SelectableFlavor, SelectableVersion};
use super::selection::Selection;
use decisions::provider::explanation::ImageName;
use wire::api::gardener::{Capabilities, CapabilityDefinition};
use wire::capabilities::Classification;

/// Name and version of the schema. New fields don't change it; changed meanings do.
pub const SCHEMA: &str = "cloudprofile-matrix/v1";

/// The matrix, serialized as JSON.
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
    /// Whether the profile itself declares them; otherwise, the old format implies them.
    pub declares_capabilities: bool,
    /// The selected regions; empty if the provider's images are the same in every region.
    pub regions: Vec<&'a str>,
    /// Groups of machine types with equal capabilities.
    pub groups: Vec<Group<'a>>,
    /// Image versions in the order of the profile.
    pub images: Vec<Image<'a>>,
    /// The reasons for choices.
    pub decisions: Vec<Decision>,
}

/// Machine types with equal capabilities.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Group<'a> {
    /// Their common capabilities, defaults included.
    pub capabilities: Capabilities,
    /// The architecture by which Gardener admits them; the same as in their capabilities, if the provider compares
    /// those.
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
    /// Its current classification.
    pub classification: Classification,
    /// When it expires, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// Its flavors in the order of the provider config.
    pub flavors: Vec<Flavor<'a>>,
    /// The choice for each group and each part of the regions.
    pub choices: Vec<Choice<'a>>,
}

/// A flavor of an image version.
#[derive(Clone, Debug, Serialize)]
pub struct Flavor<'a> {
    /// Capabilities that machines must have; a capability that is not listed allows every value.
    pub capabilities: &'a Capabilities,
    /// Why machines can't start from it although it can be chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub defect: Option<Defect>,
    /// The image of regions without an image of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<&'a ImageName>,
    /// The image of each region.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub regions: BTreeMap<&'a str, &'a ImageName>,
}

/// The choice for a group of machine types.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Choice<'a> {
    /// Position of the group.
    pub group: usize,
    /// The regions; absent if it applies to all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<&'a str>,
    /// The outcome of the choice.
    pub outcome: ChoiceOutcome,
    /// Position of the chosen flavor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flavor: Option<usize>,
    /// Positions of the available flavors; the verdicts of the decision have the same order.
    pub candidates: Vec<usize>,
    /// Position of the decision.
    pub decision: usize,
    /// Whether Gardener admits this combination.
    pub admitted: bool,
}

/// The outcome of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ChoiceOutcome {
    /// A flavor is chosen.
    Chosen,
    /// A flavor is chosen that machines can't start from.
    Unusable,
    /// Several flavors have the same capabilities.
    Tied,
    /// No flavor fits.
    NoneFits,
    /// There is no flavor, or none with an image in these regions.
    NoFlavors,
}

impl ChoiceOutcome {
    /// The text for messages.
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

/// Computes the selected part of the matrix.
#[must_use]
pub fn matrix<'a>(resolution: &'a Resolution<'a>, selection: &Selection) -> Matrix<'a> {
    let resolved_profile = resolution.resolved_profile();
    let mut decisions = Decisions::default();
    let groups = groups(resolution, selection);
    let mut images: Vec<Image<'a>> = Vec::new();
    for resolved in resolution.versions().iter().filter(|resolved| selection.selects_image(resolved.selectable)) {
        let version = resolved.selectable;
        let mut choices = Vec::new();
        for available in &resolved.availability {
            let Some(regions) = Regions::of(resolved_profile, selection, available) else { continue };
            let requested = Requested { resolution, selection, resolved, available, regions };
            choices.extend(groups.iter().enumerate().filter_map(|(number, (group, _))| {
                requested.choice(group, &mut decisions).map(|choice| Choice { group: number, ..choice })
            }));
        }
        if !choices.is_empty() || (selection.selects_everything() && groups.is_empty()) {
            let flavors = version.flavors.iter().map(|flavor| displayed(flavor, resolved_profile, selection)).collect();
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
    let is_regional = resolved_profile.images.iter().any(SelectableVersion::is_regional);
    let regions = resolved_profile.regions.iter().map(String::as_str);
    let mut matrix = Matrix {
        schema: SCHEMA,
        profile: &resolved_profile.name,
        provider: &resolved_profile.provider,
        capabilities: &resolved_profile.definitions,
        declares_capabilities: resolved_profile.declares_capabilities,
        regions: regions.filter(|region| is_regional && selection.selects_region(region)).collect(),
        groups: groups.into_iter().map(|(_, group)| group).collect(),
        images,
        decisions: decisions.in_order,
    };
    if !selection.selects_everything() {
        drop_silent_groups(&mut matrix);
    }
    matrix
}

/// Removes groups that no choice refers to.
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
    let required = resolution.groups().iter().filter_map(|group| {
        let TypeGroup { capabilities, architecture, types, .. } = group;
        let types = types.iter().filter(|known| selection.selects_type(&known.name));
        let types = types.filter(|known| selection.selects_architecture(&known.architecture));
        let machine_types: Vec<_> =
            types.map(|known| MachineTypeName { name: &known.name, usable: known.usable }).collect();
        let is_required = !machine_types.is_empty();
        is_required.then(|| (group, Group { capabilities: capabilities.clone(), architecture, machine_types }))
    });
    required.collect()
}

/// The selected regions of an availability.
#[derive(Clone, Debug)]
struct Regions<'a> {
    names: Vec<&'a str>,
    /// Whether all selected regions are included, or the provider's images are not regional.
    all: bool,
}

impl<'a> Regions<'a> {
    /// Returns `None` if none of the regions is selected.
    fn of(resolved_profile: &'a ResolvedProfile, selection: &Selection, available: &Availability<'a>) -> Option<Self> {
        if available.regions.is_empty() {
            return Some(Self { names: Vec::new(), all: true });
        }
        let names: Vec<_> = available.regions.iter().copied().filter(|name| selection.selects_region(name)).collect();
        let requested = resolved_profile.regions.iter().filter(|region| selection.selects_region(region)).count();
        (!names.is_empty()).then_some(Self { all: names.len() == requested, names })
    }
}

/// A version in some regions.
struct Requested<'a, 's> {
    resolution: &'a Resolution<'a>,
    selection: &'s Selection,
    resolved: &'a ResolvedVersion<'a>,
    available: &'a Availability<'a>,
    regions: Regions<'a>,
}

impl<'a> Requested<'a, '_> {
    /// The choice for a group, if it is selected.
    fn choice(&self, group: &TypeGroup<'_>, decisions: &mut Decisions) -> Option<Choice<'a>> {
        let Self { resolution, selection, resolved, available, regions } = self;
        let version = resolved.selectable;
        let choice = resolution.choice(group, available);
        let flavor = if let FlavorChoice::Chosen(flavor) = choice { Some(flavor) } else { None };
        let chosen = flavor.and_then(|flavor| version.flavors.get(flavor));
        if !selection.selects_flavor(chosen, &regions.names, &resolution.resolved_profile().definitions) {
            return None;
        }
        let admitted = resolution.admits(resolved, group);
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

/// Decisions; equal ones are stored once.
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

/// A flavor with the images of the selected regions.
fn displayed<'a>(
    flavor: &'a SelectableFlavor,
    resolved_profile: &'a ResolvedProfile,
    selection: &Selection,
) -> Flavor<'a> {
    let is_regional = !flavor.by_region.is_empty();
    let required = resolved_profile.regions.iter().filter(|region| is_regional && selection.selects_region(region));
    let named = required.filter_map(|region| Some((region.as_str(), flavor.in_region(region)?)));
    let regions = named.filter(|(_, name)| selection.selects_reference(name)).collect();
    Flavor { capabilities: &flavor.capabilities, defect: flavor.defect, reference: flavor.anywhere.as_ref(), regions }
}
