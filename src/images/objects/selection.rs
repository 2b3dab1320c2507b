//! Which image a consumer uses for each version: the first resolution stays, what is newer is announced. Decided from objects,
//! by the rules of the lock.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;

use super::image::{Place, place, record};
use super::write::Write;
use crate::api::bounded_text::{Bound, named};
use crate::api::gotext::version::Version;
use crate::api::image_objects::{
    ImageCondition, ImageSelection, ImageSelectionSpec, ImageSelectionStatus, ImageUpgrade, MachineImage,
};
use crate::images::catalogue::Catalogue;
use crate::images::lock::{Lock, LockedImage};
use crate::images::record::{ImageRecord, ImageState, PUBLIC, fact, spelled, text};
use crate::images::reference::ImageReference;
use crate::images::resolution::{FlavorKey, Policy, Resolved, ranked_for};
use crate::images::sources::Listing;
use crate::images::versions::VersionRange;

/// Most versions of a selection, the newest ones: each is a label of a template.
const MOST_VERSIONS: usize = 100;
/// Most of what a condition says.
const MESSAGE: Bound = Bound { items: 10, bytes: 1024 };

/// The images that objects describe, with the names of these.
#[derive(Default)]
pub struct KnownImages {
    catalogue: Catalogue,
    names: HashMap<Place, String>,
    references: HashMap<String, ImageReference>,
}

impl KnownImages {
    /// Reads objects; what can't be read is no image.
    #[must_use]
    pub fn new(images: &[MachineImage]) -> Self {
        let (mut names, mut references, mut records) = (HashMap::new(), HashMap::new(), Vec::new());
        for image in images {
            let (Some(name), Ok(record)) = (&image.metadata.name, record(&image.spec)) else { continue };
            // Of two objects for the same image the first one counts, in the order of names.
            names.entry(place(&record)).or_insert_with(|| name.clone());
            references.insert(name.clone(), record.reference.clone());
            records.push(record);
        }
        let catalogue = Catalogue::new(vec![Listing { images: records, ..Listing::default() }]).unwrap_or_default();
        Self { catalogue, names, references }
    }
}

/// A wish that can be looked for.
struct Wish<'a> {
    spec: &'a ImageSelectionSpec,
    provider: &'static str,
    realm: &'a str,
    architecture: String,
    versions: VersionRange,
}

impl<'a> Wish<'a> {
    fn read(spec: &'a ImageSelectionSpec) -> Result<Self, String> {
        let provider = ImageReference::provider(&spec.provider);
        Ok(Self {
            spec,
            provider: provider.ok_or("spec.provider: no images of this provider are known here")?,
            realm: spec.realm.as_deref().unwrap_or(PUBLIC),
            architecture: spelled(&spec.architecture),
            versions: VersionRange::parse(&spec.versions).map_err(|problem| format!("spec.versions: {problem}"))?,
        })
    }

    /// The version of an image, if it is meant.
    fn version(&self, image: &ImageRecord) -> Option<String> {
        let release = image.release.as_ref().filter(|release| release.image == self.spec.image)?;
        let version = release.version.trim_start_matches('v');
        let is_meant = image.provider == self.provider
            && image.realm == self.realm
            && (image.region.is_none() || image.region == self.spec.region)
            && image.encrypted == self.spec.encrypted
            && image.facts.values(fact::ARCHITECTURE).is_some_and(|known| known.contains(&self.architecture))
            && self.spec.filters.iter().all(|filter| filter.holds(image))
            && Version::parse(version).is_ok_and(|number| self.versions.contains(&number));
        is_meant.then(|| version.to_owned())
    }

    fn key(&self, version: &str) -> FlavorKey {
        FlavorKey {
            provider: self.provider,
            realm: self.realm.to_owned(),
            image: self.spec.image.clone(),
            version: version.to_owned(),
            flavor: BTreeMap::from([(fact::ARCHITECTURE.to_owned(), vec![self.architecture.clone()])]),
            region: self.spec.region.clone(),
        }
    }

    /// Each version with its images, the best first.
    fn resolved<'i>(&self, images: &'i KnownImages, now: Timestamp) -> Vec<Resolved<'i>> {
        let mut found: BTreeMap<String, Vec<&ImageRecord>> = BTreeMap::new();
        for image in images.catalogue.images() {
            if let Some(version) = self.version(image) {
                found.entry(version).or_default().push(image);
            }
        }
        let policy = Policy { now, owners: self.spec.owners.clone(), filters: Vec::new() };
        let rank = |(version, images): (String, Vec<&'i ImageRecord>)| ranked_for(self.key(&version), &images, &policy);
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

    /// What is used, as a lock.
    fn lock(&self, images: &KnownImages, now: Timestamp) -> Lock {
        let locked = |(version, name): (&String, &String)| {
            let unknown = || ImageReference { member: "name", value: name.clone() };
            let reference = images.references.get(name).cloned().unwrap_or_else(unknown);
            (self.key(version), LockedImage { reference, name: name.clone(), created: None, locked: now })
        };
        Lock { images: self.spec.images.iter().map(locked).collect() }
    }

    /// The object of an image.
    fn name(&self, reference: &ImageReference, images: &KnownImages) -> Option<String> {
        [self.spec.region.clone(), None].into_iter().find_map(|region| {
            images.names.get(&(self.provider, self.realm.to_owned(), region, reference.value.clone())).cloned()
        })
    }

    /// Used images that no object, or an object that is gone, stands for.
    fn missing(&self, images: &KnownImages) -> Vec<String> {
        let region = self.spec.region.as_deref();
        let is_there = |name: &str| {
            let reference = images.references.get(name)?;
            images
                .catalogue
                .find(self.provider, self.realm, region, reference)
                .filter(|image| image.state == ImageState::Available)
        };
        let missing = self.spec.images.iter().filter(|(_, name)| is_there(name).is_none());
        missing.map(|(version, name)| text(&format!("{name} of {version}"))).collect()
    }
}

/// What is to be written of a selection: its first resolutions, else what became of it.
#[must_use]
pub fn select(selection: &ImageSelection, images: &KnownImages, now: Timestamp) -> Option<Write> {
    let (upgrades, conditions) = match Wish::read(&selection.spec) {
        Err(problem) => (Vec::new(), [("Resolved", false, "InvalidSpec", problem), no_upgrade()]),
        Ok(wish) => {
            let resolved = wish.resolved(images, now);
            let mut lock = wish.lock(images, now);
            let upgrades = upgrades(&wish, &lock, &resolved, images, now);
            let added = lock.add(&resolved, now);
            let first = added
                .iter()
                .filter_map(|change| Some((change.key.version.clone(), wish.name(&change.after.reference, images)?)));
            let first: BTreeMap<String, String> = first.collect();
            if !first.is_empty() {
                let mut selection = selection.clone();
                selection.spec.images.extend(first);
                return Some(Write::ReplaceSelection(selection));
            }
            let upgrade = upgrade_condition(&upgrades);
            (upgrades, [resolved_condition(&wish, images), upgrade])
        }
    };
    let generation = selection.metadata.generation.unwrap_or_default();
    let conditions = conditions.into_iter().map(|told| condition(&selection.status.conditions, told, generation, now));
    let status = ImageSelectionStatus { observed_generation: generation, upgrades, conditions: conditions.collect() };
    (status != selection.status).then(|| Write::SelectionStatus(ImageSelection { status, ..selection.clone() }))
}

fn upgrades(
    wish: &Wish<'_>,
    lock: &Lock,
    resolved: &[Resolved<'_>],
    images: &KnownImages,
    now: Timestamp,
) -> Vec<ImageUpgrade> {
    let upgrade = |change: crate::images::lock::Change| {
        let version = change.key.version.clone();
        let image = wish.spec.images.get(&version)?.clone();
        let newer = wish.name(&change.after.reference, images).filter(|newer| *newer != image)?;
        Some(ImageUpgrade { version, image, newer, reason: change.cause.text() })
    };
    let mut upgrades: Vec<ImageUpgrade> =
        lock.available(resolved, &images.catalogue, now).into_iter().filter_map(upgrade).collect();
    upgrades.sort_by(|a, b| a.version.cmp(&b.version));
    upgrades
}

/// A condition: type, whether it holds, reason, message.
type Told = (&'static str, bool, &'static str, String);

fn resolved_condition(wish: &Wish<'_>, images: &KnownImages) -> Told {
    let missing = wish.missing(images);
    match (wish.spec.images.len(), missing.is_empty()) {
        (0, _) => {
            let region = wish.spec.region.as_deref().unwrap_or("every region");
            let message = format!(
                "No MachineImage of {} for {} in {region} can be used",
                text(&wish.spec.image),
                wish.architecture
            );
            ("Resolved", false, "NoImage", message)
        }
        (_, false) => ("Resolved", false, "ImageGone", format!("Gone: {}", named(&missing, MESSAGE))),
        (count, true) => ("Resolved", true, "ImagesSelected", format!("Versions with an image: {count}")),
    }
}

fn no_upgrade() -> Told {
    ("UpgradeAvailable", false, "UpToDate", "No newer image is known".to_owned())
}

fn upgrade_condition(upgrades: &[ImageUpgrade]) -> Told {
    if upgrades.is_empty() {
        return no_upgrade();
    }
    let told: Vec<String> = upgrades
        .iter()
        .map(|upgrade| format!("{}: {} after {}", upgrade.version, upgrade.newer, upgrade.image))
        .collect();
    ("UpgradeAvailable", true, "NewerImage", named(&told, MESSAGE))
}

fn condition(known: &[ImageCondition], told: Told, generation: i64, now: Timestamp) -> ImageCondition {
    let (condition_type, holds, reason, message) = told;
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
