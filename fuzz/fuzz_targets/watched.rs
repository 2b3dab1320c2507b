//! Fuzz target: an object as a watch brings it, for each kind that is watched. A Worker that is packed and decoded later is one that
//! could be decoded at once, and the other way round.
#![no_main]

use gardener_extension_worker::fuzzing::watched;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Some([later, at_once]) = watched(text) {
        assert_eq!(later, at_once, "packing changes it");
    }
});
