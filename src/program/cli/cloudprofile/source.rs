//! Reads CloudProfiles from files or a garden.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context, bail};
use clap::Args;
use serde_json::{Value, json};

use crate::cli::evidence::Evidence;
use crate::cli::exit::wrong_usage;
use runtime::cluster::garden_cluster::{GardenCluster, GardenKind};
use runtime::process::threads::block_on;
use runtime::reader::files::{NamedFile, files};
use runtime::reader::objects;
use wire::api::gotext::locations::{Locations, locations};

/// Group and version of CloudProfiles.
const API_VERSION: &str = "core.gardener.cloud/v1beta1";
const CLOUD_PROFILE: &str = "CloudProfile";
const NAMESPACED: &str = "NamespacedCloudProfile";

/// Source of one CloudProfile.
#[derive(Debug, Args)]
pub(super) struct OneSource {
    /// File with a CloudProfile, or with a NamespacedCloudProfile and its status, or `-` for standard input. With
    /// --live, name of a CloudProfile, or `namespace/name` of a NamespacedCloudProfile.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    garden: GardenSource,
}

/// A garden as the source.
#[derive(Debug, Args)]
pub(super) struct GardenSource {
    /// Read from the garden of the kubeconfig.
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    garden: GardenCluster,
}

/// Sources of CloudProfiles.
#[derive(Debug, Args)]
pub(super) struct Sources {
    /// Files or folders with CloudProfiles, and NamespacedCloudProfiles with their status, or `-` for standard input.
    /// With --live, names of CloudProfiles and `namespace/name` of NamespacedCloudProfiles. Defaults to all
    /// CloudProfiles of the garden.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// File with the CloudProfile that NamespacedCloudProfiles extend. They are checked as if you created them now, and
    /// need no status.
    #[arg(long, value_name = "FILE", conflicts_with = "live")]
    parent: Option<PathBuf>,
    #[command(flatten)]
    garden: GardenSource,
}

/// A profile and its source.
#[derive(Clone)]
pub(super) struct Found {
    /// The file, or `garden`.
    pub(super) source: String,
    /// `CloudProfile` or `NamespacedCloudProfile`.
    pub(super) kind: &'static str,
    /// Position in the file.
    pub(super) location: Option<Location>,
    /// The CloudProfile. For a NamespacedCloudProfile without a given parent, the merged profile.
    pub(super) document: Value,
    /// The CloudProfile that it extends.
    pub(super) parent: Option<Rc<Value>>,
    /// Text of the file, if the profile is its only content.
    pub(super) text: Option<Rc<str>>,
}

/// Position of an object in its file.
#[derive(Clone)]
pub(in crate::cli) struct Location {
    lines: Locations,
    /// Path of a list item, such as `items[2].`.
    prefix: String,
}

impl Location {
    /// Line of a member.
    pub(in crate::cli) fn line_of(&self, path: &str) -> Option<usize> {
        self.lines.line_of(&format!("{}{path}", self.prefix))
    }
}

impl OneSource {
    /// Reads the only profile of the source.
    pub(super) fn read(&self) -> anyhow::Result<Found> {
        one(&self.file, Some(&self.garden))
    }
}

/// Reads the only profile of a file, or a profile of the garden by name.
pub(super) fn one(path: &Path, garden: Option<&GardenSource>) -> anyhow::Result<Found> {
    let garden =
        garden.map(|garden| Ok::<_, anyhow::Error>(garden.is_used()?.then_some(garden))).transpose()?.flatten();
    let mut found = match garden {
        Some(garden) => garden.read(&[path.to_owned()])?,
        None => {
            let mut evidence = Evidence::of("CloudProfile");
            let found = of_path(path, None, &mut evidence);
            if let Some(problem) = evidence.problems().next() {
                bail!("{problem}");
            }
            found
        }
    };
    match (found.pop(), found.is_empty()) {
        (Some(only), true) => Ok(only),
        (None, _) => bail!("{}: no CloudProfile in it", path.display()),
        (Some(_), false) => bail!("{}: several CloudProfiles in it; one is expected", path.display()),
    }
}

impl Sources {
    /// Reads every profile of the sources, with evidence of unreadable inputs.
    pub(super) fn read(&self) -> anyhow::Result<(Vec<Found>, Evidence)> {
        let mut found = Vec::new();
        let mut evidence = Evidence::of("CloudProfile");
        if self.garden.is_used()? {
            found = self.garden.read(&self.files)?;
        } else if self.files.is_empty() {
            return Err(wrong_usage("name a file with a CloudProfile, or use --live (see --help)"));
        } else {
            let parent = self.parent.as_deref().map(parent).transpose()?;
            for file in &self.files {
                found.extend(of_path(file, parent.as_ref(), &mut evidence));
            }
        }
        if found.is_empty() && evidence.is_complete() {
            bail!("no CloudProfile found");
        }
        Ok((found, evidence))
    }
}

impl GardenSource {
    fn is_used(&self) -> anyhow::Result<bool> {
        if self.garden.is_named() && !self.live {
            return Err(wrong_usage("--kubeconfig and --context are for --live"));
        }
        Ok(self.live)
    }

    /// Reads the profiles with these names, or every CloudProfile.
    fn read(&self, names: &[PathBuf]) -> anyhow::Result<Vec<Found>> {
        block_on(async {
            let client = self.garden.client().await?;
            let mut objects = Vec::new();
            for name in names.iter().map(|name| name.to_string_lossy()) {
                let (kind, namespace, own) = match name.split_once('/') {
                    Some((namespace, own)) => (GardenKind::NamespacedCloudProfile, Some(namespace), own),
                    None => (GardenKind::CloudProfile, None, &*name),
                };
                let found = kind.get(&client, namespace, own).await?;
                objects.push(found.with_context(|| format!("{} {name:?} does not exist", kind.name()))?);
            }
            if names.is_empty() {
                GardenKind::CloudProfile.list(&client, None, |profile| objects.push(profile)).await?;
            }
            profiles("garden", objects, &[], None)
        })
    }
}

/// Reads the CloudProfile for --parent.
fn parent(path: &Path) -> anyhow::Result<Rc<Value>> {
    let mut evidence = Evidence::of("CloudProfile");
    let mut found = of_path(path, None, &mut evidence);
    if let Some(problem) = evidence.problems().next() {
        bail!("--parent: {problem}");
    }
    match (found.pop(), found.is_empty()) {
        (Some(only), true) => Ok(Rc::new(only.document)),
        _ => bail!("--parent {}: exactly one CloudProfile is expected in it", path.display()),
    }
}

/// Reads the profiles of a path. Unreadable files are recorded, and the other files are still read.
fn of_path(path: &Path, parent: Option<&Rc<Value>>, evidence: &mut Evidence) -> Vec<Found> {
    let mut found = Vec::new();
    for file in evidence.note_skipped(files(&[path.to_owned()])) {
        match of_file(&file, parent) {
            Ok(profiles) => found.extend(profiles),
            Err(error) => evidence.unread(&error),
        }
    }
    found
}

fn of_file(file: &NamedFile, parent: Option<&Rc<Value>>) -> anyhow::Result<Vec<Found>> {
    let text = file.text()?;
    let documents = objects::documents(&text).with_context(|| file.name())?;
    let is_alone = documents.len() == 1 && documents.iter().all(|document| document["kind"] == CLOUD_PROFILE);
    let mut found = profiles(&file.name(), documents, &locations(&text), parent).with_context(|| file.name())?;
    if is_alone {
        let text: Rc<str> = Rc::from(text.as_str());
        found.iter_mut().for_each(|profile| profile.text = Some(Rc::clone(&text)));
    }
    Ok(found)
}

/// Collects the profiles of documents and their lists. `places` may be incomplete.
fn profiles(
    source: &str,
    documents: Vec<Value>,
    locations: &[Locations],
    parent: Option<&Rc<Value>>,
) -> anyhow::Result<Vec<Found>> {
    let mut found = Vec::new();
    for (document, location) in placed(documents, locations) {
        let (kind, document, location, parent) = match (document["kind"].as_str(), parent) {
            (Some(CLOUD_PROFILE), _) => (CLOUD_PROFILE, document, location, None),
            (Some(NAMESPACED), Some(parent)) => {
                is_parent(parent, &document)?;
                (NAMESPACED, document, location, Some(Rc::clone(parent)))
            }
            (Some(NAMESPACED), None) => (NAMESPACED, merged(&document)?, None, None),
            _ => continue,
        };
        found.push(Found { source: source.to_owned(), kind, location, document, parent, text: None });
    }
    Ok(found)
}

/// Flattens documents and their lists into objects, each with its position if known.
pub(in crate::cli) fn placed(
    documents: Vec<Value>,
    locations: &[Locations],
) -> impl Iterator<Item = (Value, Option<Location>)> {
    // Documents that are not mappings have no position.
    let (mappings, lists): (Vec<Value>, Vec<Value>) = documents.into_iter().partition(Value::is_object);
    let with_locations = mappings.into_iter().enumerate().flat_map(|(position, document)| {
        let lines = locations.get(position);
        let with_location = |(prefix, document)| (document, lines.cloned().map(|lines| Location { lines, prefix }));
        items(document).into_iter().map(with_location).collect::<Vec<_>>()
    });
    with_locations.chain(objects::flattened(lists).into_iter().map(|object| (object, None)))
}

/// Returns the items of a list as printed by `kubectl get`, with their paths, or the document itself.
fn items(mut document: Value) -> Vec<(String, Value)> {
    let kind = document["kind"].as_str().and_then(|kind| kind.strip_suffix("List")).map(str::to_owned);
    let (Some(kind), Some(Value::Array(items))) = (kind, document.get_mut("items").map(Value::take)) else {
        return vec![(String::new(), document)];
    };
    let version = document["apiVersion"].clone();
    let item = |(index, mut item): (usize, Value)| {
        // Items of a typed list may omit kind and version.
        if let Some(members) = item.as_object_mut()
            && !kind.is_empty()
        {
            members.entry("kind").or_insert_with(|| kind.as_str().into());
            members.entry("apiVersion").or_insert_with(|| version.clone());
        }
        (format!("items[{index}]."), item)
    };
    items.into_iter().enumerate().map(item).filter(|(_, item)| item.is_object()).collect()
}

/// Checks that a NamespacedCloudProfile extends this parent.
fn is_parent(parent: &Value, namespaced: &Value) -> anyhow::Result<()> {
    let named = &namespaced["spec"]["parent"]["name"];
    let given = &parent["metadata"]["name"];
    if named.as_str().is_some_and(|named| !named.is_empty()) && named != given {
        let name = &namespaced["metadata"]["name"];
        bail!("NamespacedCloudProfile {name} extends CloudProfile {named}, and --parent is {given}");
    }
    Ok(())
}

/// Converts a NamespacedCloudProfile to its merged CloudProfile.
fn merged(namespaced: &Value) -> anyhow::Result<Value> {
    let name = namespaced["metadata"]["name"].as_str().unwrap_or_default();
    let spec = namespaced.pointer("/status/cloudProfileSpec").with_context(|| {
        format!("NamespacedCloudProfile {name:?} has no status.cloudProfileSpec; name its parent with `lint --parent`, or take it from the garden, where both are merged")
    })?;
    Ok(json!({"apiVersion": API_VERSION, "kind": CLOUD_PROFILE, "metadata": namespaced["metadata"], "spec": spec}))
}
