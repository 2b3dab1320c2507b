//! Fuzz target: a Worker as the API server sends it. The raw documents inside must be kept byte for byte.
#![no_main]

use gardener_extension_worker::api::gardener::Worker;
use gardener_extension_worker::api::gotext::json::decode_lenient;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(worker) = decode_lenient::<Worker>(text) else { return };
    let of_pools = worker.spec.pools.iter().filter_map(|pool| pool.provider_config.as_deref());
    let shared = [&worker.spec.infrastructure_provider_status, &worker.status.provider_status];
    for raw in of_pools.chain(shared.into_iter().filter_map(|raw| raw.as_deref())) {
        assert!(text.contains(raw.get()), "not the bytes that were received");
    }
});
