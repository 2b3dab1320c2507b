//! Whether two profiles give the same machine types the same images, and where they differ.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::Serialize;

use super::resolution::{Availability, Resolution, ResolvedVersion, TypeGroup};
use super::selectable::{ResolvedProfile, SelectableFlavor, SelectableType, SelectableVersion};
use decisions::provider::explanation::ImageName;
use wire::api::gardener::{Capabilities, CapabilityDefinition};
use wire::capabilities::with_defaults;

/// The comparison of everything that machine types get.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EquivalenceCheck {
    /// Number of machine types that both sides have.
    pub machine_types: usize,
    /// Number of image versions of either side.
    pub versions: usize,
    /// Number of compared combinations of machine type, version and region.
    #[serde(rename = "questions")]
    pub combinations: usize,
    /// Combinations that differ.
    pub differences: Vec<Difference>,
    /// Images that machine types could get with some version before, and with none after.
    pub lost: Vec<Lost>,
}

/// A combination that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// Name of the image.
    pub image: String,
    /// The version.
    pub version: String,
    /// The machine types.
    pub machine_types: Vec<String>,
    /// The regions; empty if images are the same in every region.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<String>,
    /// The result before.
    pub before: Reply,
    /// The result after.
    pub after: Reply,
}

/// The result for a machine type.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Reply {
    /// The image; `None` if none could be chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageName>,
    /// Whether Gardener admits the combination.
    pub admitted: bool,
    /// The values that machine and image have in common, for capabilities that affect the machine itself.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub effect: BTreeMap<String, BTreeSet<String>>,
}

/// An image that machine types can't get any more with any version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Lost {
    /// The machine types.
    pub machine_types: Vec<String>,
    /// The image.
    pub image: ImageName,
}

impl EquivalenceCheck {
    /// Whether all combinations are equal.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.differences.is_empty() && self.lost.is_empty()
    }
}

/// Machine types that are equal on both sides.
struct ComparedTypes<'a> {
    before: Side<'a>,
    after: Side<'a>,
    names: Vec<String>,
}

/// Machine types on one side.
#[derive(Clone, Copy)]
struct Side<'a> {
    resolution: &'a Resolution<'a>,
    group: &'a TypeGroup<'a>,
    machine_type: &'a SelectableType,
}

/// Compares the results for every machine type that both sides have.
#[must_use]
pub fn compare(before: &Resolution<'_>, after: &Resolution<'_>) -> EquivalenceCheck {
    let types = compared_types(before, after);
    let queries = queries(before, after);
    let mut check = EquivalenceCheck {
        machine_types: types.iter().map(|types| types.names.len()).sum(),
        versions: queries.len(),
        ..EquivalenceCheck::default()
    };
    for types in &types {
        let known = check.differences.len();
        for query in &queries {
            let regions: usize = query.parts.iter().map(|part| part.regions.len()).sum();
            check.combinations += types.names.len() * regions;
            check.differences.extend(types.differences(query));
        }
        // Machine types without differences lose no images.
        if check.differences.len() > known {
            check.lost.extend(types.lost(&queries));
        }
    }
    check
}

/// A version that is compared.
struct Query<'a> {
    image: &'a str,
    version: &'a str,
    before: Option<&'a ResolvedVersion<'a>>,
    after: Option<&'a ResolvedVersion<'a>>,
    /// Its regions, grouped by the available flavors on both sides.
    parts: Vec<Part<'a>>,
}

/// Regions with the same available flavors.
struct Part<'a> {
    before: Option<&'a Availability<'a>>,
    after: Option<&'a Availability<'a>>,
    /// Contains only `None` if images are the same in every region.
    regions: Vec<Option<&'a str>>,
}

fn queries<'a>(before: &'a Resolution<'a>, after: &'a Resolution<'a>) -> Vec<Query<'a>> {
    let of_before = by_title(before);
    let of_after = by_title(after);
    let regions = regions(before.resolved_profile(), after.resolved_profile());
    let mut known: HashSet<(&str, &str)> = HashSet::new();
    let titles = before.versions().iter().chain(after.versions()).map(title).filter(|title| known.insert(*title));
    let query = |title| {
        let was = of_before.get(&title).copied();
        let is = of_after.get(&title).copied();
        let mut parts: Vec<Part<'a>> = Vec::new();
        for region in &regions {
            let before = available(was, *region);
            let after = available(is, *region);
            match parts.iter_mut().find(|part| part.before == before && part.after == after) {
                Some(part) => part.regions.push(*region),
                None => parts.push(Part { before, after, regions: vec![*region] }),
            }
        }
        Query { image: title.0, version: title.1, before: was, after: is, parts }
    };
    titles.map(query).collect()
}

/// The available flavors of a version in a region; `None` if the version or the region is unknown.
fn available<'a>(version: Option<&'a ResolvedVersion<'a>>, region: Option<&str>) -> Option<&'a Availability<'a>> {
    let is_there = |available: &&Availability<'_>| {
        available.regions.is_empty() || region.is_some_and(|region| available.regions.contains(&region))
    };
    version?.availability.iter().find(is_there)
}

impl ComparedTypes<'_> {
    fn differences(&self, query: &Query<'_>) -> Vec<Difference> {
        let mut differing: BTreeMap<(Reply, Reply), Vec<String>> = BTreeMap::new();
        for part in &query.parts {
            let was = self.before.given(query.before, part.before);
            let is = self.after.given(query.after, part.after);
            for region in &part.regions {
                // Combinations that Gardener admits on neither side are not available.
                let nobody_can = !was.admitted && !is.admitted;
                if nobody_can || (was.image_in(*region) == is.image_in(*region) && was.rest() == is.rest()) {
                    continue;
                }
                let results = (was.result(*region), is.result(*region));
                differing.entry(results).or_default().extend(region.map(str::to_owned));
            }
        }
        let difference = |((before, after), regions)| Difference {
            image: query.image.to_owned(),
            version: query.version.to_owned(),
            machine_types: self.names.clone(),
            regions,
            before,
            after,
        };
        differing.into_iter().map(difference).collect()
    }

    /// Images in some region that these machine types could get with some version before, and can't get with any after.
    fn lost<'q>(&self, queries: &[Query<'q>]) -> Vec<Lost> {
        let mut could: BTreeSet<(Option<&'q str>, ImageName)> = BTreeSet::new();
        let mut can = could.clone();
        for query in queries {
            for Part { before, after, regions } in &query.parts {
                let was = (self.before.given(query.before, *before), &mut could);
                let is = (self.after.given(query.after, *after), &mut can);
                for (side, images) in [was, is].into_iter().filter(|(side, _)| side.admitted) {
                    let there = |region: &Option<&'q str>| Some((*region, side.image_in(*region)?.clone()));
                    images.extend(regions.iter().filter_map(there));
                }
            }
        }
        let lost: BTreeSet<ImageName> = could.difference(&can).map(|(_, image)| image.clone()).collect();
        lost.into_iter().map(|image| Lost { machine_types: self.names.clone(), image }).collect()
    }
}

/// The result for machine types in some regions.
struct Given<'a> {
    flavor: Option<&'a SelectableFlavor>,
    admitted: bool,
    effect: BTreeMap<String, BTreeSet<String>>,
}

impl Given<'_> {
    fn image_in(&self, region: Option<&str>) -> Option<&ImageName> {
        match region {
            Some(region) => self.flavor?.in_region(region),
            None => self.flavor?.anywhere.as_ref(),
        }
    }

    fn rest(&self) -> (bool, &BTreeMap<String, BTreeSet<String>>) {
        (self.admitted, &self.effect)
    }

    fn result(&self, region: Option<&str>) -> Reply {
        Reply { image: self.image_in(region).cloned(), admitted: self.admitted, effect: self.effect.clone() }
    }
}

impl<'a> Side<'a> {
    fn given(&self, version: Option<&'a ResolvedVersion<'a>>, available: Option<&Availability<'_>>) -> Given<'a> {
        let nothing = Given { flavor: None, admitted: false, effect: BTreeMap::new() };
        let (Some(ResolvedVersion { selectable, .. }), Some(available)) = (version, available) else { return nothing };
        let admitted = selectable.admits(self.machine_type, &self.resolution.resolved_profile().definitions);
        let chosen = self.resolution.chosen(self.group, available).and_then(|flavor| selectable.flavors.get(flavor));
        let effect = chosen.map(|flavor| self.effect(&flavor.capabilities)).unwrap_or_default();
        Given { flavor: chosen, admitted, effect }
    }

    fn effect(&self, flavor: &Capabilities) -> BTreeMap<String, BTreeSet<String>> {
        let resolved_profile = self.resolution.resolved_profile();
        let mut machine = self.machine_type.capabilities.clone();
        machine.0.extend(self.machine_type.of_old_format.0.clone());
        let machine = with_defaults(&machine, &resolved_profile.definitions);
        let flavor = with_defaults(flavor, &resolved_profile.definitions);
        let effects = resolved_profile
            .definitions
            .iter()
            .filter(|definition| resolved_profile.effects.contains(&definition.name));
        let common = |definition: &CapabilityDefinition| {
            let [machine, flavor] = [&machine, &flavor].map(|side| side.values(&definition.name).unwrap_or_default());
            let common = machine.iter().filter(|value| flavor.contains(value)).cloned().collect();
            (definition.name.clone(), common)
        };
        effects.map(common).collect()
    }
}

fn compared_types<'a>(before: &'a Resolution<'a>, after: &'a Resolution<'a>) -> Vec<ComparedTypes<'a>> {
    let side = |resolution, (machine_type, group)| Side { resolution, group, machine_type };
    let in_after: HashMap<&str, Side<'a>> =
        after.types().map(|known| (known.0.name.as_str(), side(after, known))).collect();
    let mut found: HashMap<_, usize> = HashMap::new();
    let mut compared: Vec<ComparedTypes<'a>> = Vec::new();
    for before in before.types().map(|known| side(before, known)) {
        let Some(after) = in_after.get(before.machine_type.name.as_str()).copied() else { continue };
        let of_old_format = [before, after].map(|side| format!("{:?}", side.machine_type.of_old_format.0));
        let known = *found.entry((before.group.number, after.group.number, of_old_format)).or_insert_with(|| {
            compared.push(ComparedTypes { before, after, names: Vec::new() });
            compared.len() - 1
        });
        if let Some(types) = compared.get_mut(known) {
            types.names.push(before.machine_type.name.clone());
        }
    }
    compared
}

fn title<'a>(version: &ResolvedVersion<'a>) -> (&'a str, &'a str) {
    (&version.selectable.image, &version.selectable.version)
}

/// If a version is listed twice, the first one is used, as in Gardener.
fn by_title<'a>(resolution: &'a Resolution<'a>) -> HashMap<(&'a str, &'a str), &'a ResolvedVersion<'a>> {
    resolution.versions().iter().rev().map(|version| (title(version), version)).collect()
}

/// The regions to compare; only `None` if images are the same in every region.
fn regions<'a>(before: &'a ResolvedProfile, after: &'a ResolvedProfile) -> Vec<Option<&'a str>> {
    if !before.images.iter().chain(&after.images).any(SelectableVersion::is_regional) {
        return vec![None];
    }
    let names: BTreeSet<&str> = before.regions.iter().chain(&after.regions).map(String::as_str).collect();
    names.into_iter().map(Some).collect()
}
