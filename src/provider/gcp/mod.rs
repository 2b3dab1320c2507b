//! GCP: images of `spec.type: gcp` (spec/other-providers.md sections 1 and 2). Its Workers are not served.
//!
//! * [`documents`]: what stands in `providerConfig` and its relatives;
//! * `profile`: its half of CloudProfiles.

use super::image_provider::{ImageProvider, KeptImages};
use super::{WorkerContext, WorkerError};

pub mod documents;
mod profile;

use documents::{StatusImage, WorkerStatus};

/// The provider of CloudProfiles of type `gcp`.
pub struct Gcp;

impl ImageProvider for Gcp {
    fn image_members(&self) -> &'static str {
        "image"
    }

    fn kept_images(&self, context: &WorkerContext<'_>) -> Result<KeptImages, WorkerError> {
        let status: WorkerStatus = context.provider_status()?.unwrap_or_default();
        Ok(KeptImages::of_worker(status.machine_images.iter().map(StatusImage::to_kept).collect()))
    }
}
