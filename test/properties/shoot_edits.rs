//! A preview of an edited Shoot reports a roll exactly where the names of classes change. The test computes the names
//! again, from the Workers that gardenlet would write.

use std::collections::BTreeMap;
use std::sync::Arc;

use gardener_extension_worker::api::gardener::{ProfileObject, Shoot, WorkerSpec};
use gardener_extension_worker::api::gotext::json::{decode_lenient, to_go_json};
use gardener_extension_worker::pool::hash::pool_hash;
use gardener_extension_worker::preview::{Baseline, CloudProfiles, Inputs, Severity, ShootSource, compare};
use gardener_extension_worker::provider::Providers;
use gardener_extension_worker::shoot::{Garden, Reservation, Surroundings, stored_shoot, worker};
use gardener_extension_worker::worker::machines::machine_objects::MachineObjects;
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::Value;
use test_support::edited_shoots::{Edit, PROVIDERS, edited, profile, shoot};

fn now() -> Timestamp {
    "2026-10-01T00:00:00Z".parse().unwrap()
}

/// For each pool, the hash that distinguishes the names of its classes.
fn hashes(shoot: &Value, profile: &Value, before: Option<&Value>) -> (Value, BTreeMap<String, String>) {
    let profile: ProfileObject = decode_lenient(&profile.to_string()).unwrap();
    let garden = Garden { reservation: Reservation::Static, node_local_dns: false, now: now() };
    let stored = stored_shoot(shoot, before, &profile.spec, &garden).unwrap();
    let written = worker(&stored, &profile.spec, &Surroundings::default()).unwrap();
    let spec: WorkerSpec = decode_lenient(&to_go_json(&written["spec"])).unwrap();
    let typed: Shoot = decode_lenient(&to_go_json(&stored)).unwrap();
    let provider = Providers::SHIPPED.for_worker_type(&spec.worker_type).unwrap();
    let hash = |pool| pool_hash(pool, &typed, &provider.pool_items(pool).unwrap()).unwrap().hash.0;
    let hashes = spec.pools.iter().map(|pool| (pool.name.clone(), hash(pool))).collect();
    (stored, hashes)
}

proptest! {
    #[test]
    fn nodes_roll_exactly_where_names_of_classes_become_others(
        provider in prop::sample::select(&PROVIDERS[..]),
        before in prop::collection::vec(any::<Edit>(), 0..4),
        edit in prop::collection::vec(any::<Edit>(), 1..4),
    ) {
        let old = edited(&shoot(provider), &before);
        let new = edited(&old, &edit);
        let profile = profile(provider);
        let (stored, old_hashes) = hashes(&old, &profile, None);
        let (_, new_hashes) = hashes(&new, &profile, Some(&stored));
        let known = CloudProfiles::default();
        let source = Arc::new(ShootSource::new(now()));
        let shared = known.share(profile).unwrap();
        let [old, new] = [old, new]
            .map(|shoot| Inputs::of_shoot(shoot, Arc::clone(&shared), Arc::clone(&source), known.providers()));
        let change = compare(Some(&old), Some(&new), &MachineObjects::default(), Baseline::Rendered, &known);
        prop_assert!(change.findings.iter().all(|finding| finding.severity != Severity::Error), "{:?}", change.findings);
        for placement in change.placements.iter().filter(|one| one.old_class.is_some() && one.new_class.is_some()) {
            let differs = old_hashes[&placement.pool] != new_hashes[&placement.pool];
            prop_assert_eq!(placement.verdict.is_roll(), differs, "{}", placement.deployment);
            prop_assert_eq!(placement.old_class != placement.new_class, differs, "{}", placement.deployment);
            prop_assert!(!differs || !placement.causes.is_empty(), "nobody knows why {} rolls", placement.deployment);
        }
    }
}
