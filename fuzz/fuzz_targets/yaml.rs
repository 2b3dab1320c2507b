//! Fuzz target: YAML and JSON files. What is printed of it must be readable and be printed the
//! same way again.
#![no_main]

use gardener_extension_worker::api::gotext::{json::to_go_json, yaml};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for document in yaml::documents(text).unwrap_or_default() {
        let printed = to_go_json(&document);
        // The texts are compared: Go prints integers beyond 64 bits in double precision, which changes them once.
        let again: Vec<_> =
            yaml::documents(&printed).expect("what is printed can be read").iter().map(to_go_json).collect();
        assert_eq!(again, [printed]);
    }
});
