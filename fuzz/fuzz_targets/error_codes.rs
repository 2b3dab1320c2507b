//! Fuzz target: what a driver says of a machine that has failed. At most one code comes of it.
#![no_main]

use gardener_extension_worker::provider::Providers;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for provider in Providers::SHIPPED.of_machines {
        // The length stands for a choice: to ask with each code takes three times as long.
        let code = [None, Some("ResourceExhausted"), Some(text)][text.len() % 3];
        let codes = provider.error_codes(code, text);
        assert!(codes.len() <= 1, "{codes:?}");
    }
});
