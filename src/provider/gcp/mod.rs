//! GCP: images of `spec.type: gcp`. Its Workers are not served.
//!
//! * [`documents`]: what stands in `providerConfig` and its relatives;
//! * `profile`: its half of CloudProfiles.

use super::explanation::ImageName;
use super::image::{ImageEntry, ImageProvider, KeptImage, KeptImages};
use super::{WorkerContext, WorkerError};

pub mod documents;
mod profile;

use documents::WorkerStatus;

/// The provider of CloudProfiles of type `gcp`.
pub struct Gcp;

impl ImageProvider for Gcp {
    fn image_members(&self) -> &'static str {
        "image"
    }

    fn kept_images(&self, context: &WorkerContext<'_>) -> Result<KeptImages, WorkerError> {
        let status: WorkerStatus = context.provider_status()?.unwrap_or_default();
        Ok(KeptImages::of_worker(status.machine_images.iter().map(kept).collect()))
    }
}

/// Without capabilities, its architecture is one, also where the CloudProfile declares none.
fn kept(entry: &ImageEntry) -> KeptImage {
    let listed = Some(&entry.capabilities).filter(|capabilities| !capabilities.is_empty());
    let capabilities = listed.cloned().unwrap_or_else(|| entry.by_architecture());
    entry.kept(ImageName::of("image", &entry.image), capabilities)
}
