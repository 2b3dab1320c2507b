//! OpenStack: images of `spec.type: openstack`. Its Workers are not served.
//!
//! * [`documents`]: what stands in `providerConfig` and its relatives;
//! * `profile`: its half of CloudProfiles, with `settings` for what is no image.

use super::explanation::ImageName;
use super::image::{ImageEntry, ImageProvider, KeptImage, KeptImages};
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
        let kept = status.machine_images.iter().map(|entry| kept(entry, by_architecture));
        Ok(KeptImages::of_worker(kept.collect()))
    }
}

/// Where the CloudProfile declares no capabilities, only the architecture counts. Else the capabilities do; without any
/// the architecture does, and what names neither fits every machine.
fn kept(entry: &ImageEntry, by_architecture: bool) -> KeptImage {
    let capabilities = if by_architecture || (entry.capabilities.is_empty() && entry.architecture.is_some()) {
        entry.by_architecture()
    } else {
        entry.capabilities.clone()
    };
    entry.kept(ImageName::of("id", &entry.id).or_else(|| ImageName::of("image", &entry.image)), capabilities)
}
