//! A stored Shoot with its Worker, a change, and the effect on every pool.

use std::collections::BTreeSet;

use gardener_extension_worker::shoot::{stored_shoot, worker};
use json_patch::Patch;
use serde_json::{Map, Value, json};
use test_support::measured::cases::Documents;

use super::Compared;
use super::corpus::{Corpus, garden, surroundings, typed};
use super::paths::{different, pool_of};
use super::preview::{self, Pair, has_zones};
use super::single::{hashes, output};
use super::usage::changed_inputs;

pub(crate) fn result(input: &Value, base: &Documents, expected: &Value, corpus: &Corpus) -> Result<Compared, String> {
    let (old_shoot, old_worker) = (&base.expected["stored"], &base.expected["worker"]);
    let profile = corpus.profile(&base.input)?;
    let mut changed = json!({"shoot": old_shoot, "cloudProfile": profile, "outside": base.input["outside"]});
    let patch: Patch = serde_json::from_value(input["change"].clone()).map_err(|error| error.to_string())?;
    json_patch::patch(&mut changed, &patch.0).map_err(|error| error.to_string())?;
    let [written, profile, outside] = ["shoot", "cloudProfile", "outside"].map(|member| changed[member].take());

    let profile_before = corpus.profile(&base.input)?;
    let is_zoned = has_zones(old_shoot);
    let previewed = preview::effects([old_shoot, &written], [&profile_before, &profile], is_zoned)?;
    let profile_after = profile;
    let profile = typed(&profile_after)?;
    let new_shoot = stored_shoot(&written, Some(old_shoot), &profile.spec, &garden(&outside));
    let new_shoot = new_shoot.map_err(|error| error.to_string())?;
    let new_worker = worker(&new_shoot, &profile.spec, &surroundings(&outside, old_worker));
    let new_worker = new_worker.map_err(|error| error.to_string())?["spec"].take();

    let stored = if expected["stored"].is_null() { output(&written) } else { expected["stored"].clone() };
    let expected_worker = if expected["worker"].is_null() { old_worker } else { &expected["worker"] };
    let reference = json!({
        "stored": stored, "storedPaths": expected["storedPaths"],
        "worker": expected_worker, "workerPaths": expected["workerPaths"], "pools": measured(&expected["pools"]),
    });
    let worker_paths = different(old_worker, &new_worker);
    let changed = changed_inputs([old_worker, &new_worker], [old_shoot, &new_shoot])?;
    corpus.changed_inputs.lock().map_err(|error| error.to_string())?.extend(changed);
    let mut reference = reference;
    let pools = expected["pools"].as_object().into_iter().flatten();
    let pair = Pair { shoots: [old_shoot, &new_shoot], profile: &profile_after, workers: [old_worker, &new_worker] };
    let pools = pools.map(|(name, pool)| (name.clone(), pair.expected(name, pool, previewed.get(name))));
    reference["preview"] = pools.collect();
    let got = json!({
        "preview": previewed,
        "stored": output(&new_shoot), "storedPaths": different(old_shoot, &new_shoot),
        "worker": new_worker, "workerPaths": worker_paths,
        "pools": effects([old_worker, &new_worker], [old_shoot, &new_shoot], &worker_paths)?,
    });
    Ok((reference, got))
}

/// The compared parts of a pool: its effect as far as gardenlet determines it, and which hashes change.
fn measured(pools: &Value) -> Value {
    let of_pool = |pool: &Value| {
        let effect = if pool["rollsOnlyForAzure"] == true { &json!("settings") } else { &pool["effect"] };
        json!({"effect": effect, "libraryHash": pool["libraryHash"], "inPlaceHash": pool["inPlaceHash"]})
    };
    pools.as_object().into_iter().flatten().map(|(name, pool)| (name.clone(), of_pool(pool))).collect()
}

fn effects(workers: [&Value; 2], shoots: [&Value; 2], paths: &[String]) -> Result<Value, String> {
    let [old, new] = [hashes(workers[0], shoots[0])?, hashes(workers[1], shoots[1])?];
    let names = |hashes: &Value| hashes.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    let (old_names, new_names): (BTreeSet<String>, BTreeSet<String>) = (names(&old), names(&new));
    let mut effects = Map::new();
    for name in old_names.union(&new_names) {
        let (before, after) = (&old[name], &new[name]);
        let differs = |member: &str| before[member] != after[member];
        let effect = match (old_names.contains(name), new_names.contains(name)) {
            (false, _) => "added",
            (_, false) => "removed",
            _ if before["inPlaceHash"].is_null() != after["inPlaceHash"].is_null() => "strategy-switch",
            _ if differs("libraryHash") && after["inPlaceHash"].is_null() => "roll",
            _ if differs("libraryHash") || differs("inPlaceHash") => "in-place",
            _ if paths.iter().any(|path| pool_of(path) == Some(name)) => "settings",
            _ => "none",
        };
        let mut of_pool = json!({"effect": effect});
        if !["added", "removed"].contains(&effect) {
            for member in ["libraryHash", "inPlaceHash"].into_iter().filter(|member| differs(member)) {
                of_pool[member] = json!([before[member], after[member]]);
            }
        }
        effects.insert(name.clone(), of_pool);
    }
    Ok(effects.into())
}
