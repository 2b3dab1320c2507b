//! Fuzz target: what a driver says of a machine that has failed. At most one code comes of it.
#![no_main]

use gardener_extension_worker::provider::Providers;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for provider in Providers::SHIPPED.of_machines {
        for code in [None, Some("ResourceExhausted"), Some(text)] {
            let codes = provider.error_codes(code, text);
            assert!(codes.len() <= 1, "{codes:?}");
        }
    }
});
