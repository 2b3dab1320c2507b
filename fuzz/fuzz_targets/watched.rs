//! Fuzz target: an object from a watch, decoded as each watched kind. A Worker that is packed can be decoded later if,
//! and only if, it can be decoded immediately.
#![no_main]

use gardener_extension_worker::fuzzing::watched;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Some([later, at_once]) = watched(text) {
        assert_eq!(later, at_once, "packing changes it");
    }
});
