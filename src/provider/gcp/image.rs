//! Images of GCP: where they are kept, and in which form.

use super::Gcp;
use super::documents::{StatusImage, WorkerStatus};
use crate::api::gardener::{MachineImage, Worker, WorkerPool};
use crate::capabilities::only_architecture;
use crate::provider::image::{ImageProvider, KeptImage, KeptImages, ReferenceMember, UsedImage};
use crate::provider::{WorkerContext, WorkerError};

/// How entries of the provider status name an image.
pub(super) const MEMBER: ReferenceMember = ReferenceMember("image");

impl ImageProvider for Gcp {
    fn image_members(&self) -> &'static str {
        MEMBER.0
    }

    fn kept_images(&self, context: &WorkerContext<'_>) -> Result<KeptImages, WorkerError> {
        Ok(kept_images(&used_before(context.provider_status()?)))
    }

    /// The first pool of a machine type decides for all of them, because the Go extension writes its architecture into the
    /// machine type.
    fn architecture_pool<'a>(&self, worker: &'a Worker, pool: &'a WorkerPool, machine_type: &str) -> &'a WorkerPool {
        worker.spec.pools.iter().find(|other| other.machine_type == machine_type).unwrap_or(pool)
    }
}

/// What the provider status records.
pub(super) fn used_before(status: Option<WorkerStatus>) -> Vec<UsedImage> {
    let used = |StatusImage { name, version, image, architecture, capabilities }| UsedImage {
        image: MachineImage { name, version },
        reference: image,
        architecture,
        capabilities,
    };
    status.map(|status| status.machine_images.into_iter().map(used).collect()).unwrap_or_default()
}

/// Without capabilities, its architecture is one, whatever the CloudProfile declares; an image with neither fits every
/// machine.
pub(super) fn kept_images(used: &[UsedImage]) -> KeptImages {
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
    KeptImages::of_worker(used.iter().map(kept).collect())
}
