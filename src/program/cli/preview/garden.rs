//! Reads Shoots from a garden, with the CloudProfiles that they reference.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use serde_json::Value;

use super::pairs::{Key, Loaded};
use super::shoots::ShootReader;
use super::stored::{Stored, key_of};
use crate::cli::progress::Progress;
use decisions::worker::machines::machine_objects::MachineObjects;
use explanations::preview::{CloudProfiles, NamedProfiles};
use runtime::cluster::garden_cluster::GardenKind;

/// Maximum number of concurrent requests. A namespace with more target Shoots is listed instead.
const AT_ONCE: usize = 10;

/// Reads the stored Shoots with the same names as `wanted`, and the profiles that either version references.
pub(super) async fn read(
    client: &Client,
    required: &[Value],
    reader: &ShootReader,
    shared: &CloudProfiles,
) -> anyhow::Result<Stored> {
    let shoots = stored_shoots(client, required.iter().map(key_of).collect()).await?;
    let profiles = named_profiles(client, required.iter().chain(shoots.values()), shared).await?;
    let load = |(key, shoot)| {
        let inputs = reader.inputs_of(shoot, &profiles, shared)?;
        Ok((key, Loaded { inputs, live: MachineObjects::default() }))
    };
    let shoots = shoots.into_iter().map(load).collect::<anyhow::Result<_>>()?;
    Ok(Stored { shoots, unreadable: Vec::new(), profiles })
}

/// The requested Shoots that exist in the garden.
async fn stored_shoots(client: &Client, required: BTreeSet<Key>) -> anyhow::Result<BTreeMap<Key, Value>> {
    let mut by_namespace: BTreeMap<&str, Vec<&Key>> = BTreeMap::new();
    for key in &required {
        by_namespace.entry(&key.0).or_default().push(key);
    }
    let (listed, single): (Vec<_>, Vec<_>) = by_namespace.into_iter().partition(|(_, keys)| keys.len() > AT_ONCE);
    let progress = Progress::new("Shoots read", required.len());
    let list = async |(namespace, _): (&str, Vec<&Key>)| -> anyhow::Result<_> {
        let mut found = Vec::new();
        let keep = |shoot: Value| {
            let key = key_of(&shoot);
            if required.contains(&key) {
                progress.step();
                found.push((key, shoot));
            }
        };
        GardenKind::Shoot.list(client, Some(namespace), keep).await?;
        Ok(found)
    };
    let get = async |key: &Key| -> anyhow::Result<_> {
        let stored = GardenKind::Shoot.get(client, Some(&key.0), &key.1).await?;
        progress.step();
        Ok(stored.map(|stored| (key.clone(), stored)))
    };
    let listed: Vec<Vec<_>> = stream::iter(listed).map(list).buffer_unordered(AT_ONCE).try_collect().await?;
    let single = single.into_iter().flat_map(|(_, keys)| keys);
    let single: Vec<Option<_>> = stream::iter(single).map(get).buffer_unordered(AT_ONCE).try_collect().await?;
    Ok(listed.into_iter().flatten().chain(single.into_iter().flatten()).collect())
}

/// Existing profiles that the Shoots reference, and their parents.
async fn named_profiles(
    client: &Client,
    shoots: impl Iterator<Item = &Value>,
    shared: &CloudProfiles,
) -> anyhow::Result<NamedProfiles> {
    let mut profiles = NamedProfiles::default();
    let named: BTreeSet<String> = shoots.map(NamedProfiles::name_for).collect();
    add_profiles(client, &mut profiles, named.clone(), shared).await?;
    let parents = profiles.parents().filter(|parent| !named.contains(*parent)).map(str::to_owned).collect();
    add_profiles(client, &mut profiles, parents, shared).await?;
    Ok(profiles)
}

async fn add_profiles(
    client: &Client,
    profiles: &mut NamedProfiles,
    names: BTreeSet<String>,
    shared: &CloudProfiles,
) -> anyhow::Result<()> {
    let get = async |name: String| {
        let (kind, namespace, own) = match name.split_once('/') {
            Some((namespace, own)) => (GardenKind::NamespacedCloudProfile, Some(namespace), own),
            None => (GardenKind::CloudProfile, None, &*name),
        };
        kind.get(client, namespace, own).await
    };
    let found: Vec<Option<Value>> = stream::iter(names).map(get).buffer_unordered(AT_ONCE).try_collect().await?;
    for profile in found.into_iter().flatten() {
        let name = profile["metadata"]["name"].to_string();
        profiles.add(profile, shared).with_context(|| format!("CloudProfile {name} of the garden"))?;
    }
    Ok(())
}
