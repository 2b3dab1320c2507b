//! Computes the MachineImages from lookups and sources. It creates new objects, updates known ones, completes
//! hand-made ones, marks the newest image of each flavor, and deletes unused images that no source has.

use std::borrow::Cow;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::image::{GONE, ImageObject, ImageToWrite, Location, location, lookup_label, object_name};
use super::write::{ImageEvent, Write};
use crate::images::catalogue::{Catalogue, merge};
use crate::images::lookup::Lookup;
use crate::images::record::{ImageRecord, ImageState, Release, text};
use crate::images::resolution::{FlavorKey, LookupMatch, Policy, Rejection, lookup_matches, ranked_for};
use crate::images::shared::Shared;
use crate::images::variants::Variants;
use wire::api::bounded_text::{Bound, named};
use wire::api::image_objects::{ImageLookup, ImageLookupStatus};

/// Maximum number of errors in the status of a lookup.
const MOST_ERRORS: usize = 10;
/// Maximum size of the reasons in an error.
const REASONS: Bound = Bound { items: 3, bytes: 200 };
/// Maximum age of `lastRun` in seconds before the status is renewed without other changes.
const RENEWAL_SECONDS: i64 = 3600;

/// State of the sources.
#[derive(Clone, Copy)]
pub enum Sources<'a> {
    /// The listed images.
    Listed(&'a Catalogue),
    /// The sources can't be read, with the reason. Nothing is created or deleted.
    Unknown(&'a str),
}

/// Responses of clouds and their time, by the name of the lookup.
pub type SourceResults = BTreeMap<String, (Arc<Result<Catalogue, String>>, Timestamp)>;

impl<'a> From<&'a Result<Catalogue, String>> for Sources<'a> {
    fn from(read: &'a Result<Catalogue, String>) -> Self {
        match read {
            Ok(catalogue) => Self::Listed(catalogue),
            Err(reason) => Self::Unknown(reason),
        }
    }
}

impl<'a> Sources<'a> {
    fn catalogue(self) -> Option<&'a Catalogue> {
        match self {
            Self::Listed(catalogue) => Some(catalogue),
            Self::Unknown(_) => None,
        }
    }
}

/// Images that a lookup has found, by name of the object.
#[derive(Default)]
struct Found<'a> {
    images: BTreeMap<String, FoundImage<'a>>,
    /// The products of each flavor.
    variants: BTreeMap<FlavorKey, Variants>,
    errors: Vec<String>,
    source: SourceState,
    /// When the source was read.
    read: Timestamp,
}

/// State of the source of a lookup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SourceState {
    /// The cloud has not responded yet, so the status of the lookup is not changed.
    #[default]
    Pending,
    /// The source can't be read.
    Unknown,
    /// The source lists images.
    Listed,
}

struct FoundImage<'a> {
    image: &'a ImageRecord,
    key: FlavorKey,
    is_usable: bool,
}

impl FoundImage<'_> {
    /// The image with the version and custom field values from the lookup.
    fn record(&self, shared: &mut Shared) -> ImageRecord {
        let mut record = self.image.clone();
        Arc::make_mut(&mut record.facts).0.extend(self.key.flavor.0.clone());
        let release = Release { image: self.key.image.clone(), version: self.key.version.clone() };
        record.release = Some(Arc::new(release));
        shared.share(&mut record);
        record
    }
}

impl Found<'_> {
    fn nothing(error: &str, source: SourceState) -> Self {
        Self { errors: vec![text(error)], source, ..Self::default() }
    }

    /// Whether images that were not found may be deleted. An error in a lookup or a source must not delete anything.
    fn is_complete(&self) -> bool {
        self.errors.is_empty() && !self.images.is_empty()
    }
}

/// Target state of an object.
struct Required<'a> {
    record: Cow<'a, ImageRecord>,
    lookup: Option<&'a str>,
    /// For a hand-made image, the source that lists it or was the last one to list it.
    listed_by: Option<String>,
    existing: Option<&'a Arc<ImageObject>>,
}

impl<'a> Required<'a> {
    /// Borrows the known record if it is equal, to save memory.
    fn known_or(known: &'a ImageRecord, record: ImageRecord) -> Cow<'a, ImageRecord> {
        if record == *known { Cow::Borrowed(known) } else { Cow::Owned(record) }
    }
}

/// Computes the writes for images and lookups. `used` are the names of images in use; `checked` is when the files
/// were read.
#[must_use]
pub fn discover(
    images: &[Arc<ImageObject>],
    lookups: &[Arc<ImageLookup>],
    ((files, checked), results): ((Sources<'_>, Timestamp), &SourceResults),
    used: &BTreeSet<&str>,
    now: Timestamp,
) -> Vec<Write> {
    let policy = Policy { now, owners: Vec::new(), filters: Vec::new() };
    let of_files = by_name(files);
    let found = lookups.iter().map(|lookup| {
        let found = match (&lookup.spec.ec2, results.get(name_of(&lookup.metadata))) {
            (None, _) => Found { read: checked, ..find(lookup, files, &of_files, &policy) },
            (Some(_), None) => Found::default(),
            (Some(_), Some((result, read))) => {
                let result = Sources::from(&**result);
                Found { read: *read, ..find(lookup, result, &by_name(result), &policy) }
            }
        };
        (lookup_label(lookup), found)
    });
    let mut found: Vec<(String, Found<'_>)> = found.collect();
    refuse_mixed_variants(&mut found);
    let found: BTreeMap<&str, &Found<'_>> = found.iter().map(|(lookup, found)| (lookup.as_str(), found)).collect();
    let listings = listings(files, results);
    let mut writes = Vec::new();
    let mut required = BTreeMap::new();
    let mut shared = Shared::default();
    let mut unreadable = BTreeSet::new();
    for image in images {
        // An unreadable object stays unchanged until a user repairs it.
        let Ok(known) = &image.record else {
            unreadable.insert(image.name.as_str());
            continue;
        };
        let mut listed_by = image.listed_by.as_deref().map(str::to_owned);
        let (lookup, record) = match image.lookup.as_deref() {
            // A finalizer blocks the deletion.
            lookup if image.is_being_deleted => (lookup, Some(Cow::Borrowed(known))),
            None => (None, Some(enriched(known, &mut listed_by, &listings))),
            Some(lookup) => followed(&image.name, lookup, known, &found, used, &mut shared),
        };
        match record {
            Some(record) => {
                let existing = Some(image);
                drop(required.insert(image.name.as_str(), Required { record, lookup, listed_by, existing }));
            }
            None => writes.push(Write::DeleteImage(Arc::clone(image))),
        }
    }
    for (name, lookup, image) in new_images(&required, &unreadable, &found) {
        let record = Cow::Owned(image.record(&mut shared));
        let new = Required { record, lookup: Some(lookup), listed_by: None, existing: None };
        required.entry(name).or_insert(new);
    }
    writes.extend(changes(required, &policy));
    writes.extend(lookups.iter().filter_map(|lookup| status(lookup, found.get(lookup_label(lookup).as_str())?, now)));
    writes
}

/// The images that a lookup can find by name, sorted.
fn by_name(sources: Sources<'_>) -> Vec<&ImageRecord> {
    let mut images: Vec<&ImageRecord> = sources.catalogue().map(Catalogue::images).unwrap_or_default().iter().collect();
    images.retain(|image| image.release.is_none());
    images.sort_by(|a, b| a.name.cmp(&b.name));
    images
}

fn name_of(metadata: &ObjectMeta) -> &str {
    metadata.name.as_deref().unwrap_or_default()
}

/// Finds the images of a lookup in the sources.
fn find<'a>(lookup: &ImageLookup, sources: Sources<'_>, by_name: &[&'a ImageRecord], policy: &Policy) -> Found<'a> {
    if let Sources::Unknown(reason) = sources {
        return Found::nothing(reason, SourceState::Unknown);
    }
    let known = match Lookup::new(name_of(&lookup.metadata), lookup.spec.clone()) {
        Ok(known) => known,
        Err(error) => return Found::nothing(&error.to_string(), SourceState::Listed),
    };
    let images = sources.catalogue().map(Catalogue::images).unwrap_or_default();
    if let Err(error) = known.ensure_known_facts(images) {
        return Found::nothing(&error.to_string(), SourceState::Listed);
    }
    let mut found = Found { source: SourceState::Listed, ..Found::default() };
    let mut rejected: BTreeMap<String, usize> = BTreeMap::new();
    let mut matches = lookup_matches(&known, by_name, policy);
    matches.sort_by(|a, b| (&a.key, &a.image.reference).cmp(&(&b.key, &b.image.reference)));
    for LookupMatch { key, image, reason, variant } in matches {
        // An existing image that is currently unusable neither creates nor deletes an object.
        let is_usable = match reason {
            None => true,
            Some(Rejection::Unavailable(_) | Rejection::Deprecated(_)) => false,
            Some(reason) => {
                *rejected.entry(reason.to_string()).or_default() += 1;
                continue;
            }
        };
        found.variants.entry(key.clone()).or_default().add(variant, &known, &image.name);
        match found.images.entry(object_name(image)) {
            Entry::Vacant(entry) => drop(entry.insert(FoundImage { image, key, is_usable })),
            Entry::Occupied(entry) => found.errors.push(text(&format!(
                "{} is in {} and in {}: only the first one counts",
                entry.key(),
                entry.get().image.location(),
                image.location()
            ))),
        }
    }
    if found.images.is_empty() {
        found.errors.push(no_image(&rejected));
    }
    found.errors.truncate(MOST_ERRORS);
    found
}

/// Why a lookup finds no image: no name matches, or the reasons against the images whose names match.
fn no_image(rejected: &BTreeMap<String, usize>) -> String {
    if rejected.is_empty() {
        return "the sources have no image that it means; images that it has made stay".to_owned();
    }
    let reasons: Vec<String> = rejected.iter().map(|(reason, count)| format!("{reason} ({count})")).collect();
    let reasons = named(&reasons, REASONS);
    format!("no image whose name matches can be used; images that it has made stay: {reasons}")
}

/// Adds an error to each lookup with images of several products in one flavor, its own or those of another lookup. The
/// newest of them is unknown, so none of them becomes an object.
fn refuse_mixed_variants(found: &mut [(String, Found<'_>)]) {
    let mut all: BTreeMap<FlavorKey, Variants> = BTreeMap::new();
    for (_, found) in &*found {
        for (key, variants) in &found.variants {
            all.entry(key.clone()).or_default().extend(variants);
        }
    }
    all.retain(|key, variants| variants.ensure_one(key).is_err());
    if all.is_empty() {
        return;
    }
    for (_, found) in found {
        let mixed = all.iter().filter(|(key, _)| found.variants.contains_key(*key));
        let errors: Vec<String> = mixed
            .filter_map(|(key, variants)| variants.ensure_one(key).err())
            .map(|mixed| text(&mixed.to_string()))
            .collect();
        found.errors.extend(errors);
        found.errors.truncate(MOST_ERRORS);
        for image in found.images.values_mut().filter(|image| all.contains_key(&image.key)) {
            image.is_usable = false;
        }
    }
}

/// A source that could be read.
struct SourceListing<'a> {
    /// Its name in the annotation of a hand-made image.
    name: String,
    catalogue: &'a Catalogue,
    /// Regions with at least one image. Other regions may have been removed from the source.
    regions: BTreeSet<Region<'a>>,
}

/// Provider, realm and region.
type Region<'a> = (&'a str, &'a str, Option<&'a str>);

fn region(image: &ImageRecord) -> Region<'_> {
    (image.provider, &image.realm, image.region.as_deref())
}

/// The sources that could be read.
fn listings<'a>(files: Sources<'a>, results: &'a SourceResults) -> Vec<SourceListing<'a>> {
    let listing = |name: String, source: Sources<'a>| {
        let catalogue = source.catalogue()?;
        Some(SourceListing { name, catalogue, regions: catalogue.images().iter().map(region).collect() })
    };
    let of_lookup = |(name, (result, _)): (&String, &'a _)| listing(format!("lookup {name}"), result_of(result));
    let of_files = listing("files".to_owned(), files);
    of_files.into_iter().chain(results.iter().filter_map(of_lookup)).collect()
}

fn result_of(result: &Arc<Result<Catalogue, String>>) -> Sources<'_> {
    Sources::from(&**result)
}

impl SourceListing<'_> {
    fn finds(&self, image: &ImageRecord) -> Option<&ImageRecord> {
        self.catalogue.find(image.provider, &image.realm, image.region.as_deref(), &image.reference)
    }

    /// Whether the source covers the image completely, or was the last one to list it and still lists others of its region.
    fn has_lost(&self, image: &ImageRecord, listed_by: Option<&str>) -> bool {
        let covers = self.catalogue.coverage().iter().any(|coverage| coverage.includes(image));
        covers || listed_by == Some(&self.name) && self.regions.contains(&region(image))
    }
}

/// Completes a hand-made image with data from the sources. It is gone if no source lists it, and one would: the one that
/// listed it before, or one that covers its region and owner completely.
fn enriched<'a>(
    known: &'a ImageRecord,
    listed_by: &mut Option<String>,
    listings: &[SourceListing<'_>],
) -> Cow<'a, ImageRecord> {
    let gone = ImageState::Unavailable(GONE.to_owned());
    let found = listings.iter().find_map(|listing| Some((listing, listing.finds(known)?)));
    let Some((listing, listed)) = found else {
        if listings.iter().any(|listing| listing.has_lost(known, listed_by.as_deref())) {
            return Required::known_or(known, ImageRecord { state: gone, ..known.clone() });
        }
        return Cow::Borrowed(known);
    };
    *listed_by = Some(listing.name.clone());
    let mut merged = known.clone();
    if merged.state == gone {
        merged.state = listed.state.clone();
    }
    merge(&mut merged, listed);
    // Values set by a user take precedence.
    merged.replicated_to = known.replicated_to.clone().or(merged.replicated_to);
    Required::known_or(known, merged)
}

/// The current data of an image that a lookup has created, with the lookup that finds it; `None` if it has to be
/// deleted.
fn followed<'a>(
    name: &str,
    lookup: &'a str,
    known: &'a ImageRecord,
    found: &BTreeMap<&'a str, &Found<'_>>,
    used: &BTreeSet<&str>,
    shared: &mut Shared,
) -> (Option<&'a str>, Option<Cow<'a, ImageRecord>>) {
    let own = found.get_key_value(lookup);
    let finds = |(_, found): &(&&'a str, &&Found<'_>)| found.images.contains_key(name);
    if let Some((finder, by)) = own.into_iter().chain(found).find(finds) {
        let record = by.images.get(name).map(|image| image.record(shared));
        return (Some(finder), record.map(|record| Required::known_or(known, record)));
    }
    // An image without a lookup only stays while it is in use.
    let is_gone = own.is_none_or(|(_, found)| found.is_complete());
    if is_gone && !used.contains(name) {
        return (None, None);
    }
    let state = if is_gone { ImageState::Unavailable(GONE.to_owned()) } else { known.state.clone() };
    (Some(lookup), Some(Required::known_or(known, ImageRecord { state, ..known.clone() })))
}

/// Newly found images without an object: names, lookups and images.
fn new_images<'a, 'f>(
    required: &BTreeMap<&'f str, Required<'_>>,
    unreadable: &BTreeSet<&str>,
    found: &BTreeMap<&'a str, &'f Found<'f>>,
) -> Vec<(&'f str, &'a str, &'f FoundImage<'f>)> {
    let known: BTreeSet<Location<'_>> = required.values().map(|required| location(&required.record)).collect();
    let mut new = Vec::new();
    for (lookup, found) in found {
        new.extend(found.images.iter().filter_map(|(name, image)| {
            let is_known = known.contains(&location(image.image))
                || required.contains_key(name.as_str())
                || unreadable.contains(name.as_str());
            (image.is_usable && !is_known).then_some((name.as_str(), *lookup, image))
        }));
    }
    new
}

/// The newest image of each flavor.
fn newest<'w>(required: &'w BTreeMap<&str, Required<'_>>, policy: &Policy) -> BTreeSet<Location<'w>> {
    let mut flavors: BTreeMap<_, Vec<&ImageRecord>> = BTreeMap::new();
    for Required { record, .. } in required.values() {
        let release = record.release.as_ref().map(|release| (&release.image, &release.version));
        let flavor = (record.provider, &record.realm, &record.region, release, &record.facts);
        flavors.entry(flavor).or_default().push(record);
    }
    let ranked = |images: &Vec<&'w ImageRecord>| {
        let resolved = ranked_for(key_of(images.first()?)?, images, policy, false);
        resolved.chosen().map(location)
    };
    flavors.values().filter_map(ranked).collect()
}

/// The flavor of an image whose data include its release.
fn key_of(record: &ImageRecord) -> Option<FlavorKey> {
    let release = record.release.as_ref()?;
    Some(FlavorKey {
        provider: record.provider,
        realm: record.realm.clone(),
        image: release.image.clone(),
        version: release.version.clone(),
        flavor: Arc::clone(&record.facts),
        region: record.region.clone(),
    })
}

/// The writes for objects that are not as required. There may be thousands of images, so their records are moved.
fn changes(required: BTreeMap<&str, Required<'_>>, policy: &Policy) -> Vec<Write> {
    let newest = newest(&required, policy);
    let are_latest: Vec<bool> =
        required.values().map(|required| newest.contains(&location(&required.record))).collect();
    drop(newest);
    let objects = required.into_iter().zip(are_latest);
    objects.filter_map(|((name, required), is_latest)| change(name, required, is_latest)).collect()
}

/// The write for one object, `None` if it is as required.
fn change(name: &str, required: Required<'_>, is_latest: bool) -> Option<Write> {
    let Required { record, lookup, listed_by, existing } = required;
    let is_written = existing.is_some_and(|existing| {
        existing.is_as_written
            && existing.is_latest == is_latest
            && existing.lookup.as_deref() == lookup
            && existing.listed_by.as_deref() == listed_by.as_deref()
            && existing.record.as_ref() == Ok(&*record)
    });
    if is_written {
        return None;
    }
    let image = Box::new(ImageToWrite {
        name: name.to_owned(),
        record: record.into_owned(),
        is_latest,
        lookup: lookup.map(str::to_owned),
        listed_by,
        existing: existing.map(Arc::clone),
    });
    match existing {
        None => Some(Write::CreateImage(image)),
        // A value may have another spelling after it is decoded.
        Some(existing) if image.object().is_ok_and(|image| existing.object() == Ok(image)) => None,
        Some(_) => Some(Write::ReplaceImage(image)),
    }
}

/// When the sources of a lookup were last read, according to its status.
pub(super) fn last_run(status: &ImageLookupStatus) -> Option<Timestamp> {
    status.last_run.as_ref().and_then(|time| time.parse().ok())
}

fn status(lookup: &ImageLookup, found: &Found<'_>, now: Timestamp) -> Option<Write> {
    if found.source == SourceState::Pending {
        return None;
    }
    let before = &lookup.status;
    let mut after = ImageLookupStatus {
        observed_generation: lookup.metadata.generation.unwrap_or_default(),
        last_run: before.last_run.clone(),
        found: i64::try_from(found.images.values().filter(|image| image.is_usable).count()).unwrap_or(i64::MAX),
        errors: found.errors.clone(),
        failing_since: if !found.errors.is_empty() { before.failing_since.clone() } else { None },
    };
    if !found.errors.is_empty() && after.failing_since.is_none() {
        after.failing_since = Some(now.to_string());
    }
    let is_known = found.source == SourceState::Listed;
    // Fractions of a second are not worth the space.
    let read = Timestamp::from_second(found.read.as_second()).unwrap_or(found.read);
    let is_old = last_run(before).is_none_or(|last| read.as_second() - last.as_second() >= RENEWAL_SECONDS);
    if after == *before && !(is_known && is_old) {
        return None;
    }
    if is_known {
        after.last_run = Some(read.to_string());
    }
    let is_news = !after.errors.is_empty() && after.errors != before.errors;
    let event = is_news.then(|| ImageEvent::LookupFailed(after.errors.clone()));
    Some(Write::LookupStatus(ImageLookup { status: after, ..lookup.clone() }, event))
}
