//! OpenStack: images of `spec.type: openstack` (spec/other-providers.md sections 1 and 2). Its Workers are not served.
//!
//! * [`documents`]: what stands in `providerConfig` and its relatives;
//! * `profile`: its half of CloudProfiles, with `settings` for what is no image.

use super::image_provider::{ImageProvider, KeptImages};
use super::{WorkerContext, WorkerError};

pub mod documents;
mod profile;
mod settings;

use documents::WorkerStatus;

/// The provider of CloudProfiles of type `openstack`.
pub struct OpenStack;

impl ImageProvider for OpenStack {
    fn image_members(&self) -> &'static str {
        "id, image"
    }

    fn kept_images(&self, context: &WorkerContext<'_>) -> Result<KeptImages, WorkerError> {
        let status: WorkerStatus = context.provider_status()?.unwrap_or_default();
        let by_architecture = context.cloud_profile.spec.machine_capabilities.is_empty();
        let kept = status.machine_images.iter().map(|kept| kept.to_kept(by_architecture));
        Ok(KeptImages::of_worker(kept.collect()))
    }
}
