//! Fuzz target: injects the sidecar into a Deployment or VerticalPodAutoscaler. A second injection changes nothing.
#![no_main]

use gardener_extension_worker::fuzzing::inject;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|text: &str| {
    let Ok(object) = serde_json::from_str::<Value>(text) else { return };
    let Some(injected) = inject(&object) else { return };
    assert_eq!(inject(&injected).as_ref(), Some(&injected), "it is injected twice");
});
