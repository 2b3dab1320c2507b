//! Fuzz target: `WorkerStatus`, the provider document in the status of a Worker.
#![no_main]

use gardener_extension_worker::provider::document::decode_document;
use gardener_extension_worker::provider::{aws, azure, gcp};
use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;

fuzz_target!(|text: &str| {
    if let Ok(raw) = serde_json::from_str::<&RawValue>(text) {
        let _ = decode_document::<aws::documents::WorkerStatus>(raw);
        let _ = decode_document::<azure::documents::WorkerStatus>(raw);
        let _ = decode_document::<gcp::documents::WorkerStatus>(raw);
    }
});
