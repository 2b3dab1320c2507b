//! Fuzz target: the whole path of `render`, from the text of a file to machine objects or errors.
#![no_main]

use std::path::Path;

use gardener_extension_worker::api::gotext::yaml;
use gardener_extension_worker::cli::input::workers_of_documents;
use gardener_extension_worker::cli::render::render;
use gardener_extension_worker::provider::Providers;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(documents) = yaml::documents(text) else { return };
    for worker in workers_of_documents(Path::new("fuzz"), documents).unwrap_or_default() {
        let rendered = render(worker, Providers::SHIPPED);
        assert!(
            !rendered.errors.is_empty()
                || rendered.machine_deployments.len() <= rendered.machine_deployment_objects.len(),
            "a wanted deployment is not there"
        );
        let _ = serde_json::to_string(&rendered).expect("the result can be printed");
    }
});
