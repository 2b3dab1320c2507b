//! Fuzz target: a CloudProfile's `spec` as admission judges and changes it, also as a parent's changes.
#![no_main]

use gardener_extension_worker::api::gardener::{NamespacedProfileSpec, ProfileSpec};
use gardener_extension_worker::api::gotext::json::decode_lenient;
use gardener_extension_worker::cloud_profile::namespaced::merge;
use gardener_extension_worker::cloud_profile::validation::{FeatureGates, validate_profile};
use gardener_extension_worker::provider::Providers;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(spec) = decode_lenient::<ProfileSpec>(text) else { return };
    let _ = validate_profile(&spec, FeatureGates { capabilities: true, lifecycle: true }, Default::default());
    if let Some(Ok(config)) =
        Providers::SHIPPED.profile_format(&spec.provider_type).map(|format| format.open(spec.provider_config.as_deref()))
    {
        let _ = config.validate(&spec);
        let _ = config.core_flavors(&spec.machine_images);
        let _ = config.repeated_flavors(&spec.machine_capabilities);
    }
    if let Ok(namespaced) = decode_lenient::<NamespacedProfileSpec>(text) {
        let _ = merge(spec, namespaced);
    }
});
