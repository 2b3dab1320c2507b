//! AliCloud images. The infrastructure controller copies them into the account of the shoot, encrypts them if
//! necessary, and records the copies.

use super::AliCloud;
use super::documents::{AccountImage, InfrastructureStatus};
use crate::provider::explanation::ImageName;
use crate::provider::image::{FallbackImages, ImageProvider, ImageSource, KeptImage, SelectedImage};
use crate::provider::{WorkerContext, WorkerError};
use wire::api::gardener::{Capabilities, CapabilityDefinition, MachineImage, WorkerPool};
use wire::capabilities::{DEFAULT_ARCHITECTURE, mean_the_same, only_architecture};

/// The member that refers to an image.
const MEMBER: &str = "id";

impl ImageProvider for AliCloud {
    fn image_members(&self) -> &'static str {
        MEMBER
    }

    fn kept_images(&self, context: &WorkerContext<'_>) -> Result<FallbackImages, WorkerError> {
        Ok(kept_images(&context.infrastructure_status()?))
    }
}

/// The kept images fit every machine: only name, version and encryption are compared.
pub(super) fn kept_images(infrastructure: &InfrastructureStatus) -> FallbackImages {
    let kept = |known: &AccountImage| KeptImage {
        image: MachineImage { name: known.name.clone(), version: known.version.clone() },
        reference: ImageName::of(MEMBER, &known.id),
        encrypted: Some(known.encrypted.unwrap_or_default()),
        ..KeptImage::default()
    };
    FallbackImages::of_infrastructure(infrastructure.machine_images.iter().map(kept).collect())
}

/// The provider status entry for the image of a pool. It has capabilities if the CloudProfile declares any.
pub(super) fn status_image(
    pool: &WorkerPool,
    selected: &SelectedImage<'_>,
    infrastructure: &InfrastructureStatus,
    declared: &[CapabilityDefinition],
) -> AccountImage {
    let kept = match selected.source {
        ImageSource::CloudProfile(_) => None,
        ImageSource::Kept(position) => infrastructure.machine_images.get(position),
    };
    let listed: Option<Capabilities> = match kept {
        None => Some(selected.capabilities.clone().into_owned()),
        Some(kept) => kept.capabilities.clone().filter(|listed| !listed.is_empty()),
    };
    let capabilities =
        listed.filter(|listed| !listed.is_empty()).unwrap_or_else(|| only_architecture(DEFAULT_ARCHITECTURE));
    AccountImage {
        name: pool.machine_image.name.clone(),
        version: pool.machine_image.version.clone(),
        id: selected.reference.value.clone(),
        encrypted: kept.map_or(Some(false), |kept| kept.encrypted),
        capabilities: (!declared.is_empty()).then_some(capabilities),
    }
}

/// Whether two entries are for the same machines.
pub(super) fn is_same(one: &AccountImage, other: &AccountImage, declared: &[CapabilityDefinition]) -> bool {
    let capabilities = |image: &AccountImage| image.capabilities.clone().unwrap_or_default();
    (&one.name, &one.version) == (&other.name, &other.version)
        && one.encrypted.unwrap_or_default() == other.encrypted.unwrap_or_default()
        && mean_the_same(&capabilities(one), &capabilities(other), declared)
}
