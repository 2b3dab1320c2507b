//! Shoots of a garden as the old side: what they are stored as, and the CloudProfiles that they name there.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use kube::api::{Api, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::Value;

use super::pairs::Key;
use super::{Comparison, NewSide};
use crate::cli::input::{NamedFile, objects};
use crate::cli::progress::Progress;
use crate::cluster::seed::Seed;
use crate::preview::{Baseline, CloudProfiles, Inputs, NamedProfiles, compare};
use crate::process::threads::block_on;
use crate::worker::machine_objects::MachineObjects;

/// Shoots that are read at the same time.
const AT_ONCE: usize = 10;

/// Whether the files hold Shoots. Which of them can't be read is said where they are compared.
pub(super) fn are_shoots(files: &[NamedFile]) -> bool {
    let has_shoot =
        |file: &NamedFile| file.text().is_ok_and(|text| text.contains("Shoot") && !shoots(&text).is_empty());
    files.iter().any(has_shoot)
}

/// Compares the Shoots of the files with those of the garden.
pub(super) fn compare_shoots(
    garden: &Seed,
    namespace: Option<&str>,
    files: &[NamedFile],
    made: &NewSide,
    shared: &CloudProfiles,
) -> anyhow::Result<Comparison> {
    let texts = files.iter().map(NamedFile::text).collect::<anyhow::Result<Vec<_>>>()?;
    let is_wanted = |shoot: &Value| namespace.is_none_or(|namespace| shoot["metadata"]["namespace"] == namespace);
    let all: Vec<Value> = texts.iter().flat_map(|text| shoots(text)).collect();
    let (stored, of_garden) = block_on(async {
        let client = garden.client().await?;
        let stored = stored_shoots(&client, all.iter().filter(|shoot| is_wanted(shoot)).collect()).await?;
        let profiles = named_profiles(&client, all.iter().chain(stored.values()), shared).await?;
        anyhow::Ok((stored, profiles))
    })?;
    let (old_reader, new_reader) = (made.of_shoots.only_with(&of_garden), made.of_shoots.over(&of_garden));
    let new_reader = new_reader.of_side(files.iter(), shared);
    let mut comparison = Comparison::default();
    for (file, text) in files.iter().zip(&texts) {
        let new = new_reader.shoots_of(text, shared).with_context(|| file.path.display().to_string());
        let new = new.map_err(|error| comparison.errors.push(format!("{error:#}"))).unwrap_or_default();
        for new in new.into_iter().filter(|new| namespace.is_none_or(|namespace| new.namespace() == namespace)) {
            let old = stored.get(&key_of(&new)).cloned();
            let old = old.map(|old| old_reader.inputs_of(old, &NamedProfiles::default(), shared)).transpose()?;
            let live = MachineObjects::default();
            comparison.workers.push(compare(old.as_ref(), Some(&new), &live, Baseline::Rendered, shared));
        }
    }
    ensure!(!comparison.workers.is_empty() || !comparison.errors.is_empty(), "no Shoot in NEW, or in the namespace");
    Ok(comparison)
}

/// The Shoots of a text; none where it can't be read.
fn shoots(text: &str) -> Vec<Value> {
    let mut objects = objects(text).unwrap_or_default();
    objects.retain(|object| object["kind"] == "Shoot");
    objects
}

fn key_of(inputs: &Inputs) -> Key {
    (inputs.namespace().to_owned(), inputs.name().to_owned())
}

/// Those that the garden has.
async fn stored_shoots(client: &Client, wanted: Vec<&Value>) -> anyhow::Result<BTreeMap<Key, Value>> {
    let progress = Progress::new("Shoots read", wanted.len());
    let read = async |shoot: &Value| -> anyhow::Result<_> {
        let text = |member: &str| shoot["metadata"][member].as_str().unwrap_or_default().to_owned();
        let key = (text("namespace"), text("name"));
        let stored = get(client, "Shoot", "shoots", Some(&key.0), &key.1).await?;
        progress.step();
        Ok(stored.map(|stored| (key, stored)))
    };
    let read: Vec<Option<(Key, Value)>> = stream::iter(wanted).map(read).buffered(AT_ONCE).try_collect().await?;
    Ok(read.into_iter().flatten().collect())
}

/// The profiles that Shoots name, as far as the garden has them.
async fn named_profiles(
    client: &Client,
    shoots: impl Iterator<Item = &Value>,
    shared: &CloudProfiles,
) -> anyhow::Result<NamedProfiles> {
    let mut profiles = NamedProfiles::default();
    for shoot in shoots {
        let name = NamedProfiles::name_for(shoot);
        if profiles.get(&name).is_some() {
            continue;
        }
        let found = match name.split_once('/') {
            Some((namespace, name)) => {
                get(client, "NamespacedCloudProfile", "namespacedcloudprofiles", Some(namespace), name).await?
            }
            None => get(client, "CloudProfile", "cloudprofiles", None, &name).await?,
        };
        if let Some(profile) = found {
            profiles.add(profile, shared).with_context(|| format!("CloudProfile {name:?} of the garden"))?;
        }
    }
    Ok(profiles)
}

/// An object of the garden.
async fn get(
    client: &Client,
    kind: &str,
    plural: &str,
    namespace: Option<&str>,
    name: &str,
) -> anyhow::Result<Option<Value>> {
    let resource = GroupVersionKind::gvk("core.gardener.cloud", "v1beta1", kind);
    let resource = ApiResource::from_gvk_with_plural(&resource, plural);
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let found = api.get_opt(name).await.with_context(|| format!("{kind} {name:?} can't be read"))?;
    Ok(found.map(serde_json::to_value).transpose()?)
}
