//! The patch that makes core's half list the flavors of the provider's half.

use serde_json::json;

use crate::api::gardener::ProfileImage;
use crate::provider::profile::CoreFlavors;
use crate::webhook::{PatchOperation, Verdict};

/// A step for each version whose flavors differ; a flavor that is written in another way but means the same stays.
pub(super) fn flavor_patch(images: &[ProfileImage], listed: Vec<CoreFlavors<'_>>) -> Verdict {
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
