//! Fuzz target: YAML and JSON files. Printed documents must be readable, and printing them again must return the same
//! text.
#![no_main]

use gardener_extension_worker::api::gotext::{json::to_go_json, yaml};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for document in yaml::documents(text).unwrap_or_default() {
        let printed = to_go_json(&document);
        // Compares texts, because Go prints integers beyond 64 bits in double precision, which changes them once.
        let again: Vec<_> =
            yaml::documents(&printed).expect("what is printed can be read").iter().map(to_go_json).collect();
        assert_eq!(again, [printed]);
    }
});
