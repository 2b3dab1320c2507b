//! Shoots of a cluster as the old side. The kubeconfig can point to a garden or a seed.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context, ensure};
use serde_json::Value;

use super::pairs::Key;
use super::stored::{Stored, key_of};
use super::{Comparison, NewSide, garden, mirror};
use crate::cli::evidence::Evidence;
use crate::cli::target::{Reading, is_shoot_called};
use decisions::worker::machines::machine_objects::MachineObjects;
use explanations::preview::{Baseline, CloudProfiles, Inputs, NamedProfiles, WorkerChange, compare};
use runtime::cluster::garden_cluster::is_garden;
use runtime::process::threads::block_on;
use runtime::reader::files::NamedFile;
use runtime::reader::objects::objects;

/// Whether the files contain Shoots. The comparison reports unreadable files later.
pub(super) fn are_shoots(files: &[NamedFile]) -> bool {
    let has_shoot =
        |file: &NamedFile| file.text().is_ok_and(|text| text.contains("Shoot") && !shoots(&text).is_empty());
    files.iter().any(has_shoot)
}

/// Compares the Shoots of the files with those of the cluster.
pub(super) fn compare_shoots(
    reading: &Reading,
    names: &[String],
    files: &[NamedFile],
    evidence: Evidence,
    made: &NewSide,
    shared: &CloudProfiles,
) -> anyhow::Result<Comparison> {
    let texts = files.iter().map(NamedFile::text).collect::<anyhow::Result<Vec<_>>>()?;
    let namespace = reading.namespace.as_deref();
    let is_required = |key: &Key| {
        let is_named = |name: &String| is_shoot_called((&key.0, &key.1), name);
        namespace.is_none_or(|namespace| key.0 == namespace) && (names.is_empty() || names.iter().any(is_named))
    };
    let mut required: Vec<Value> = texts.iter().flat_map(|text| shoots(text)).collect();
    required.retain(|shoot| is_required(&key_of(shoot)));
    if let Some(selector) = &reading.selector {
        required.retain(|shoot| selector.selects(shoot));
    }
    let selected: BTreeSet<Key> = required.iter().map(key_of).collect();
    let stored = block_on(async {
        let client = reading.seed.client().await?;
        match is_garden(&client).await? {
            true => garden::read(&client, &required, &made.of_shoots, shared).await,
            false => mirror::read(&client, &required, &made.of_shoots, shared).await,
        }
    })?;
    let new_reader = made.of_shoots.over(&stored.profiles).of_side(files.iter(), shared);
    let not_compared = |(key, reason): &(Key, String)| WorkerChange::not_compared(&key.0, &key.1, reason);
    let mut comparison = Comparison::new(evidence);
    comparison.workers.extend(stored.unreadable.iter().map(not_compared));
    let is_readable =
        |key: &Key| selected.contains(key) && stored.unreadable.iter().all(|(unreadable, _)| unreadable != key);
    for (file, text) in files.iter().zip(&texts) {
        let new = new_reader.shoots_where(text, |shoot| is_readable(&key_of(shoot)), shared);
        match new.with_context(|| file.name()) {
            Ok(new) => {
                for new in new {
                    comparison.workers.push(compare_with(&stored, new, shared)?);
                }
            }
            Err(error) => comparison.evidence.unread(&error),
        }
    }
    let is_completed = !comparison.workers.is_empty() || !comparison.evidence.is_complete();
    ensure!(is_completed, "no Shoot in NEW, or in the namespace");
    Ok(comparison)
}

fn compare_with(stored: &Stored, mut new: Inputs, shared: &CloudProfiles) -> anyhow::Result<WorkerChange> {
    let old = stored.shoots.get(&(new.namespace().to_owned(), new.name().to_owned()));
    if let (Some(old), Some(shoot)) = (old, &new.shoot) {
        // Facts derived from other sources than the old Shoot also apply to the new one.
        new.made_from_shoot.clone_from(&old.inputs.made_from_shoot);
        let named = stored.profiles.get(&NamedProfiles::name_for(&shoot.value), shared)?;
        let is_given = |given: &Arc<_>| named.as_ref().is_none_or(|named| !Arc::ptr_eq(given, named));
        if !new.cloud_profile.as_ref().is_some_and(is_given)
            && old.inputs.shoot.as_ref().is_some_and(|old| is_same_reference(&old.value, &shoot.value))
        {
            // Clusters in a seed receive a new CloudProfile one after the other.
            new.cloud_profile.clone_from(&old.inputs.cloud_profile);
        }
    }
    let none = MachineObjects::default();
    let live = old.map_or(&none, |old| &old.live);
    Ok(compare(old.map(|old| &old.inputs), Some(&new), live, Baseline::Rendered, shared))
}

fn is_same_reference(old: &Value, new: &Value) -> bool {
    NamedProfiles::name_for(old) == NamedProfiles::name_for(new)
}

/// The Shoots in a text; empty if it cannot be parsed.
fn shoots(text: &str) -> Vec<Value> {
    let mut objects = objects(text).unwrap_or_default();
    objects.retain(|object| object["kind"] == "Shoot");
    objects
}
