//! Reads listings, lookups, locks and CloudProfiles from files.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::Args;
use jiff::Timestamp;
use serde_json::Value;

use crate::cli::cloudprofile::source::{Location, placed};
use crate::cli::evidence::{Evidence, no_match};
use crate::cli::exit::wrong_usage;
use crate::cli::forecast::moment;
use crate::cli::in_parallel::in_parallel;
use crate::cli::preview::words::counted;
use crate::cli::terminal::complain;
use profiles::images::catalogue::Catalogue;
use profiles::images::lock::Lock;
use profiles::images::lock_file;
use profiles::images::lookup::{Filter, Lookup, ensure_known_facts};
use profiles::images::record::ImageRecord;
use profiles::images::resolution::{FlavorKey, Policy, Resolved, resolve};
use profiles::images::source_path::SourcePath;
use profiles::images::sources::{Listing, MAX_BYTES, read};
use runtime::reader::files::{NamedFile, files, name_of};
use runtime::reader::objects;
use wire::api::bounded_text::{Bound, named};
use wire::api::gotext::locations::locations;
use wire::api::gotext::version::Version;

/// Arguments that select available and usable images.
#[derive(Debug, Args)]
pub(super) struct CatalogueArguments {
    /// File or folder with image listings. Put the region before the file if the listing does not contain it.
    /// docs/images.md describes the formats.
    #[arg(long = "source", value_name = "[REGION=]FILE")]
    sources: Vec<SourcePath>,
    /// File or folder with ImageLookups, which map image names to versions and flavors.
    #[arg(long, value_name = "FILE")]
    lookups: Vec<PathBuf>,
    /// Only use images of this account, project or gallery. Repeatable.
    #[arg(long = "owner", value_name = "OWNER")]
    owners: Vec<String>,
    /// Only use images with one of these values of a fact or a tag (`tag:NAME`).
    #[arg(long = "where", value_name = "FACT=VALUE,…", value_parser = filter)]
    filters: Vec<Filter>,
    /// Day or time to evaluate. Defaults to now.
    #[arg(long, value_name = "DATE", value_parser = moment)]
    at: Option<Timestamp>,
}

/// Arguments that select flavors.
#[derive(Debug, Args)]
pub(super) struct Selection {
    /// Only include this image.
    #[arg(long, value_name = "NAME")]
    image: Option<String>,
    /// Only include this version.
    #[arg(long, value_name = "VERSION")]
    image_version: Option<String>,
    /// Only include this region.
    #[arg(long, value_name = "REGION")]
    region: Option<String>,
}

impl Selection {
    /// Keeps the selected flavors.
    ///
    /// # Errors
    /// If there are none. The error suggests the nearest match.
    pub(super) fn retain(&self, resolved: &mut Vec<Resolved<'_>>) -> anyhow::Result<()> {
        retain_named("image", self.image.as_deref(), resolved, |key| Some(&key.image))?;
        if let Some(version) = &self.image_version
            && !resolved.is_empty()
            && resolved.iter().all(|resolved| resolved.key.version != *version)
        {
            return Err(no_version(version, resolved));
        }
        retain_named("region", self.region.as_deref(), resolved, |key| key.region.as_ref())?;
        resolved.retain(|resolved| self.has(resolved));
        if resolved.is_empty() && !self.is_empty() {
            bail!("no flavor has this image, version and region together");
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        let Self { image, image_version, region } = self;
        image.is_none() && image_version.is_none() && region.is_none()
    }

    fn has(&self, resolved: &Resolved<'_>) -> bool {
        let key = &resolved.key;
        self.image.as_ref().is_none_or(|image| *image == key.image)
            && self.image_version.as_ref().is_none_or(|version| *version == key.version)
            && self.region.as_ref().is_none_or(|region| key.region.as_ref().is_none_or(|known| known == region))
    }
}

/// Keeps the flavors with the selected name, and those without a name. Fails if no flavor has the name.
fn retain_named(
    what: &str,
    selected: Option<&str>,
    resolved: &mut Vec<Resolved<'_>>,
    name: fn(&FlavorKey) -> Option<&String>,
) -> anyhow::Result<()> {
    let Some(selected) = selected else { return Ok(()) };
    let is_selected = |resolved: &Resolved<'_>| name(&resolved.key).is_none_or(|name| name == selected);
    if !resolved.iter().any(is_selected) {
        return Err(no_match(what, selected, resolved.iter().filter_map(|one| Some(name(&one.key)?.as_str()))));
    }
    resolved.retain(is_selected);
    Ok(())
}

/// Error for a version that no image has.
fn no_version(version: &str, resolved: &[Resolved<'_>]) -> anyhow::Error {
    let newest = resolved.iter().map(|resolved| resolved.key.version.as_str());
    let newest = newest.max_by_key(|version| Version::parse(version).ok());
    match newest {
        Some(newest) => anyhow::anyhow!("no image has version {version:?}; the newest is {newest}"),
        None => anyhow::anyhow!("no image has version {version:?}"),
    }
}

fn filter(text: &str) -> Result<Filter, String> {
    let (name, values) = text.split_once('=').ok_or("FACT=VALUE is expected, such as variant=gardener_prod")?;
    Ok(Filter { name: name.to_owned(), values: values.split(',').map(str::to_owned).collect() })
}

/// All information about images from the files.
pub(super) struct Known {
    /// Inputs that were read, and inputs that could not be read.
    pub(super) evidence: Evidence,
    pub(super) catalogue: Catalogue,
    pub(super) lookups: Vec<Lookup>,
    pub(super) policy: Policy,
}

impl Known {
    /// Resolves the images of each flavor.
    ///
    /// # Errors
    /// If a flavor has images of different products.
    pub(super) fn resolved(&self) -> anyhow::Result<Vec<Resolved<'_>>> {
        let resolved = resolve(&self.catalogue, &self.lookups, &self.policy);
        self.ensure_separate(&resolved, &Lock::default())?;
        Ok(resolved)
    }

    /// Verifies that each flavor has images of one product, including the locked image.
    ///
    /// # Errors
    /// For the first flavor with images of several products.
    pub(super) fn ensure_separate(&self, resolved: &[Resolved<'_>], lock: &Lock) -> anyhow::Result<()> {
        Ok(lock.ensure_separate(resolved, &self.lookups)?)
    }

    /// Resolves the images of each flavor, for commands that need at least one.
    ///
    /// # Errors
    /// If no image name matches a flavor, or a flavor has images of different products.
    pub(super) fn resolved_flavors(&self) -> anyhow::Result<Vec<Resolved<'_>>> {
        let resolved = self.resolved()?;
        if resolved.is_empty() {
            let images = counted(self.catalogue.images().len() as u64, "image");
            let lookups = counted(self.lookups.len() as u64, "ImageLookup");
            bail!("no image has the name of a flavor: {images} and {lookups} were read (docs/images.md#lookups)");
        }
        Ok(resolved)
    }
}

impl CatalogueArguments {
    pub(super) fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Reads all files, for commands that require a source of images.
    pub(super) fn read_images(&self) -> anyhow::Result<Known> {
        if self.is_empty() {
            return Err(wrong_usage("name the images with --source (see --help)"));
        }
        self.read()
    }

    pub(super) fn now(&self) -> Timestamp {
        let now = self.at.unwrap_or_else(Timestamp::now);
        // Whole seconds keep the lock short.
        Timestamp::from_second(now.as_second()).unwrap_or(now)
    }

    /// Reads all files.
    pub(super) fn read(&self) -> anyhow::Result<Known> {
        let mut listings = Vec::new();
        let mut evidence = Evidence::of("image");
        let mut sources = Vec::new();
        for source in &self.sources {
            let files = evidence.note_skipped(files(std::slice::from_ref(&source.path)));
            sources.extend(files.into_iter().map(|file| (source, file)));
        }
        let read = in_parallel(&sources, |(source, file)| listings_of(file, source.region.as_deref()));
        let mut with_listing = HashSet::new();
        for ((source, file), read) in sources.iter().zip(read) {
            for listing in read? {
                for refused in &listing.refused {
                    evidence.unevaluated(format!("{}: {refused}", file.name()));
                }
                for left_out in &listing.left_out {
                    complain(&format!("{}: {left_out}", file.name()));
                }
                evidence.evaluated(listing.images.len());
                with_listing.insert(&source.path);
                listings.push(listing);
            }
        }
        for source in &self.sources {
            let has_listing = with_listing.contains(&source.path) || !evidence.is_complete();
            ensure!(has_listing, "{}: no listing of images in it", name_of(&source.path));
        }
        let catalogue = Catalogue::new(listings)?;
        ensure_known_facts("--where", &self.filters, catalogue.images().iter())?;
        let lookups = lookups(&self.lookups, catalogue.images(), &mut evidence)?;
        let policy = Policy { now: self.now(), owners: self.owners.clone(), filters: self.filters.clone() };
        Ok(Known { evidence, catalogue, lookups, policy })
    }
}

/// The listings in a file.
fn listings_of(file: &NamedFile, region: Option<&str>) -> anyhow::Result<Vec<Listing>> {
    let documents = file.documents_within(MAX_BYTES)?;
    documents.iter().map(|document| read(document, region).with_context(|| file.name())).collect()
}

/// Reads ImageLookups from files and folders. Each file must contain at least one, and the images must have the facts
/// to which it refers.
pub(super) fn lookups(
    paths: &[PathBuf],
    images: &[ImageRecord],
    evidence: &mut Evidence,
) -> anyhow::Result<Vec<Lookup>> {
    let mut lookups = Vec::new();
    for path in paths {
        let before = lookups.len();
        for file in evidence.note_skipped(files(std::slice::from_ref(path))) {
            let objects = file.objects()?;
            let found = objects.iter().filter(|object| object["kind"] == "ImageLookup");
            ensure!(found.clone().next().is_some(), "{}: no ImageLookup in it{}", file.name(), kinds(&objects));
            for object in found {
                let lookup = Lookup::read(object).with_context(|| file.name())?;
                lookup.ensure_known_facts(images).with_context(|| file.name())?;
                lookups.push(lookup);
            }
        }
        ensure!(lookups.len() > before, "{}: no ImageLookup in it", name_of(path));
    }
    Ok(lookups)
}

/// The kinds of other objects, for an error.
fn kinds(objects: &[Value]) -> String {
    let kinds: BTreeSet<&str> = objects.iter().filter_map(|object| object["kind"].as_str()).collect();
    if kinds.is_empty() {
        return String::new();
    }
    let kinds: Vec<&str> = kinds.into_iter().collect();
    format!(", but {}", named(&kinds, Bound { items: 5, bytes: 200 }))
}

/// Reads a lock. Returns an empty one if the file does not exist and `may_be_new` is set.
pub(super) fn lock(path: &Path, may_be_new: bool) -> anyhow::Result<Lock> {
    if may_be_new && !path.exists() {
        return Ok(Lock::default());
    }
    let file = NamedFile { path: path.to_owned(), explicit: true, text: None };
    match file.documents()?.as_slice() {
        [document] => lock_file::read(document).with_context(|| file.name()),
        _ => bail!("{}: one ImagesLock is expected in it", file.name()),
    }
}

/// A CloudProfile from a file.
pub(super) struct ProfileFile {
    /// Name of the file.
    pub(super) source: String,
    pub(super) document: Value,
    /// Position of the profile in the file.
    pub(super) location: Option<Location>,
    /// Text of the file, if the profile is its only content.
    pub(super) text: Option<String>,
}

/// Reads the CloudProfiles of files and folders.
pub(super) fn profiles(paths: &[PathBuf], evidence: &mut Evidence) -> anyhow::Result<Vec<ProfileFile>> {
    let mut found = Vec::new();
    for file in evidence.note_skipped(files(paths)) {
        let source = file.name();
        let text = file.text()?;
        let documents = objects::documents(&text).with_context(|| source.clone())?;
        let locations = locations(&text);
        let is_alone = documents.len() == 1 && documents.iter().all(|document| document["kind"] == "CloudProfile");
        let whole = if is_alone { Some(text.clone()) } else { None };
        for (document, location) in placed(documents, &locations).filter(|(object, _)| object["kind"] == "CloudProfile")
        {
            found.push(ProfileFile { source: source.clone(), document, location, text: whole.clone() });
        }
    }
    if found.is_empty() {
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        bail!("{}: no CloudProfile in it", names.join(", "));
    }
    Ok(found)
}
