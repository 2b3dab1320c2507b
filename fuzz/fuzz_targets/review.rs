//! Fuzz target: the body of a request to the garden's webhooks, from their checks to the responses. Each response is an
//! AdmissionReview.
#![no_main]

use gardener_extension_worker::fuzzing::review;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|body: &[u8]| {
    for result in review(body).unwrap_or_default() {
        let result: Value = serde_json::from_slice(&result).expect("an answer is JSON");
        let is_denied = result["response"]["status"]["message"].is_string();
        assert_eq!(result["response"]["allowed"], !is_denied, "a denial says why");
    }
});
