//! Fuzz target: the pools of a Shoot as the webhook reviews them, alone and as an update without changes.
#![no_main]

use gardener_extension_worker::api::gardener::ShootPools;
use gardener_extension_worker::api::gotext::json::decode_lenient;
use gardener_extension_worker::provider::Providers;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(pools) = decode_lenient::<ShootPools>(text) else { return };
    for provider in Providers::SHIPPED.of_machines {
        let alone = provider.validate_shoot_pools(&pools, None);
        let names: std::collections::BTreeSet<&str> = pools.workers.iter().map(|pool| pool.name.as_str()).collect();
        if names.len() == pools.workers.len() {
            let unchanged = provider.validate_shoot_pools(&pools, Some(&pools));
            assert_eq!(alone.0.len(), unchanged.0.len(), "a change that is none is denied");
        }
    }
});
