//! Images of AWS: where they are kept, and in which form.

use super::Aws;
use super::documents::{StatusImage, WorkerStatus};
use crate::api::gardener::{MachineImage, Worker, WorkerPool};
use crate::capabilities::{ARCHITECTURE, DEFAULT_ARCHITECTURE, only_architecture};
use crate::provider::explanation::ImageName;
use crate::provider::image::{ComparedWith, ImageProvider, ImageSource, KeptImage, KeptImages, SelectedImage};
use crate::provider::{WorkerContext, WorkerError};

impl ImageProvider for Aws {
    fn image_members(&self) -> &'static str {
        "ami"
    }

    fn kept_images(&self, context: &WorkerContext<'_>) -> Result<KeptImages, WorkerError> {
        Ok(kept_images(context, context.provider_status()?.as_ref()))
    }

    /// The first pool of a machine type decides for all of them, because the Go extension writes its architecture into the
    /// machine type.
    fn architecture_pool<'a>(&self, worker: &'a Worker, pool: &'a WorkerPool, machine_type: &str) -> &'a WorkerPool {
        worker.spec.pools.iter().find(|other| other.machine_type == machine_type).unwrap_or(pool)
    }
}

/// What the provider status keeps, in its order. Where the CloudProfile declares no capabilities, images are compared with
/// the architecture of the pool.
pub(super) fn kept_images(context: &WorkerContext<'_>, status: Option<&WorkerStatus>) -> KeptImages {
    let old_format = context.cloud_profile.spec.machine_capabilities.is_empty();
    let images = status.iter().flat_map(|status| &status.machine_images);
    let compared_with = if old_format { ComparedWith::PoolArchitecture } else { ComparedWith::MachineType };
    let kept = KeptImages::of_worker(images.map(|kept| kept_image(kept, old_format)).collect());
    KeptImages { compared_with, ..kept }
}

/// With declared capabilities, an image that is kept without any fits every machine. One that is kept with the right
/// architecture goes before it, so that pools of two architectures keep their own images when a CloudProfile starts to
/// declare capabilities.
fn kept_image(kept: &StatusImage, old_format: bool) -> KeptImage {
    let architecture = kept.architecture.as_deref();
    let listed = kept.capabilities.clone().unwrap_or_default();
    let has_capabilities = !listed.is_empty();
    let capabilities =
        if old_format { only_architecture(architecture.unwrap_or(DEFAULT_ARCHITECTURE)) } else { listed };
    let made_for = if has_capabilities { Some(capabilities.clone()) } else { architecture.map(only_architecture) };
    let image = MachineImage { name: kept.name.clone(), version: kept.version.clone() };
    let reference = ImageName::of("ami", &kept.ami);
    KeptImage { image, reference, capabilities, made_for, encrypted: None }
}

/// The image as it is kept in the provider status, with all that is known about it.
pub(super) fn status_image(
    image: &MachineImage,
    selected: &SelectedImage<'_>,
    status: Option<&WorkerStatus>,
    pool_architecture: &str,
) -> StatusImage {
    let kept = match selected.source {
        ImageSource::CloudProfile(_) => None,
        ImageSource::Kept(position) => status.and_then(|status| status.machine_images.get(position)),
    };
    let (capabilities, architecture) = match kept {
        None => {
            let architecture = selected.capabilities.values(ARCHITECTURE).and_then(<[String]>::first);
            (Some(selected.capabilities.clone().into_owned()), architecture)
        }
        Some(kept) => (kept.capabilities.clone().filter(|kept| !kept.is_empty()), kept.architecture.as_ref()),
    };
    StatusImage {
        name: image.name.clone(),
        version: image.version.clone(),
        ami: selected.reference.value.clone(),
        architecture: Some(architecture.map_or(pool_architecture, String::as_str).to_owned()),
        capabilities,
    }
}
