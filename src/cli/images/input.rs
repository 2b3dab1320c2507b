//! Listings, lookups, locks and CloudProfiles from files.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::Args;
use jiff::Timestamp;
use serde_json::Value;

use crate::api::gotext::places::places;
use crate::api::gotext::yaml;
use crate::cli::cloudprofile::source::{Place, placed};
use crate::cli::exit::wrong_usage;
use crate::cli::forecast::moment;
use crate::cli::input::files;
use crate::images::catalogue::Catalogue;
use crate::images::lock::Lock;
use crate::images::lock_file;
use crate::images::lookup::{Filter, Lookup};
use crate::images::resolution::{Policy, Resolved, resolve};
use crate::images::source_path::SourcePath;
use crate::images::sources::{Listing, MOST_BYTES, read};
use crate::process::bounded_file::text_of_at_most;

/// Which images there are, and which may be used.
#[derive(Debug, Args)]
pub(super) struct CatalogueArguments {
    /// File or folder with listings of images; where the tool does not print the region, write it before the file. docs/images.md
    /// has the forms.
    #[arg(long = "source", value_name = "[REGION=]FILE")]
    sources: Vec<SourcePath>,
    /// File or folder with ImageLookups: which names of images mean which version and flavor.
    #[arg(long, value_name = "FILE")]
    lookups: Vec<PathBuf>,
    /// Only images of this account, project or gallery; several are possible.
    #[arg(long = "owner", value_name = "OWNER")]
    owners: Vec<String>,
    /// Only images with this fact, or tag (`tag:NAME`): one of the values.
    #[arg(long = "where", value_name = "FACT=VALUE,…", value_parser = filter)]
    filters: Vec<Filter>,
    /// The moment: a day or a time. Now by default.
    #[arg(long, value_name = "DATE", value_parser = moment)]
    at: Option<Timestamp>,
}

/// Which flavors are meant.
#[derive(Debug, Args)]
pub(super) struct Selection {
    /// Only this image.
    #[arg(long, value_name = "NAME")]
    image: Option<String>,
    /// Only this version.
    #[arg(long, value_name = "VERSION")]
    image_version: Option<String>,
    /// Only this region.
    #[arg(long, value_name = "REGION")]
    region: Option<String>,
}

impl Selection {
    pub(super) fn has(&self, resolved: &Resolved<'_>) -> bool {
        let key = &resolved.key;
        self.image.as_ref().is_none_or(|image| *image == key.image)
            && self.image_version.as_ref().is_none_or(|version| *version == key.version)
            && self.region.as_ref().is_none_or(|region| key.region.as_ref().is_none_or(|known| known == region))
    }
}

fn filter(text: &str) -> Result<Filter, String> {
    let (name, values) = text.split_once('=').ok_or("FACT=VALUE is expected, such as variant=gardener_prod")?;
    Ok(Filter { name: name.to_owned(), values: values.split(',').map(str::to_owned).collect() })
}

/// Everything that the files say about images.
pub(super) struct Known {
    pub(super) catalogue: Catalogue,
    pub(super) lookups: Vec<Lookup>,
    pub(super) policy: Policy,
}

impl Known {
    /// Each flavor with its images.
    pub(super) fn resolved(&self) -> Vec<Resolved<'_>> {
        resolve(&self.catalogue, &self.lookups, &self.policy)
    }
}

impl CatalogueArguments {
    pub(super) fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Reads all of it, for what says nothing without images.
    pub(super) fn read_images(&self) -> anyhow::Result<Known> {
        if self.is_empty() {
            return Err(wrong_usage("name the images with --source (see --help)"));
        }
        self.read()
    }

    pub(super) fn now(&self) -> Timestamp {
        let now = self.at.unwrap_or_else(Timestamp::now);
        // Fractions of a second only make a lock longer.
        Timestamp::from_second(now.as_second()).unwrap_or(now)
    }

    /// Reads all of it.
    pub(super) fn read(&self) -> anyhow::Result<Known> {
        let mut listings = Vec::new();
        for source in &self.sources {
            let before = listings.len();
            for file in files(std::slice::from_ref(&source.path))? {
                for document in documents(&file.path)? {
                    let listing = read(&document, source.region.as_deref());
                    let listing: Listing = listing.with_context(|| file.path.display().to_string())?;
                    listings.push(listing);
                }
            }
            ensure!(listings.len() > before, "{}: no listing of images in it", source.path.display());
        }
        let lookups = lookups(&self.lookups)?;
        let policy = Policy { now: self.now(), owners: self.owners.clone(), filters: self.filters.clone() };
        Ok(Known { catalogue: Catalogue::new(listings)?, lookups, policy })
    }
}

/// The ImageLookups of files and folders.
pub(super) fn lookups(paths: &[PathBuf]) -> anyhow::Result<Vec<Lookup>> {
    let mut lookups = Vec::new();
    for file in files(paths)? {
        for document in documents(&file.path)?.iter().filter(|document| document["kind"] == "ImageLookup") {
            lookups.push(Lookup::read(document).with_context(|| file.path.display().to_string())?);
        }
    }
    Ok(lookups)
}

/// The documents of a file.
pub(super) fn documents(path: &Path) -> anyhow::Result<Vec<Value>> {
    yaml::documents(&text_of_at_most(path, MOST_BYTES)?).with_context(|| path.display().to_string())
}

/// A lock; the one that does not exist yet is empty where that is allowed.
pub(super) fn lock(path: &Path, may_be_new: bool) -> anyhow::Result<Lock> {
    if may_be_new && !path.exists() {
        return Ok(Lock::default());
    }
    match documents(path)?.as_slice() {
        [document] => lock_file::read(document).with_context(|| path.display().to_string()),
        _ => bail!("{}: one ImagesLock is expected in it", path.display()),
    }
}

/// A CloudProfile of a file.
pub(super) struct ProfileFile {
    /// The file.
    pub(super) source: String,
    pub(super) document: Value,
    /// Where it stands there.
    pub(super) place: Option<Place>,
}

/// The CloudProfiles of files and folders.
pub(super) fn profiles(paths: &[PathBuf]) -> anyhow::Result<Vec<ProfileFile>> {
    let mut found = Vec::new();
    for file in files(paths)? {
        let source = file.path.display().to_string();
        let text = text_of_at_most(&file.path, MOST_BYTES)?;
        let documents = yaml::documents(&text).with_context(|| source.clone())?;
        let places = places(&text);
        let profiles = placed(documents, &places).filter(|(object, _)| object["kind"] == "CloudProfile");
        found.extend(profiles.map(|(document, place)| ProfileFile { source: source.clone(), document, place }));
    }
    if found.is_empty() {
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        bail!("{}: no CloudProfile in it", names.join(", "));
    }
    Ok(found)
}
