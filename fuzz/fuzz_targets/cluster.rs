//! Fuzz target: a Cluster as the API server sends it.
#![no_main]

use gardener_extension_worker::api::gardener::Cluster;
use gardener_extension_worker::api::gotext::json::decode_lenient;
use gardener_extension_worker::worker::request::decode::{is_deletion_forced, is_shoot_failed};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(cluster) = decode_lenient::<Cluster>(text) {
        // Checks that precede planning.
        let _ = (is_deletion_forced(&cluster), is_shoot_failed(&cluster));
    }
});
