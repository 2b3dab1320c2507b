//! Fuzz target: `InfrastructureStatus`, the document that the infrastructure controller writes.
#![no_main]

use gardener_extension_worker::provider::document::decode_document;
use gardener_extension_worker::provider::{alicloud, aws, azure, gcp, openstack};
use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;

fuzz_target!(|text: &str| {
    if let Ok(raw) = serde_json::from_str::<&RawValue>(text) {
        let _ = decode_document::<alicloud::documents::InfrastructureStatus>(raw);
        let _ = decode_document::<aws::documents::InfrastructureStatus>(raw);
        let _ = decode_document::<azure::documents::InfrastructureStatus>(raw);
        let _ = decode_document::<gcp::documents::InfrastructureStatus>(raw);
        let _ = decode_document::<openstack::documents::InfrastructureStatus>(raw);
    }
});
