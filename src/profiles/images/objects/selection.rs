//! Selects the image of a consumer for each version. The first resolution stays and newer images are reported, by the
//! same rules as for a lock.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use jiff::Timestamp;

use super::image::{ImageObject, Place, place};
use super::write::{ImageEvent, Write};
use crate::images::catalogue::merge;
use crate::images::lock::{Lock, LockedImage};
use crate::images::lookup::ensure_known_facts;
use crate::images::record::{ImageRecord, ImageState, PUBLIC, fact, spelled, text};
use crate::images::reference::ImageReference;
use crate::images::resolution::{FlavorKey, Policy, Resolved, ranked_for};
use crate::images::versions::VersionRange;
use wire::api::bounded_text::{Bound, named};
use wire::api::gardener::Capabilities;
use wire::api::gotext::version::Version;
use wire::api::image_objects::{
    ImageCondition, ImageSelection, ImageSelectionSpec, ImageSelectionStatus, ImageUpgrade,
};

/// Maximum number of versions of a selection, newest first. Each becomes a label of a template.
const MOST_VERSIONS: usize = 100;
/// Maximum size of a condition's message.
const MESSAGE: Bound = Bound { items: 10, bytes: 1024 };

/// The images that objects describe, with the names of the objects.
#[derive(Default)]
pub struct KnownImages<'a> {
    images: Vec<Known<'a>>,
    /// Indexes of the images.
    places: HashMap<Place<'a>, usize>,
    references: HashMap<&'a str, &'a ImageReference>,
    /// The images by the name of their object.
    by_name: HashMap<&'a str, &'a ImageRecord>,
}

/// An image with the name of its object. If several objects describe the same image, the first by name counts.
struct Known<'a> {
    name: &'a str,
    first: &'a ImageRecord,
    /// Completed with data from the other objects.
    merged: Option<Box<ImageRecord>>,
}

impl Known<'_> {
    fn record(&self) -> &ImageRecord {
        self.merged.as_deref().unwrap_or(self.first)
    }
}

impl<'a> KnownImages<'a> {
    /// Collects the images of valid objects.
    #[must_use]
    pub fn new(objects: &'a [Arc<ImageObject>]) -> Self {
        let mut known = Self::default();
        for object in objects {
            let Ok(record) = &object.record else { continue };
            known.references.insert(&object.name, &record.reference);
            known.by_name.insert(&object.name, record);
            match known.places.get(&place(record)).and_then(|position| known.images.get_mut(*position)) {
                Some(first) => merge(first.merged.get_or_insert_with(|| Box::new(first.first.clone())), record),
                None => {
                    known.places.insert(place(record), known.images.len());
                    known.images.push(Known { name: &object.name, first: record, merged: None });
                }
            }
        }
        known
    }

    fn records(&self) -> impl Iterator<Item = &ImageRecord> {
        self.images.iter().map(Known::record)
    }

    /// Finds an image by its name at the cloud, in a region or in all regions.
    fn find(&self, key: &FlavorKey, reference: &ImageReference) -> Option<&Known<'a>> {
        [key.region.as_deref(), None].into_iter().find_map(|region| {
            let position = self.places.get(&(key.provider, key.realm.as_str(), region, reference.value.as_str()))?;
            self.images.get(*position)
        })
    }
}

/// Validated requirements of a selection.
struct Requirements<'a> {
    spec: &'a ImageSelectionSpec,
    provider: &'static str,
    realm: &'a str,
    architecture: String,
    flavor: Arc<Capabilities>,
    versions: VersionRange,
}

impl<'a> Requirements<'a> {
    fn read(spec: &'a ImageSelectionSpec) -> Result<Self, String> {
        let provider = ImageReference::provider(&spec.provider);
        let architecture = spelled(&spec.architecture);
        Ok(Self {
            spec,
            provider: provider.ok_or("spec.provider: no images of this provider are known here")?,
            realm: spec.realm.as_deref().unwrap_or(PUBLIC),
            flavor: Arc::new(Capabilities::from_iter([(fact::ARCHITECTURE, [architecture.as_str()])])),
            architecture,
            versions: VersionRange::parse(&spec.versions).map_err(|problem| format!("spec.versions: {problem}"))?,
        })
    }

    /// The version of an image, if it meets the requirements.
    fn version(&self, image: &ImageRecord) -> Option<String> {
        let release = image.release.as_ref().filter(|release| release.image == self.spec.image)?;
        let version = release.version.trim_start_matches('v');
        let is_meant = image.provider == self.provider
            && image.realm == self.realm
            && self.spec.region.as_deref().map_or(image.region.is_none(), |region| image.is_in(region))
            && image.encrypted == self.spec.encrypted
            && image.facts.values(fact::ARCHITECTURE).is_some_and(|known| known.contains(&self.architecture))
            && self.spec.filters.iter().all(|filter| image.matches(filter))
            && Version::parse(version).is_ok_and(|number| self.versions.contains(&number));
        is_meant.then(|| version.to_owned())
    }

    fn key(&self, version: &str) -> FlavorKey {
        FlavorKey {
            provider: self.provider,
            realm: self.realm.to_owned(),
            image: self.spec.image.clone(),
            version: version.to_owned(),
            flavor: Arc::clone(&self.flavor),
            region: self.spec.region.clone(),
        }
    }

    /// Each version with its images, best first.
    fn resolved<'i>(&self, images: &'i KnownImages<'_>, now: Timestamp) -> Vec<Resolved<'i>> {
        let mut found: BTreeMap<String, Vec<&ImageRecord>> = BTreeMap::new();
        for image in images.records() {
            if let Some(version) = self.version(image) {
                found.entry(version).or_default().push(image);
            }
        }
        let policy = Policy { now, owners: self.spec.owners.clone(), filters: Vec::new() };
        let in_order = self.spec.owners_in_order;
        let rank = |(version, images): (String, Vec<&'i ImageRecord>)| {
            ranked_for(self.key(&version), &images, &policy, in_order)
        };
        let mut resolved: Vec<Resolved<'i>> = found.into_iter().map(rank).collect();
        resolved.sort_by_key(|resolved| std::cmp::Reverse(resolved.key.number()));
        let is_used = |resolved: &Resolved<'_>| self.spec.images.contains_key(&resolved.key.version);
        let mut rank = 0;
        resolved.retain(|resolved| {
            rank += 1;
            rank <= MOST_VERSIONS || is_used(resolved)
        });
        resolved
    }

    /// The selected images as a lock.
    fn lock(&self, images: &KnownImages<'_>, now: Timestamp) -> Lock {
        let locked = |(version, name): (&String, &String)| {
            let unknown = || ImageReference { member: "name", value: name.clone() };
            let reference = images.references.get(name.as_str()).map_or_else(unknown, |known| (*known).clone());
            (self.key(version), LockedImage { reference, name: name.clone(), created: None, locked: now })
        };
        Lock { images: self.spec.images.iter().map(locked).collect() }
    }

    /// Name of the object for an image.
    fn name(&self, reference: &ImageReference, images: &KnownImages<'_>) -> Option<String> {
        images.find(&self.key(""), reference).map(|known| known.name.to_owned())
    }

    /// Selected images that are of another version, architecture or region.
    fn wrong(&self, images: &KnownImages<'_>) -> Vec<String> {
        let wrong = |(version, name): (&String, &String)| {
            let contradiction = contradiction(self, version, images.by_name.get(name.as_str())?)?;
            Some(text(&format!("{name} of {version} {contradiction}")))
        };
        self.spec.images.iter().filter_map(wrong).collect()
    }

    /// Selected images without an object, or whose object is not available.
    fn missing(&self, images: &KnownImages<'_>) -> Vec<String> {
        let is_there = |name: &str| {
            let known = images.references.get(name).and_then(|reference| images.find(&self.key(""), reference));
            known.is_some_and(|known| known.record().state == ImageState::Available)
        };
        let missing = self.spec.images.iter().filter(|(_, name)| !is_there(name));
        missing.map(|(version, name)| text(&format!("{name} of {version}"))).collect()
    }
}

/// How an image contradicts the requirements of a selection, for a version that names it.
fn contradiction(requirements: &Requirements<'_>, version: &str, record: &ImageRecord) -> Option<String> {
    let release = record.release.as_ref()?;
    let spec = requirements.spec;
    if release.image != spec.image || release.version.trim_start_matches('v') != version.trim_start_matches('v') {
        return Some(format!("is {} {}", release.image, release.version));
    }
    let architectures = record.facts.values(fact::ARCHITECTURE).unwrap_or_default();
    if !architectures.is_empty() && !architectures.contains(&requirements.architecture) {
        return Some(format!("is for {}", architectures.join(", ")));
    }
    let is_elsewhere = spec.region.as_deref().is_some_and(|region| !record.is_in(region));
    if is_elsewhere { Some(format!("is in {}", record.place())) } else { None }
}

/// The write for a selection: its first resolutions, otherwise its status.
#[must_use]
pub fn select(selection: &ImageSelection, images: &KnownImages<'_>, now: Timestamp) -> Option<Write> {
    let requirements = Requirements::read(&selection.spec).and_then(|requirements| {
        let known =
            ensure_known_facts("spec.filters", &selection.spec.filters, images.images.iter().map(Known::record));
        known.map(|()| requirements).map_err(|error| error.to_string())
    });
    let (upgrades, conditions) = match requirements {
        Err(problem) => (Vec::new(), [("Resolved", false, "InvalidSpec", problem), no_upgrade()]),
        Ok(requirements) => {
            let resolved = requirements.resolved(images, now);
            let mut lock = requirements.lock(images, now);
            let upgrades = upgrades(&requirements, &lock, &resolved, images, now);
            let added = lock.add(&resolved, now);
            let first = added.iter().filter_map(|change| {
                Some((change.key.version.clone(), requirements.name(&change.after.reference, images)?))
            });
            let first: BTreeMap<String, String> = first.collect();
            if !first.is_empty() {
                let mut selection = selection.clone();
                selection.spec.images.extend(first);
                return Some(Write::ReplaceSelection(selection));
            }
            let upgrade = upgrade_condition(&upgrades);
            (upgrades, [resolved_condition(&requirements, images), upgrade])
        }
    };
    let generation = selection.metadata.generation.unwrap_or_default();
    let conditions =
        conditions.into_iter().map(|content| condition(&selection.status.conditions, content, generation, now));
    let status = ImageSelectionStatus { observed_generation: generation, upgrades, conditions: conditions.collect() };
    if status == selection.status {
        return None;
    }
    let new = status.upgrades.iter().filter(|upgrade| !selection.status.upgrades.contains(upgrade));
    let new: Vec<ImageUpgrade> = new.cloned().collect();
    let event = (!new.is_empty()).then_some(ImageEvent::UpgradeAvailable(new));
    Some(Write::SelectionStatus(ImageSelection { status, ..selection.clone() }, event))
}

fn upgrades(
    requirements: &Requirements<'_>,
    lock: &Lock,
    resolved: &[Resolved<'_>],
    images: &KnownImages<'_>,
    now: Timestamp,
) -> Vec<ImageUpgrade> {
    let upgrade = |change: crate::images::lock::Change| {
        let version = change.key.version.clone();
        let image = requirements.spec.images.get(&version)?.clone();
        let newer = requirements.name(&change.after.reference, images).filter(|newer| *newer != image)?;
        Some(ImageUpgrade { version, image, newer, reason: change.cause.text() })
    };
    let is_listed = |key: &FlavorKey, locked: &LockedImage| images.find(key, &locked.reference).is_some();
    let mut upgrades: Vec<ImageUpgrade> =
        lock.available_among(resolved, is_listed, now).into_iter().filter_map(upgrade).collect();
    upgrades.sort_by(|a, b| a.version.cmp(&b.version));
    upgrades
}

/// A condition: type, whether it is true, reason, message.
type ConditionContent = (&'static str, bool, &'static str, String);

fn resolved_condition(requirements: &Requirements<'_>, images: &KnownImages<'_>) -> ConditionContent {
    let missing = requirements.missing(images);
    let wrong = requirements.wrong(images);
    if !wrong.is_empty() {
        return ("Resolved", false, "WrongImage", format!("Wrong: {}", named(&wrong, MESSAGE)));
    }
    match (requirements.spec.images.len(), missing.is_empty()) {
        (0, _) => {
            let region = requirements.spec.region.as_deref().unwrap_or("every region");
            let message = format!(
                "No MachineImage of {} for {} in {region} can be used",
                text(&requirements.spec.image),
                requirements.architecture
            );
            ("Resolved", false, "NoImage", message)
        }
        (_, false) => ("Resolved", false, "ImageGone", format!("Gone: {}", named(&missing, MESSAGE))),
        (count, true) => ("Resolved", true, "ImagesSelected", format!("Versions with an image: {count}")),
    }
}

fn no_upgrade() -> ConditionContent {
    ("UpgradeAvailable", false, "UpToDate", "No newer image is known".to_owned())
}

fn upgrade_condition(upgrades: &[ImageUpgrade]) -> ConditionContent {
    if upgrades.is_empty() {
        return no_upgrade();
    }
    let newer: Vec<String> = upgrades.iter().map(ToString::to_string).collect();
    ("UpgradeAvailable", true, "NewerImage", named(&newer, MESSAGE))
}

fn condition(known: &[ImageCondition], content: ConditionContent, generation: i64, now: Timestamp) -> ImageCondition {
    let (condition_type, holds, reason, message) = content;
    let status = if holds { "True" } else { "False" };
    let since = known.iter().find(|known| known.condition_type == condition_type && known.status == status);
    ImageCondition {
        condition_type: condition_type.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        last_transition_time: since.map_or_else(|| now.to_string(), |known| known.last_transition_time.clone()),
        observed_generation: generation,
    }
}
