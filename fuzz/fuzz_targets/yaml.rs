//! Fuzz target: YAML and JSON files. What is read must be the same when it was printed and is read again.
#![no_main]

use gardener_extension_worker::api::gotext::{json::to_go_json, yaml};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for document in yaml::documents(text).unwrap_or_default() {
        let printed = to_go_json(&document);
        assert_eq!(yaml::documents(&printed).as_deref(), Ok(&[document][..]), "{printed}");
    }
});
