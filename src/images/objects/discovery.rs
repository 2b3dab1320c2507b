//! From what lookups find in the sources to the objects that there should be: new ones are made, known ones follow the sources,
//! hand-made ones are enriched, the newest of each flavor is marked, and what is gone and unused is deleted.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::image::{GONE, Place, labels, made_by, object_name, place, record, spec};
use super::write::Write;
use crate::api::image_objects::{ImageLookup, ImageLookupStatus, MachineImage, MachineImageSpec};
use crate::images::catalogue::{Catalogue, merge};
use crate::images::lookup::Lookup;
use crate::images::record::{ImageRecord, ImageState, Release, text};
use crate::images::resolution::{FlavorKey, Policy, Rejection, lookup_matches, ranked_for};

/// Most errors in the status of a lookup.
const MOST_ERRORS: usize = 10;
/// After so many seconds the status says anew that everything was found as before.
const RENEWAL_SECONDS: i64 = 3600;

/// What the sources list.
#[derive(Clone, Copy)]
pub enum Sources<'a> {
    /// Images.
    Listed(&'a Catalogue),
    /// It is not known, and why: nothing is made or deleted.
    Unknown(&'a str),
}

impl<'a> Sources<'a> {
    fn catalogue(self) -> Option<&'a Catalogue> {
        match self {
            Self::Listed(catalogue) => Some(catalogue),
            Self::Unknown(_) => None,
        }
    }
}

/// What a lookup finds, by the names of objects.
#[derive(Default)]
struct Found<'a> {
    images: BTreeMap<String, FoundImage<'a>>,
    errors: Vec<String>,
}

struct FoundImage<'a> {
    image: &'a ImageRecord,
    key: FlavorKey,
    is_usable: bool,
}

impl FoundImage<'_> {
    /// The image as the lookup means it: with its version, and the values of custom fields.
    fn record(&self) -> ImageRecord {
        let mut record = self.image.clone();
        record.facts.0.extend(self.key.flavor.clone());
        record.release = Some(Release { image: self.key.image.clone(), version: self.key.version.clone() });
        record
    }
}

impl Found<'_> {
    fn nothing(error: &str) -> Self {
        Self { images: BTreeMap::new(), errors: vec![text(error)] }
    }

    /// Whether what it does not find is gone. A lookup, or a source, with a mistake in it deletes nothing.
    fn is_complete(&self) -> bool {
        self.errors.is_empty() && !self.images.is_empty()
    }
}

/// An object as it should be.
struct Wanted<'a> {
    record: ImageRecord,
    lookup: Option<&'a str>,
    existing: Option<&'a MachineImage>,
}

/// What is to be written of images and lookups. `used` are the names of images that somebody uses.
#[must_use]
pub fn discover(
    images: &[MachineImage],
    lookups: &[ImageLookup],
    sources: Sources<'_>,
    used: &BTreeSet<String>,
    now: Timestamp,
) -> Vec<Write> {
    let policy = Policy { now, owners: Vec::new(), filters: Vec::new() };
    let mut by_name: Vec<&ImageRecord> =
        sources.catalogue().map(Catalogue::images).unwrap_or_default().iter().collect();
    by_name.retain(|image| image.release.is_none());
    by_name.sort_by(|a, b| a.name.cmp(&b.name));
    let found = lookups.iter().map(|lookup| (name_of(&lookup.metadata), find(lookup, sources, &by_name, &policy)));
    let found: BTreeMap<&str, Found<'_>> = found.collect();
    let mut writes = Vec::new();
    let mut wanted = BTreeMap::new();
    for image in images {
        // What can't be read stays as it is: somebody has to mend it.
        let Ok(known) = record(&image.spec) else { continue };
        let (lookup, record) = match made_by(image) {
            // A finalizer of somebody holds it.
            lookup if image.metadata.deletion_timestamp.is_some() => (lookup, Some(known)),
            None => (None, Some(enriched(known, sources))),
            Some(lookup) => followed(image, lookup, known, &found, used),
        };
        match record {
            Some(record) => {
                wanted.insert(name_of(&image.metadata).to_owned(), Wanted { record, lookup, existing: Some(image) });
            }
            None => writes.push(Write::DeleteImage(image.clone())),
        }
    }
    add_new(&mut wanted, &found);
    writes.extend(changes(wanted, &policy));
    writes.extend(
        lookups.iter().filter_map(|lookup| status(lookup, found.get(name_of(&lookup.metadata))?, sources, now)),
    );
    writes
}

fn name_of(metadata: &ObjectMeta) -> &str {
    metadata.name.as_deref().unwrap_or_default()
}

/// What a lookup finds in the sources.
fn find<'a>(lookup: &ImageLookup, sources: Sources<'_>, by_name: &[&'a ImageRecord], policy: &Policy) -> Found<'a> {
    if let Sources::Unknown(reason) = sources {
        return Found::nothing(reason);
    }
    let known = match Lookup::new(name_of(&lookup.metadata), lookup.spec.clone()) {
        Ok(known) => known,
        Err(error) => return Found::nothing(&error.to_string()),
    };
    let mut found = Found::default();
    let mut matches = lookup_matches(&known, by_name, policy);
    matches.sort_by(|(a, of_a, _), (b, of_b, _)| (a, &of_a.reference).cmp(&(b, &of_b.reference)));
    for (key, image, reason) in matches {
        // One that is there and can't be used now is no reason to make an object, and none to delete one.
        let is_usable = match reason {
            None => true,
            Some(Rejection::Unavailable(_) | Rejection::Deprecated(_)) => false,
            Some(_) => continue,
        };
        match found.images.entry(object_name(image)) {
            Entry::Vacant(entry) => drop(entry.insert(FoundImage { image, key, is_usable })),
            Entry::Occupied(entry) => found.errors.push(text(&format!(
                "{} is in {} and in {}: only the first one counts",
                entry.key(),
                entry.get().image.place(),
                image.place()
            ))),
        }
    }
    if found.images.is_empty() {
        found.errors.push("the sources have no image that it means; images that it has made stay".to_owned());
    }
    found.errors.truncate(MOST_ERRORS);
    found
}

/// A hand-made image with what the sources know of it.
fn enriched(mut known: ImageRecord, sources: Sources<'_>) -> ImageRecord {
    let catalogue = sources.catalogue();
    let listed = catalogue
        .and_then(|catalogue| catalogue.find(known.provider, &known.realm, known.region.as_deref(), &known.reference));
    if let Some(listed) = listed {
        merge(&mut known, listed.clone());
    }
    known
}

/// An image that a lookup has made, as the sources know it now, with the lookup that finds it; nothing if it has to go.
fn followed<'a>(
    image: &'a MachineImage,
    lookup: &'a str,
    mut known: ImageRecord,
    found: &BTreeMap<&'a str, Found<'_>>,
    used: &BTreeSet<String>,
) -> (Option<&'a str>, Option<ImageRecord>) {
    let name = name_of(&image.metadata);
    let own = found.get_key_value(lookup);
    let finds = |(_, found): &(&&'a str, &Found<'_>)| found.images.contains_key(name);
    if let Some((finder, by)) = own.into_iter().chain(found).find(finds) {
        return (Some(finder), by.images.get(name).map(FoundImage::record));
    }
    // Without its lookup an image stays only where it is used.
    let is_gone = own.is_none_or(|(_, found)| found.is_complete());
    if is_gone && !used.contains(name) {
        return (None, None);
    }
    if is_gone {
        known.state = ImageState::Unavailable(GONE.to_owned());
    }
    (Some(lookup), Some(known))
}

/// Adds what is found for the first time, unless somebody has made an object for it.
fn add_new<'a>(wanted: &mut BTreeMap<String, Wanted<'a>>, found: &BTreeMap<&'a str, Found<'_>>) {
    let known: BTreeSet<Place> = wanted.values().map(|wanted| place(&wanted.record)).collect();
    for (lookup, found) in found {
        for (name, image) in &found.images {
            if image.is_usable && !known.contains(&place(image.image)) && !wanted.contains_key(name) {
                let new = Wanted { record: image.record(), lookup: Some(lookup), existing: None };
                wanted.insert(name.clone(), new);
            }
        }
    }
}

/// The images that are the newest of their flavors.
fn newest(wanted: &BTreeMap<String, Wanted<'_>>, policy: &Policy) -> BTreeSet<Place> {
    let mut flavors: BTreeMap<_, Vec<&ImageRecord>> = BTreeMap::new();
    for Wanted { record, .. } in wanted.values() {
        let release = record.release.as_ref().map(|release| (&release.image, &release.version));
        let flavor = (record.provider, &record.realm, &record.region, release, &record.facts.0);
        flavors.entry(flavor).or_default().push(record);
    }
    let ranked = |images: &Vec<&ImageRecord>| {
        let resolved = ranked_for(key_of(images.first()?)?, images, policy);
        resolved.chosen().map(place)
    };
    flavors.values().filter_map(ranked).collect()
}

/// The flavor of an image that says itself what it is.
fn key_of(record: &ImageRecord) -> Option<FlavorKey> {
    let release = record.release.clone()?;
    Some(FlavorKey {
        provider: record.provider,
        realm: record.realm.clone(),
        image: release.image,
        version: release.version,
        flavor: record.facts.0.clone(),
        region: record.region.clone(),
    })
}

fn changes(wanted: BTreeMap<String, Wanted<'_>>, policy: &Policy) -> Vec<Write> {
    let newest = newest(&wanted, policy);
    let change = |(name, wanted): (String, Wanted<'_>)| {
        let Wanted { record, lookup, existing } = wanted;
        let metadata = existing.map(|image| image.metadata.clone());
        let mut metadata = metadata.unwrap_or_else(|| ObjectMeta { name: Some(name), ..ObjectMeta::default() });
        let known = metadata.labels.get_or_insert_default();
        for (label, value) in labels(&record, newest.contains(&place(&record)), lookup) {
            match value {
                Some(value) => known.insert(label, value),
                None => known.remove(&label),
            };
        }
        let spec: MachineImageSpec = spec(&record, record.release.as_ref()?);
        let image = MachineImage { metadata, spec };
        match existing {
            None => Some(Write::CreateImage(image)),
            Some(existing) if *existing == image => None,
            Some(_) => Some(Write::ReplaceImage(image)),
        }
    };
    wanted.into_iter().filter_map(change).collect()
}

fn status(lookup: &ImageLookup, found: &Found<'_>, sources: Sources<'_>, now: Timestamp) -> Option<Write> {
    let before = &lookup.status;
    let mut after = ImageLookupStatus {
        observed_generation: lookup.metadata.generation.unwrap_or_default(),
        last_run: before.last_run.clone(),
        found: i64::try_from(found.images.values().filter(|image| image.is_usable).count()).unwrap_or(i64::MAX),
        errors: found.errors.clone(),
    };
    let is_known = sources.catalogue().is_some();
    let last = before.last_run.as_ref().and_then(|time| time.parse::<Timestamp>().ok());
    let is_old = last.is_none_or(|last| now.as_second() - last.as_second() >= RENEWAL_SECONDS);
    if after == *before && !(is_known && is_old) {
        return None;
    }
    if is_known {
        after.last_run = Some(now.to_string());
    }
    Some(Write::LookupStatus(ImageLookup { status: after, ..lookup.clone() }))
}
