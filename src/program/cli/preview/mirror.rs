//! Reads Shoots from a seed, where each Cluster contains a copy of the Shoot and its CloudProfile, next to the Worker.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::Client;
use serde_json::Value;

use super::live::observe_workers;
use super::pairs::{Key, Loaded, Observed};
use super::shoots::ShootReader;
use super::stored::{Stored, key_of};
use crate::cli::target::{Reading, Scope};
use explanations::preview::{CloudProfiles, Inputs, NamedProfiles, technical_id};

/// Reads the Shoots with the same names as `wanted`, with their Workers.
pub(super) async fn read(
    client: &Client,
    required: &[Value],
    reader: &ShootReader,
    shared: &CloudProfiles,
) -> anyhow::Result<Stored> {
    let namespaces: BTreeMap<String, Key> = required.iter().map(|shoot| (technical_id(shoot), key_of(shoot))).collect();
    let scope = Scope::namespaces(namespaces.keys());
    let observed = observe_workers(client, &Reading::default(), &scope, |_| true, shared).await?;
    let mut stored = Stored { shoots: BTreeMap::new(), unreadable: Vec::new(), profiles: NamedProfiles::default() };
    let Observed { loaded, unreadable, .. } = observed;
    let mut seen = BTreeSet::new();
    for unreadable in unreadable {
        let key = namespaces.get(&unreadable.key.0).cloned().unwrap_or_default();
        seen.insert(key.clone());
        stored.unreadable.push((key, unreadable.reason));
    }
    for ((namespace, _), loaded) in loaded {
        let Some(key) = namespaces.get(&namespace) else { continue };
        seen.insert(key.clone());
        match mirrored(loaded, &namespace, key, reader) {
            Ok((profile, loaded)) => {
                stored.profiles.add(profile, shared)?;
                stored.shoots.insert(key.clone(), loaded);
            }
            Err(reason) => stored.unreadable.push((key.clone(), reason)),
        }
    }
    for (namespace, key) in namespaces.into_iter().filter(|(_, key)| !seen.contains(key)) {
        let reason = format!(
            "the seed has no Worker in namespace {namespace:?}; status.technicalID of NEW can name another one"
        );
        stored.unreadable.push((key, reason));
    }
    Ok(stored)
}

/// The CloudProfile copy under the name that the Shoot uses, and the Shoot as input together with its Worker.
fn mirrored(loaded: Loaded, namespace: &str, key: &Key, reader: &ShootReader) -> Result<(Value, Loaded), String> {
    let Loaded { inputs, live } = loaded;
    let (Some(shoot), Some(profile)) = (&inputs.shoot, &inputs.cloud_profile) else {
        return Err(format!("Cluster {namespace:?} has no Shoot, or no CloudProfile"));
    };
    if key_of(&shoot.value) != *key {
        let (namespace_of_shoot, name) = key_of(&shoot.value);
        return Err(format!("Cluster {namespace:?} is that of Shoot {namespace_of_shoot}/{name}"));
    }
    let mut document = profile.document.clone();
    document["kind"] = "CloudProfile".into();
    document["metadata"]["name"] = NamedProfiles::name_for(&shoot.value).into();
    let source = reader.source().with_worker(&inputs);
    let source = source.map_err(|failure| format!("the Shoot of Cluster {namespace:?}: {}", failure.message))?;
    let of_shoot = Inputs::of_shoot(shoot.value.clone(), Arc::clone(profile), Arc::new(source), inputs.providers);
    let inputs = Inputs { image_policy: inputs.image_policy, ..of_shoot };
    Ok((document, Loaded { inputs, live }))
}
