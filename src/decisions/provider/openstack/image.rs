//! OpenStack images, referred to by name or by id in the region, and their entries in the provider status.

use serde_json::Value;

use super::OpenStack;
use super::documents::{StatusImage, WorkerStatus};
use crate::provider::explanation::ImageName;
use crate::provider::image::{
    FallbackImages, ImageProvider, ImageSource, KeptImage, SelectedImage, first_pool_of, recorded_images,
};
use crate::provider::{PoolPlan, WorkerContext, WorkerError};
use wire::api::gardener::{Capabilities, CapabilityDefinition, MachineImage, Worker, WorkerPool};
use wire::capabilities::{ARCHITECTURE, DEFAULT_ARCHITECTURE, mean_the_same, only_architecture};

impl ImageProvider for OpenStack {
    fn image_members(&self) -> &'static str {
        "id, image"
    }

    fn kept_images(&self, context: &WorkerContext<'_>) -> Result<FallbackImages, WorkerError> {
        let status: WorkerStatus = context.provider_status()?.unwrap_or_default();
        Ok(kept_images(&status, &context.cloud_profile.spec.machine_capabilities))
    }

    fn architecture_pool<'a>(&self, worker: &'a Worker, pool: &'a WorkerPool, machine_type: &str) -> &'a WorkerPool {
        first_pool_of(worker, machine_type).unwrap_or(pool)
    }
}

/// If the CloudProfile declares no capabilities, only the architecture is compared. Otherwise, capabilities are
/// compared; images without any fit every machine, but those of another architecture have the lowest priority.
pub(super) fn kept_images(status: &WorkerStatus, declared: &[CapabilityDefinition]) -> FallbackImages {
    let kept = |entry: &StatusImage| {
        let listed = entry.capabilities.clone().unwrap_or_default();
        let architecture = || only_architecture(entry.architecture.as_deref().unwrap_or(DEFAULT_ARCHITECTURE));
        let capabilities = if declared.is_empty() { architecture() } else { listed };
        let is_old = capabilities.is_empty() && entry.architecture.is_some();
        KeptImage {
            image: MachineImage { name: entry.name.clone(), version: entry.version.clone() },
            reference: ImageName::of("id", &entry.id).or_else(|| ImageName::of("image", &entry.image)),
            made_for: Some(if is_old { architecture() } else { capabilities.clone() }),
            capabilities,
            encrypted: None,
        }
    };
    FallbackImages::of_worker(status.machine_images.iter().map(kept).collect())
}

/// The provider status entry for the image of a pool. An image without capabilities gets the architecture of the
/// machine type.
pub(super) fn status_image(
    pool: &WorkerPool,
    selected: &SelectedImage<'_>,
    before: &[StatusImage],
    declared: &[CapabilityDefinition],
) -> StatusImage {
    let architecture = |capabilities: &Capabilities| capabilities.values(ARCHITECTURE)?.first().cloned();
    let image = match selected.source {
        ImageSource::Kept(position) => before.get(position).cloned().unwrap_or_default(),
        ImageSource::CloudProfile(_) => {
            let named = |member: &str| {
                if selected.reference.member == member { selected.reference.value.clone() } else { String::new() }
            };
            StatusImage {
                name: pool.machine_image.name.clone(),
                version: pool.machine_image.version.clone(),
                image: named("image"),
                id: named("id"),
                architecture: architecture(&selected.capabilities),
                capabilities: Some(selected.capabilities.clone().into_owned()),
            }
        }
    };
    if declared.is_empty() || image.architecture.is_some() {
        return in_form(image, declared);
    }
    in_form(StatusImage { architecture: architecture(&selected.machine), ..image }, declared)
}

/// Adapts an entry to the format of the CloudProfile: with capabilities if it declares any, otherwise with an
/// architecture.
fn in_form(image: StatusImage, declared: &[CapabilityDefinition]) -> StatusImage {
    let StatusImage { architecture, capabilities, .. } = &image;
    if declared.is_empty() {
        let listed = capabilities.as_ref().and_then(|listed| listed.values(ARCHITECTURE)?.first());
        let architecture = architecture.as_ref().or(listed).cloned();
        return StatusImage { architecture, capabilities: None, ..image };
    }
    let known = || only_architecture(architecture.as_deref().unwrap_or(DEFAULT_ARCHITECTURE));
    let capabilities = capabilities.clone().filter(|listed| !listed.is_empty()).unwrap_or_else(known);
    StatusImage { architecture: None, capabilities: Some(capabilities), ..image }
}

/// The images of the provider status after `planned`.
///
/// # Errors
/// If a planned image is not a valid entry.
pub(super) fn images_after(
    before: &[StatusImage],
    declared: &[CapabilityDefinition],
    planned: &[&PoolPlan],
    failed: &[&WorkerPool],
) -> Result<Vec<Value>, WorkerError> {
    let before: Vec<StatusImage> = before.iter().map(|image| in_form(image.clone(), declared)).collect();
    let capabilities = |image: &StatusImage| image.capabilities.clone().unwrap_or_default();
    recorded_images(&before, planned, failed, |one, other| {
        (&one.name, &one.version, &one.architecture) == (&other.name, &other.version, &other.architecture)
            && mean_the_same(&capabilities(one), &capabilities(other), declared)
    })
}
