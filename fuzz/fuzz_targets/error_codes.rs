//! Fuzz target: a driver's error text for a failed machine. At most one error code results from it.
#![no_main]

use gardener_extension_worker::provider::Providers;
use libfuzzer_sys::fuzz_target;

/// Number of combinations per cloud: one for each way in which the driver's own code can accompany the text.
const WAYS: usize = 3;

fuzz_target!(|text: &str| {
    let providers = Providers::SHIPPED.of_machines;
    // The length of the text selects one combination, because all of them would take fifteen times as long.
    let choice = text.len() % (WAYS * providers.len());
    let code: [Option<&str>; WAYS] = [None, Some("ResourceExhausted"), Some(text)];
    let codes = providers[choice / WAYS].error_codes(code[choice % WAYS], text);
    assert!(codes.len() <= 1, "{codes:?}");
});
