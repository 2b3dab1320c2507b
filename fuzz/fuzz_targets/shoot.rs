//! Fuzz target: converts a user's Shoot to the Worker that gardenlet would write. Reading a stored Shoot does not
//! change it.
#![no_main]

use gardener_extension_worker::api::gardener::{ProfileSpec, VersionedShoot};
use gardener_extension_worker::api::gotext::json::decode_lenient;
use gardener_extension_worker::shoot::{Surroundings, read_shoot, worker};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|text: &str| {
    let Ok(written) = serde_json::from_str::<Value>(text) else { return };
    let Ok(stored) = read_shoot(&written) else { return };
    assert_eq!(read_shoot(&stored).as_ref(), Ok(&stored), "what is stored changes when it is read");
    let _ = worker(&stored, &ProfileSpec::default(), &Surroundings::default());
    let _ = decode_lenient::<VersionedShoot>(text);
});
