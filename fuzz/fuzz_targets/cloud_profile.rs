//! Fuzz target: a CloudProfile's `spec` as admission reviews and changes it. The same text also serves as the `spec` of
//! a NamespacedCloudProfile.
#![no_main]

use gardener_extension_worker::api::gardener::{NamespacedProfileSpec, ProfileSpec};
use gardener_extension_worker::api::gotext::json::decode_lenient;
use gardener_extension_worker::cloud_profile::namespaced_rules::{Before, leave_out_inactive, validate_namespaced};
use gardener_extension_worker::cloud_profile::validation::{FeatureGates, validate_profile};
use gardener_extension_worker::provider::Providers;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(spec) = decode_lenient::<ProfileSpec>(text) else { return };
    let gates = FeatureGates { capabilities: true, lifecycle: true };
    let _ = validate_profile(&spec, gates, Default::default());
    if let Some(Ok(config)) = Providers::SHIPPED
        .profile_format(&spec.provider_type)
        .map(|format| format.open(spec.provider_config.as_deref()))
    {
        let _ = config.validate(&spec);
        let _ = config.core_flavors(&spec.machine_images);
        let _ = config.repeated_flavors(&spec.machine_capabilities);
    }
    if let Ok(mut namespaced) = decode_lenient::<NamespacedProfileSpec>(text) {
        let (before, merged) = (namespaced.clone(), spec.clone());
        let before = Before { spec: &before, merged: &merged };
        leave_out_inactive(&mut namespaced, Some(before.spec), Default::default());
        let _ = validate_namespaced(namespaced, spec, Some(before), gates, Default::default());
    }
});
