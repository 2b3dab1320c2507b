//! AWS images in the provider status.

use super::Aws;
use super::documents::WorkerStatus;
use crate::provider::image::{
    ComparedWith, FallbackImages, ImageProvider, KeptImage, ReferenceMember, UsedImage, first_pool_of,
};
use crate::provider::{WorkerContext, WorkerError};
use wire::api::gardener::{Worker, WorkerPool};
use wire::capabilities::{DEFAULT_ARCHITECTURE, only_architecture};

/// The member of provider status entries that refers to an image.
pub(super) const MEMBER: ReferenceMember = ReferenceMember("ami");

impl ImageProvider for Aws {
    fn image_members(&self) -> &'static str {
        MEMBER.0
    }

    fn kept_images(&self, context: &WorkerContext<'_>) -> Result<FallbackImages, WorkerError> {
        Ok(kept_images(context, &used_before(context)?))
    }

    fn architecture_pool<'a>(&self, worker: &'a Worker, pool: &'a WorkerPool, machine_type: &str) -> &'a WorkerPool {
        first_pool_of(worker, machine_type).unwrap_or(pool)
    }
}

/// Images recorded in the provider status.
pub(super) fn used_before(context: &WorkerContext<'_>) -> Result<Vec<UsedImage>, WorkerError> {
    Ok(context.provider_status::<WorkerStatus>()?.map(WorkerStatus::into_used).unwrap_or_default())
}

/// The images of the provider status, in order. If the CloudProfile declares no capabilities, images are compared with
/// the architecture of the pool.
pub(super) fn kept_images(context: &WorkerContext<'_>, used: &[UsedImage]) -> FallbackImages {
    let old_format = context.cloud_profile.spec.machine_capabilities.is_empty();
    let compared_with = if old_format { ComparedWith::PoolArchitecture } else { ComparedWith::MachineType };
    let kept = FallbackImages::of_worker(used.iter().map(|used| kept_image(used, old_format)).collect());
    FallbackImages { compared_with, ..kept }
}

/// With declared capabilities, a kept image without capabilities fits every machine. An image with the architecture of
/// the machine takes precedence, so that pools of two architectures keep their images when a CloudProfile starts to
/// declare capabilities.
fn kept_image(used: &UsedImage, old_format: bool) -> KeptImage {
    let architecture = used.architecture.as_deref();
    let listed = used.capabilities.clone().unwrap_or_default();
    let has_capabilities = !listed.is_empty();
    let capabilities =
        if old_format { only_architecture(architecture.unwrap_or(DEFAULT_ARCHITECTURE)) } else { listed };
    let made_for = if has_capabilities { Some(capabilities.clone()) } else { architecture.map(only_architecture) };
    KeptImage { image: used.image.clone(), reference: used.name(MEMBER), capabilities, made_for, encrypted: None }
}
