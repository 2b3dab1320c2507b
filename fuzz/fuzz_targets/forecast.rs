//! Fuzz target: maintenance of a Shoot within a year. The input is an object with `shoot` and `profile`, the `spec` of
//! a CloudProfile. The times of the steps never decrease. A controller that starts exactly when a window begins runs
//! twice in it.
#![no_main]

use gardener_extension_worker::api::gardener::ProfileSpec;
use gardener_extension_worker::api::gotext::json::decode_lenient;
use gardener_extension_worker::versions::catalog::VersionCatalog;
use gardener_extension_worker::versions::forecast::forecast;
use gardener_extension_worker::versions::garden::Garden;
use gardener_extension_worker::versions::maintenance::MaintainedShoot;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

/// The year from 2026-02-01.
const YEAR: [i64; 2] = [1_769_904_000, 1_801_440_000];

fuzz_target!(|text: &str| {
    let Ok(input) = serde_json::from_str::<Value>(text) else { return };
    let Ok(profile) = decode_lenient::<ProfileSpec>(&input["profile"].to_string()) else { return };
    let Ok(shoot) = MaintainedShoot::read(&input["shoot"], true) else { return };
    let catalog = VersionCatalog::new("p", &profile);
    let [from, until] = YEAR.map(|second| jiff::Timestamp::from_second(second).expect("a moment"));
    let found = forecast(&shoot, &catalog, &Garden::default(), [from, until]);
    for steps in found.steps.windows(2) {
        assert!(steps[0].time <= steps[1].time, "time goes back");
    }
});
