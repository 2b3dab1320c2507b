//! GCP images in the provider status.

use super::Gcp;
use super::documents::WorkerStatus;
use crate::provider::image::{FallbackImages, ImageProvider, KeptImage, ReferenceMember, UsedImage, first_pool_of};
use crate::provider::{WorkerContext, WorkerError};
use wire::api::gardener::{Worker, WorkerPool};
use wire::capabilities::only_architecture;

/// The member of provider status entries that refers to an image.
pub(super) const MEMBER: ReferenceMember = ReferenceMember("image");

impl ImageProvider for Gcp {
    fn image_members(&self) -> &'static str {
        MEMBER.0
    }

    fn kept_images(&self, context: &WorkerContext<'_>) -> Result<FallbackImages, WorkerError> {
        Ok(kept_images(&used_before(context)?))
    }

    fn architecture_pool<'a>(&self, worker: &'a Worker, pool: &'a WorkerPool, machine_type: &str) -> &'a WorkerPool {
        first_pool_of(worker, machine_type).unwrap_or(pool)
    }
}

/// Images recorded in the provider status.
pub(super) fn used_before(context: &WorkerContext<'_>) -> Result<Vec<UsedImage>, WorkerError> {
    Ok(context.provider_status::<WorkerStatus>()?.map(WorkerStatus::into_used).unwrap_or_default())
}

/// Without recorded capabilities, the architecture is used as a capability, even if the CloudProfile declares none. An
/// image with neither fits every machine.
pub(super) fn kept_images(used: &[UsedImage]) -> FallbackImages {
    let kept = |used: &UsedImage| {
        let listed = used.capabilities.clone().filter(|listed| !listed.is_empty());
        let known = listed.or_else(|| used.architecture.as_deref().map(only_architecture));
        KeptImage {
            image: used.image.clone(),
            reference: used.name(MEMBER),
            capabilities: known.clone().unwrap_or_default(),
            made_for: known,
            encrypted: None,
        }
    };
    FallbackImages::of_worker(used.iter().map(kept).collect())
}
