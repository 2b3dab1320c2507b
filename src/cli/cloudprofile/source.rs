//! Where CloudProfiles come from: files, or a garden.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context, bail};
use clap::Args;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::api::gotext::places::{Places, places};
use crate::api::gotext::yaml;
use crate::cli::exit::wrong_usage;
use crate::cli::input::{files, text_of_file};
use crate::cluster::garden_cluster::GardenCluster;
use crate::process::threads::block_on;

/// Where one CloudProfile comes from.
#[derive(Debug, Args)]
pub(super) struct OneSource {
    /// File with a CloudProfile, or a NamespacedCloudProfile with its status; `-` is standard input. With --live: name of a
    /// CloudProfile, or `namespace/name` of a NamespacedCloudProfile.
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

/// Where CloudProfiles come from.
#[derive(Debug, Args)]
pub(super) struct Sources {
    /// Files or folders with CloudProfiles, and NamespacedCloudProfiles with their status; `-` is standard input. With
    /// --live: names of CloudProfiles, `namespace/name` of NamespacedCloudProfiles, or nothing for all CloudProfiles.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// File with the CloudProfile that NamespacedCloudProfiles extend. They are checked as if they were about to be created, and
    /// need no status.
    #[arg(long, value_name = "FILE", conflicts_with = "live")]
    parent: Option<PathBuf>,
    #[command(flatten)]
    garden: GardenSource,
}

/// A profile as it was found.
pub(super) struct Found {
    /// The file, or the garden's name for it.
    pub(super) source: String,
    /// The lines of its members in the file.
    pub(super) places: Option<Places>,
    /// The CloudProfile; of a NamespacedCloudProfile the merged one, unless it comes with its parent.
    pub(super) document: Value,
    /// The CloudProfile that it extends.
    pub(super) parent: Option<Rc<Value>>,
}

impl OneSource {
    /// The only profile of the source.
    pub(super) fn read(&self) -> anyhow::Result<Found> {
        let mut found = if self.garden.is_used()? {
            self.garden.read(std::slice::from_ref(&self.file))?
        } else {
            of_file(&self.file, None)?
        };
        match (found.pop(), found.is_empty()) {
            (Some(only), true) => Ok(only),
            (None, _) => bail!("{}: no CloudProfile in it", self.file.display()),
            (Some(_), false) => bail!("{}: several CloudProfiles in it; one is expected", self.file.display()),
        }
    }
}

impl Sources {
    /// Every profile of the sources.
    pub(super) fn read(&self) -> anyhow::Result<Vec<Found>> {
        let found = if self.garden.is_used()? {
            self.garden.read(&self.files)?
        } else if self.files.is_empty() {
            return Err(wrong_usage("name a file with a CloudProfile, or use --live (see --help)"));
        } else {
            let parent = self.parent.as_deref().map(parent).transpose()?;
            let of_files = self.files.iter().map(|file| of_file(file, parent.as_ref()));
            let of_files = of_files.collect::<anyhow::Result<Vec<_>>>()?;
            of_files.into_iter().flatten().collect()
        };
        if found.is_empty() {
            bail!("no CloudProfile found");
        }
        Ok(found)
    }
}

impl GardenSource {
    fn is_used(&self) -> anyhow::Result<bool> {
        if self.garden.is_named() && !self.live {
            return Err(wrong_usage("--kubeconfig and --context are for --live"));
        }
        Ok(self.live)
    }

    /// The profiles of these names, or every CloudProfile.
    fn read(&self, names: &[PathBuf]) -> anyhow::Result<Vec<Found>> {
        block_on(async {
            let client = self.garden.client().await?;
            let api = |kind, plural, namespace: Option<&str>| -> Api<DynamicObject> {
                let kind = GroupVersionKind::gvk("core.gardener.cloud", "v1beta1", kind);
                let resource = ApiResource::from_gvk_with_plural(&kind, plural);
                match namespace {
                    Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
                    None => Api::all_with(client.clone(), &resource),
                }
            };
            let mut objects = Vec::new();
            for name in names.iter().map(|name| name.to_string_lossy()) {
                let (kind, asked) = match name.split_once('/') {
                    Some((namespace, name)) => {
                        let kind = "NamespacedCloudProfile";
                        (kind, api(kind, "namespacedcloudprofiles", Some(namespace)).get(name).await)
                    }
                    None => ("CloudProfile", api("CloudProfile", "cloudprofiles", None).get(&name).await),
                };
                objects.push((kind, asked.with_context(|| format!("{kind} {name:?}"))?));
            }
            if names.is_empty() {
                let listed = api("CloudProfile", "cloudprofiles", None).list(&ListParams::default()).await;
                let listed = listed.context("CloudProfiles can't be listed")?;
                objects.extend(listed.into_iter().map(|profile| ("CloudProfile", profile)));
            }
            // The items of a list need not say their kind.
            let document = |(kind, object): (&str, DynamicObject)| {
                let mut document = serde_json::to_value(object)?;
                document["kind"] = kind.into();
                anyhow::Ok(document)
            };
            profiles("garden", objects.into_iter().map(document).collect::<Result<Vec<_>, _>>()?, &[], None)
        })
    }
}

/// The CloudProfile that others extend.
fn parent(path: &Path) -> anyhow::Result<Rc<Value>> {
    let mut found = of_file(path, None).context("--parent")?;
    match (found.pop(), found.is_empty()) {
        (Some(only), true) => Ok(Rc::new(only.document)),
        _ => bail!("--parent {}: exactly one CloudProfile is expected in it", path.display()),
    }
}

fn of_file(path: &Path, parent: Option<&Rc<Value>>) -> anyhow::Result<Vec<Found>> {
    let mut found = Vec::new();
    for file in files(&[path.to_owned()])? {
        let name = file.path.display().to_string();
        let text = text_of_file(&file.path)?;
        let documents = yaml::documents(&text).with_context(|| name.clone())?;
        found.extend(profiles(&name, documents, &places(&text), parent).with_context(|| name.clone())?);
    }
    Ok(found)
}

/// The profiles among documents, of which the places are known or not.
fn profiles(
    source: &str,
    documents: Vec<Value>,
    places: &[Places],
    parent: Option<&Rc<Value>>,
) -> anyhow::Result<Vec<Found>> {
    let mut found = Vec::new();
    // Documents that are no mappings have no places.
    let mappings = documents.into_iter().filter(Value::is_object);
    for (position, document) in mappings.enumerate() {
        let places = places.get(position).cloned();
        let (document, places, parent) = match (document["kind"].as_str(), parent) {
            (Some("CloudProfile"), _) => (document, places, None),
            (Some("NamespacedCloudProfile"), Some(parent)) => {
                is_parent(parent, &document)?;
                (document, places, Some(Rc::clone(parent)))
            }
            (Some("NamespacedCloudProfile"), None) => (merged(&document)?, None, None),
            _ => continue,
        };
        found.push(Found { source: source.to_owned(), places, document, parent });
    }
    Ok(found)
}

/// That it is the profile that a NamespacedCloudProfile names.
fn is_parent(parent: &Value, namespaced: &Value) -> anyhow::Result<()> {
    let (named, given) = (&namespaced["spec"]["parent"]["name"], &parent["metadata"]["name"]);
    if named.as_str().is_some_and(|named| !named.is_empty()) && named != given {
        let name = &namespaced["metadata"]["name"];
        bail!("NamespacedCloudProfile {name} extends CloudProfile {named}, and --parent is {given}");
    }
    Ok(())
}

/// A NamespacedCloudProfile as the CloudProfile that it comes to.
fn merged(namespaced: &Value) -> anyhow::Result<Value> {
    let name = namespaced["metadata"]["name"].as_str().unwrap_or_default();
    let spec = namespaced.pointer("/status/cloudProfileSpec").with_context(|| {
        format!("NamespacedCloudProfile {name:?} has no status.cloudProfileSpec; name its parent with `lint --parent`, or take it from the garden, where both are merged")
    })?;
    Ok(json!({"kind": "CloudProfile", "metadata": namespaced["metadata"], "spec": spec}))
}
