//! AliCloud: images of `spec.type: alicloud`. Its Workers are not served.
//!
//! * [`documents`]: what stands in `providerConfig` and its relatives;
//! * `profile`: its half of CloudProfiles.

use super::explanation::ImageName;
use super::image::{ImageEntry, ImageProvider, KeptImage, KeptImages};
use super::{WorkerContext, WorkerError};
use crate::api::gardener::Capabilities;

pub mod documents;
mod profile;

use documents::InfrastructureStatus;

/// The provider of CloudProfiles of type `alicloud`.
pub struct AliCloud;

impl ImageProvider for AliCloud {
    fn image_members(&self) -> &'static str {
        "id"
    }

    /// The infrastructure controller copies images into the account, encrypts them if need be, and records the copies.
    fn kept_images(&self, context: &WorkerContext<'_>) -> Result<KeptImages, WorkerError> {
        let status: InfrastructureStatus = context.infrastructure_status()?;
        Ok(KeptImages::of_infrastructure(status.machine_images.iter().map(kept).collect()))
    }
}

/// It fits every machine: only name, version and encryption are compared.
fn kept(entry: &ImageEntry) -> KeptImage {
    let encrypted = Some(entry.encrypted.unwrap_or_default());
    KeptImage { encrypted, ..entry.kept(ImageName::of("id", &entry.id), Capabilities::default()) }
}
