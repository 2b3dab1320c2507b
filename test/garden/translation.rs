//! From Shoot to Worker through the API server's defaults, its plugins and gardenlet's component. For every edit, the
//! Worker equals ours, and a preview reports a roll exactly where machines get another class.
//!
//! `SHOOT_EDITS=10000 cargo test --test garden -- translation` runs 10,000 random edits.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, anyhow, ensure};
use gardener_extension_worker::api::gardener::{ProfileObject, Shoot, WorkerSpec};
use gardener_extension_worker::api::gotext::json::{decode_lenient, to_go_json};
use gardener_extension_worker::pool::hash::pool_hash;
use gardener_extension_worker::preview::{Baseline, CloudProfiles, Inputs, ShootSource, compare};
use gardener_extension_worker::provider::Providers;
use gardener_extension_worker::shoot::{Garden, Reservation, Surroundings, stored_shoot, worker};
use gardener_extension_worker::worker::machines::machine_objects::MachineObjects;
use jiff::Timestamp;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use test_support::cluster::GardenerPart;
use test_support::edited_shoots::{Edit, PROVIDERS, edited, profile, shoot};

use crate::stage::number_of;

/// A stored Shoot, and the `spec` of its Worker.
struct Translated {
    stored: Value,
    worker: Value,
}

/// Translates with Gardener's code.
async fn by_gardener(
    part: &mut GardenerPart,
    shoot: &Value,
    profile: &Value,
    before: Option<&Translated>,
) -> Result<Translated> {
    let query = json!({
        "cloudProfile": profile, "shoot": shoot,
        "stored": before.map(|before| &before.stored), "worker": before.map(|before| &before.worker),
    });
    let mut response = part.request(&query).await?;
    ensure!(response["error"].is_null(), "Gardener refuses {shoot:#}: {response}");
    Ok(Translated { stored: response["stored"].take(), worker: response["worker"].take() })
}

/// Translates with this library.
fn by_us(shoot: &Value, profile: &Value, before: Option<&Translated>) -> Result<Translated> {
    let profile: ProfileObject = decode_lenient(&profile.to_string())?;
    let garden = Garden { reservation: Reservation::Static, node_local_dns: false, now: Timestamp::now() };
    let stored = stored_shoot(shoot, before.map(|before| &before.stored), &profile.spec, &garden)?;
    let surroundings = Surroundings { existing_worker: before.map(|before| &before.worker), ..Surroundings::default() };
    let mut written = worker(&stored, &profile.spec, &surroundings)?;
    Ok(Translated { stored, worker: written["spec"].take() })
}

/// For each pool, the hash that distinguishes the names of its classes.
fn hashes(translated: &Translated) -> Result<BTreeMap<String, String>> {
    let spec: WorkerSpec = decode_lenient(&to_go_json(&translated.worker))?;
    let shoot: Shoot = decode_lenient(&to_go_json(&translated.stored))?;
    let provider = Providers::SHIPPED.for_worker_type(&spec.worker_type)?;
    let mut hashes = BTreeMap::new();
    for pool in &spec.pools {
        let items = provider.pool_items(pool).map_err(|error| anyhow!("{error:?}"))?;
        hashes.insert(pool.name.clone(), pool_hash(pool, &shoot, &items).map_err(|error| anyhow!("{error:?}"))?.hash.0);
    }
    Ok(hashes)
}

/// For each pool, whether a preview of the edit reports a roll.
fn previewed(old: &Value, new: &Value, profile: Value) -> Result<BTreeMap<String, bool>> {
    let known = CloudProfiles::default();
    let source = Arc::new(ShootSource::new(Timestamp::now()));
    let shared = known.share(profile).map_err(|error| anyhow!("{error:?}"))?;
    let inputs = [old, new]
        .map(|shoot| Inputs::of_shoot(shoot.clone(), Arc::clone(&shared), Arc::clone(&source), known.providers()));
    let change = compare(Some(&inputs[0]), Some(&inputs[1]), &MachineObjects::default(), Baseline::Rendered, &known);
    let placements = change.placements.iter().filter(|one| one.old_class.is_some() && one.new_class.is_some());
    Ok(placements.map(|one| (one.pool.clone(), one.verdict.is_roll())).collect())
}

/// Correct and wrong previews of pools, and Workers that differ.
#[derive(Debug, Default)]
struct Score {
    rolls: usize,
    stays: usize,
    missed: Vec<String>,
    invented: Vec<String>,
    other_workers: Vec<String>,
}

impl Score {
    async fn add(&mut self, part: &mut GardenerPart, provider: &str, before: &[Edit], edit: &[Edit]) -> Result<()> {
        let profile = profile(provider);
        let old = edited(&shoot(provider), before);
        let new = edited(&old, edit);
        let theirs = by_gardener(part, &old, &profile, None).await?;
        let theirs_after = by_gardener(part, &new, &profile, Some(&theirs)).await?;
        let ours = by_us(&old, &profile, None)?;
        let ours_after = by_us(&new, &profile, Some(&ours))?;
        for (theirs, ours) in [(&theirs, &ours), (&theirs_after, &ours_after)] {
            if theirs.worker != ours.worker {
                self.other_workers.push(format!("{provider} {before:?} {edit:?}\n{}\n{}", theirs.worker, ours.worker));
            }
        }
        let names = [hashes(&theirs)?, hashes(&theirs_after)?];
        for (pool, predicted) in previewed(&old, &new, profile)? {
            let case = || format!("{provider} {before:?} {edit:?}: {pool}");
            match (names[0].get(&pool) != names[1].get(&pool), predicted) {
                (true, true) => self.rolls += 1,
                (false, false) => self.stays += 1,
                (true, false) => self.missed.push(case()),
                (false, true) => self.invented.push(case()),
            }
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_preview_reports_exactly_the_pools_that_gardenlet_rolls() -> Result<()> {
    let mut part = GardenerPart::start::<&str>("worker", &[]).await?;
    let edits = |most: usize| prop::collection::vec(any::<Edit>(), 0..most);
    let strategy = (prop::sample::select(&PROVIDERS[..]), edits(4), edits(4));
    let mut runner = TestRunner::deterministic();
    let mut score = Score::default();
    for _ in 0..number_of("SHOOT_EDITS", 500)? {
        let (provider, before, edit) = strategy.new_tree(&mut runner).map_err(|reason| anyhow!("{reason}"))?.current();
        score.add(&mut part, provider, &before, &edit).await?;
    }
    let Score { rolls, stays, missed, invented, other_workers } = &score;
    eprintln!("{rolls} pools rolled and {stays} stayed as a preview had said");
    let first = |cases: &[String]| cases.first().cloned().unwrap_or_default();
    ensure!(other_workers.is_empty(), "{} Workers differ, the first: {}", other_workers.len(), first(other_workers));
    ensure!(missed.is_empty(), "{} rolls are missed, the first: {}", missed.len(), first(missed));
    ensure!(invented.is_empty(), "{} rolls are invented, the first: {}", invented.len(), first(invented));
    ensure!(*rolls > 50 && *stays > 50, "too little happens: {rolls} rolls, {stays} pools stay");
    Ok(())
}
