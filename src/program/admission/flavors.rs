//! The patch that updates the flavors in the generic part of a profile to match the provider config.

use serde_json::json;

use decisions::provider::profile::GenericFlavors;
use runtime::webhook::{PatchOperation, Verdict};
use wire::api::gardener::ProfileImage;

/// One patch operation per version with different flavors. Equivalent flavors in another notation are kept.
pub(super) fn flavor_patch(images: &[ProfileImage], listed: Vec<GenericFlavors<'_>>) -> Verdict {
    let steps = listed.into_iter().filter_map(|listed| {
        let version = images.get(listed.image)?.versions.get(listed.version)?;
        if version.capability_flavors.iter().eq(listed.flavors.iter().map(|flavor| &**flavor)) {
            return None;
        }
        let path = format!("/spec/machineImages/{}/versions/{}/capabilityFlavors", listed.image, listed.version);
        if listed.flavors.is_empty() {
            return Some(PatchOperation::Remove { path });
        }
        Some(PatchOperation::Add { path, value: json!(listed.flavors) })
    });
    Verdict::Allowed { patch: steps.collect(), warnings: Vec::new() }
}
