//! Fuzz target: what a driver says of a machine that has failed. At most one code comes of it.
#![no_main]

use gardener_extension_worker::provider::Providers;
use libfuzzer_sys::fuzz_target;

/// How often each cloud is asked: once for each way in which a driver's own code can stand beside the text.
const WAYS: usize = 3;

fuzz_target!(|text: &str| {
    let providers = Providers::SHIPPED.of_machines;
    // The length stands for a choice: all of them take fifteen times as long.
    let choice = text.len() % (WAYS * providers.len());
    let code: [Option<&str>; WAYS] = [None, Some("ResourceExhausted"), Some(text)];
    let codes = providers[choice / WAYS].error_codes(code[choice % WAYS], text);
    assert!(codes.len() <= 1, "{codes:?}");
});
