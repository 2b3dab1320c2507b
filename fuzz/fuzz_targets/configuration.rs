//! Fuzz target: a file for `--config`. All resulting arguments are long ones.
#![no_main]

use gardener_extension_worker::fuzzing::configuration;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for argument in configuration(text).iter().flatten() {
        assert!(argument.starts_with("--"), "{argument:?}");
    }
});
