//! Whether two profiles give the same machine types the same images, and where they don't.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::Serialize;

use super::offered::{Offer, OfferedFlavor, OfferedType};
use super::resolution::{Availability, Outcome, Resolution};
use crate::api::gardener::{Capabilities, CapabilityDefinition};
use crate::capabilities::with_defaults;
use crate::provider::explanation::ImageName;

/// Everything that machine types get, compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Proof {
    /// Machine types that both sides have.
    pub machine_types: usize,
    /// Image versions of either side.
    pub versions: usize,
    /// Questions "what does this machine type get of this version in this region" that were asked of both.
    pub questions: usize,
    /// Questions that were answered differently.
    pub differences: Vec<Difference>,
    /// Images that machine types could have with some version before and with none after.
    pub lost: Vec<Lost>,
}

/// A question that is answered differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// Name of the image.
    pub image: String,
    /// The version.
    pub version: String,
    /// The machine types.
    pub machine_types: Vec<String>,
    /// In these regions; empty where images are the same in every region.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<String>,
    /// What they got.
    pub before: Answer,
    /// What they get.
    pub after: Answer,
}

/// What a machine type gets.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Answer {
    /// The image; none when none could be chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageName>,
    /// Whether Gardener admits it.
    pub admitted: bool,
    /// What machine and image have in common of the capabilities that change the machine itself.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub effect: BTreeMap<String, BTreeSet<String>>,
}

/// An image that machine types can't have any more, with any version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Lost {
    /// The machine types.
    pub machine_types: Vec<String>,
    /// The image.
    pub image: ImageName,
}

impl Proof {
    /// Whether every question is answered the same.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.differences.is_empty() && self.lost.is_empty()
    }
}

/// Machine types that are the same to both sides.
struct Kin<'a> {
    before: Asked<'a>,
    after: Asked<'a>,
    names: Vec<String>,
}

/// Machine types as one side sees them.
#[derive(Clone, Copy)]
struct Asked<'a> {
    resolution: &'a Resolution<'a>,
    group: usize,
    machine_type: &'a OfferedType,
}

/// Asks both sides about every machine type that both have.
#[must_use]
pub fn compare(before: &Resolution<'_>, after: &Resolution<'_>) -> Proof {
    let kin = kin(before, after);
    let questions = questions(before, after);
    let mut proof = Proof {
        machine_types: kin.iter().map(|kin| kin.names.len()).sum(),
        versions: questions.len(),
        ..Proof::default()
    };
    for kin in &kin {
        let known = proof.differences.len();
        for question in &questions {
            let regions: usize = question.parts.iter().map(|part| part.regions.len()).sum();
            proof.questions += kin.names.len() * regions;
            proof.differences.extend(kin.differences(question));
        }
        // Who gets the same everywhere loses nothing.
        if proof.differences.len() > known {
            proof.lost.extend(kin.lost(&questions));
        }
    }
    proof
}

/// A version that both sides are asked for.
struct Question<'a> {
    image: &'a str,
    version: &'a str,
    /// Its regions by what is available there, on both sides.
    parts: Vec<Part<'a>>,
}

/// Regions in which the same flavors are available.
struct Part<'a> {
    before: Option<(usize, &'a Availability)>,
    after: Option<(usize, &'a Availability)>,
    /// `None` alone where images are the same in every region.
    regions: Vec<Option<&'a str>>,
}

fn questions<'a>(before: &'a Resolution<'a>, after: &'a Resolution<'a>) -> Vec<Question<'a>> {
    let (of_before, of_after) = (positions(before.offer()), positions(after.offer()));
    let regions = regions(before.offer(), after.offer());
    let mut asked: Vec<(&str, &str)> = Vec::new();
    let mut known: HashSet<(&str, &str)> = HashSet::new();
    for version in before.offer().images.iter().chain(&after.offer().images) {
        let title = (version.image.as_str(), version.version.as_str());
        if known.insert(title) {
            asked.push(title);
        }
    }
    let question = |(image, version)| {
        let (was, is) = (of_before.get(&(image, version)).copied(), of_after.get(&(image, version)).copied());
        let mut parts: Vec<Part<'a>> = Vec::new();
        for region in &regions {
            let (was, is) = (available(before, was, *region), available(after, is, *region));
            let same = |side: &Option<(usize, &Availability)>, other: &Option<(usize, &Availability)>| {
                side.map(|(_, available)| std::ptr::from_ref(available))
                    == other.map(|(_, available)| std::ptr::from_ref(available))
            };
            match parts.iter_mut().find(|part| same(&part.before, &was) && same(&part.after, &is)) {
                Some(part) => part.regions.push(*region),
                None => parts.push(Part { before: was, after: is, regions: vec![*region] }),
            }
        }
        Question { image, version, parts }
    };
    asked.into_iter().map(question).collect()
}

/// What a version has in a region; nothing where the version or the region is unknown.
fn available<'a>(
    resolution: &'a Resolution<'a>,
    version: Option<usize>,
    region: Option<&str>,
) -> Option<(usize, &'a Availability)> {
    let version = version?;
    let offered = &resolution.offer().regions;
    let is_there = |available: &&Availability| {
        let mut names = available.regions.iter().filter_map(|position| offered.get(*position));
        available.regions.is_empty() || names.any(|name| Some(name.as_str()) == region)
    };
    resolution.availability(version).iter().find(is_there).map(|available| (version, available))
}

impl Kin<'_> {
    fn differences(&self, question: &Question<'_>) -> Vec<Difference> {
        let mut differing: BTreeMap<(Answer, Answer), Vec<String>> = BTreeMap::new();
        for part in &question.parts {
            let (was, is) = (self.before.given(part.before), self.after.given(part.after));
            for region in &part.regions {
                // What Gardener admits on neither side nobody can have.
                let nobody_can = !was.admitted && !is.admitted;
                if nobody_can || (was.image_in(*region) == is.image_in(*region) && was.rest() == is.rest()) {
                    continue;
                }
                let answers = (was.answer(*region), is.answer(*region));
                differing.entry(answers).or_default().extend(region.map(str::to_owned));
            }
        }
        let difference = |((before, after), regions)| Difference {
            image: question.image.to_owned(),
            version: question.version.to_owned(),
            machine_types: self.names.clone(),
            regions,
            before,
            after,
        };
        differing.into_iter().map(difference).collect()
    }

    /// Images of some region that these machine types could select with some version, and can't with any.
    fn lost(&self, questions: &[Question<'_>]) -> Vec<Lost> {
        let mut could: BTreeSet<(Option<&str>, ImageName)> = BTreeSet::new();
        let mut can = could.clone();
        for part in questions.iter().flat_map(|question| &question.parts) {
            for (side, set) in [(self.before.given(part.before), &mut could), (self.after.given(part.after), &mut can)]
            {
                for region in part.regions.iter().filter(|_| side.admitted) {
                    set.extend(side.image_in(*region).map(|image| (*region, image.clone())));
                }
            }
        }
        let lost: BTreeSet<ImageName> = could.difference(&can).map(|(_, image)| image.clone()).collect();
        lost.into_iter().map(|image| Lost { machine_types: self.names.clone(), image }).collect()
    }
}

/// What a side gives to machine types in a part of the regions.
struct Given<'a> {
    flavor: Option<&'a OfferedFlavor>,
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

    fn answer(&self, region: Option<&str>) -> Answer {
        Answer { image: self.image_in(region).cloned(), admitted: self.admitted, effect: self.effect.clone() }
    }
}

impl<'a> Asked<'a> {
    fn given(&self, available: Option<(usize, &Availability)>) -> Given<'a> {
        let offer = self.resolution.offer();
        let nothing = Given { flavor: None, admitted: false, effect: BTreeMap::new() };
        let Some((version, available)) = available else { return nothing };
        let Some(offered) = offer.images.get(version) else { return nothing };
        let admitted = offered.admits(self.machine_type, &offer.definitions);
        let Outcome::Chosen(flavor) = self.resolution.outcome(self.group, available) else {
            return Given { admitted, ..nothing };
        };
        let flavor = offered.flavors.get(flavor);
        Given { flavor, admitted, effect: flavor.map(|flavor| self.effect(&flavor.capabilities)).unwrap_or_default() }
    }

    fn effect(&self, flavor: &Capabilities) -> BTreeMap<String, BTreeSet<String>> {
        let offer = self.resolution.offer();
        let mut machine = self.machine_type.capabilities.clone();
        machine.0.extend(self.machine_type.of_old_format.0.clone());
        let (machine, flavor) =
            (with_defaults(&machine, &offer.definitions), with_defaults(flavor, &offer.definitions));
        let effects = offer.definitions.iter().filter(|definition| offer.effects.contains(&definition.name));
        let common = |definition: &CapabilityDefinition| {
            let [machine, flavor] = [&machine, &flavor].map(|side| side.values(&definition.name).unwrap_or_default());
            let common = machine.iter().filter(|value| flavor.contains(value)).cloned().collect();
            (definition.name.clone(), common)
        };
        effects.map(common).collect()
    }
}

fn kin<'a>(before: &'a Resolution<'a>, after: &'a Resolution<'a>) -> Vec<Kin<'a>> {
    let in_after: HashMap<&str, usize> =
        after.offer().machine_types.iter().enumerate().map(|(at, known)| (known.name.as_str(), at)).collect();
    let mut found: HashMap<_, usize> = HashMap::new();
    let mut kin: Vec<Kin<'a>> = Vec::new();
    for (position, machine_type) in before.offer().machine_types.iter().enumerate() {
        let Some(there) = in_after.get(machine_type.name.as_str()).copied() else { continue };
        let Some(other) = after.offer().machine_types.get(there) else { continue };
        let groups = (before.group_of_type(position), after.group_of_type(there));
        let of_old_format = format!("{:?} {:?}", machine_type.of_old_format.0, other.of_old_format.0);
        let known = *found.entry((groups, of_old_format)).or_insert_with(|| {
            kin.push(Kin {
                before: Asked { resolution: before, group: groups.0, machine_type },
                after: Asked { resolution: after, group: groups.1, machine_type: other },
                names: Vec::new(),
            });
            kin.len() - 1
        });
        if let Some(kin) = kin.get_mut(known) {
            kin.names.push(machine_type.name.clone());
        }
    }
    kin
}

fn positions(offer: &Offer) -> HashMap<(&str, &str), usize> {
    // Where a version is listed twice, the first counts, as for Gardener.
    let versions = offer.images.iter().enumerate().rev();
    versions.map(|(position, version)| ((version.image.as_str(), version.version.as_str()), position)).collect()
}

/// The regions to ask about; `None` alone where images are the same in every region.
fn regions<'a>(before: &'a Offer, after: &'a Offer) -> Vec<Option<&'a str>> {
    let is_regional = |offer: &Offer| {
        offer.images.iter().flat_map(|version| &version.flavors).any(|flavor| !flavor.by_region.is_empty())
    };
    if !is_regional(before) && !is_regional(after) {
        return vec![None];
    }
    let names: BTreeSet<&str> = before.regions.iter().chain(&after.regions).map(String::as_str).collect();
    names.into_iter().map(Some).collect()
}
