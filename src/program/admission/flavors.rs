//! The patch that updates the flavors in the generic part of a profile to match the provider config.

use json_patch::jsonptr::Pointer;
use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation};
use serde_json::json;

use decisions::provider::profile::GenericFlavors;
use runtime::webhook::Verdict;
use wire::api::gardener::ProfileImage;

const IMAGES: &Pointer = Pointer::from_static("/spec/machineImages");

/// One patch operation per version with different flavors. Equivalent flavors in another notation are kept.
pub(super) fn flavor_patch(images: &[ProfileImage], listed: Vec<GenericFlavors<'_>>) -> Verdict {
    let steps = listed.into_iter().filter_map(|listed| {
        let version = images.get(listed.image)?.versions.get(listed.version)?;
        if version.capability_flavors.iter().eq(listed.flavors.iter().map(|flavor| &**flavor)) {
            return None;
        }
        let image = IMAGES.with_trailing_token(listed.image);
        let version = image.with_trailing_token("versions").with_trailing_token(listed.version);
        let path = version.with_trailing_token("capabilityFlavors");
        if listed.flavors.is_empty() {
            return Some(PatchOperation::Remove(RemoveOperation { path }));
        }
        Some(PatchOperation::Add(AddOperation { path, value: json!(listed.flavors) }))
    });
    Verdict::Allowed { patch: Patch(steps.collect()), warnings: Vec::new() }
}
