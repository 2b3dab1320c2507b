//! Azure images: references in machine classes and entries in the provider status.

use serde_json::{Value, json};

use super::Azure;
use super::documents::{CloudProfileConfig, ImageReferences, StatusImage, WorkerStatus};
use crate::provider::explanation::ImageName;
use crate::provider::image::{FallbackImages, ImageProvider, ImageSource, KeptImage, SelectedImage};
use crate::provider::profile::{ListedReference, Location};
use crate::provider::{WorkerContext, WorkerError};
use wire::api::gardener::{Capabilities, MachineImage};
use wire::capabilities::{ARCHITECTURE, only_architecture};

/// Azure-specific capability for accelerated networking.
pub const NETWORKING: &str = "azure-networking";
/// Value of [`NETWORKING`] with accelerated networking.
pub const ACCELERATED: &str = "accelerated";
/// Value of [`NETWORKING`] without accelerated networking.
pub const BASIC: &str = "basic";

impl ImageProvider for Azure {
    fn image_members(&self) -> &'static str {
        ImageReferences::MEMBERS
    }

    fn kept_images(&self, context: &WorkerContext<'_>) -> Result<FallbackImages, WorkerError> {
        Ok(kept_images(context.provider_status()?.as_ref()))
    }
}

/// The images of the provider status, in order.
pub(super) fn kept_images(status: Option<&WorkerStatus>) -> FallbackImages {
    FallbackImages::of_worker(status.iter().flat_map(|status| &status.machine_images).map(kept_image).collect())
}

fn kept_image(kept: &StatusImage) -> KeptImage {
    let image = MachineImage { name: kept.name.clone(), version: kept.version.clone() };
    let reference = reference(kept.references()).and_then(|named| ImageName::of(named.member, named.value));
    // The recorded capabilities, those derived from the architecture, or no restriction.
    let capabilities = match (&kept.capabilities, &kept.architecture) {
        (Some(capabilities), _) if !capabilities.is_empty() => capabilities.clone(),
        (_, Some(architecture)) => old_format_capabilities(architecture, kept.accelerated_networking),
        (_, None) => Capabilities::default(),
    };
    KeptImage { image, reference, capabilities, ..KeptImage::default() }
}

/// The reference that machines use, which is the same in every region.
pub(super) fn reference(references: ImageReferences<'_>) -> Option<ListedReference<'_>> {
    references.preferred().map(|(member, value)| ListedReference { region: None, member, value })
}

/// Converts the members of the old format to capabilities.
pub(super) fn old_format_capabilities(architecture: &str, accelerated_networking: Option<bool>) -> Capabilities {
    let accelerated = (accelerated_networking == Some(true)).then_some(ACCELERATED);
    let networking = [BASIC].into_iter().chain(accelerated).collect();
    Capabilities::from_iter([(ARCHITECTURE, vec![architecture]), (NETWORKING, networking)])
}

/// The image of a pool with all its members in Azure's documents.
pub struct AzureImage<'a> {
    /// The selected image.
    pub selected: SelectedImage<'a>,
    /// All references: machines use the preferred one, the status keeps all.
    references: ImageReferences<'a>,
    /// Whether to skip the check of the marketplace agreement.
    skip_marketplace_agreement: Option<bool>,
    /// The provider status entry, if the image was found there.
    kept: Option<&'a StatusImage>,
}

impl<'a> AzureImage<'a> {
    /// Adds the members from the CloudProfile or the provider status, wherever the image was found.
    #[must_use]
    pub fn new(
        selected: SelectedImage<'a>,
        config: Option<&'a CloudProfileConfig>,
        status: Option<&'a WorkerStatus>,
    ) -> Self {
        let (references, skip_marketplace_agreement, kept) = match selected.source {
            ImageSource::CloudProfile(location) => {
                let (references, skip) = config.and_then(|config| listed(config, location)).unwrap_or_default();
                (references, skip, None)
            }
            ImageSource::Kept(position) => {
                let kept = status.and_then(|status| status.machine_images.get(position));
                let references = kept.map(StatusImage::references).unwrap_or_default();
                (references, kept.and_then(|kept| kept.skip_marketplace_agreement), kept)
            }
        };
        Self { selected, references, skip_marketplace_agreement, kept }
    }

    /// The recorded capabilities of the image; `None` for old entries of the provider status.
    #[must_use]
    pub fn capabilities(&self) -> Option<&Capabilities> {
        self.kept.map_or(Some(&*self.selected.capabilities), |kept| kept.capabilities.as_ref())
    }

    /// The image of the root disk. The spelling `MarketPlace` is from the Go extension; the driver ignores case.
    pub(super) fn reference(&self) -> Value {
        let ImageName { member, value } = &self.selected.reference;
        let mut members = json!({ member: value });
        if self.skip_marketplace_agreement == Some(true) && self.references.urn.is_some() {
            members["skipMarketPlaceAgreement"] = true.into();
        }
        members
    }

    /// The provider status entry of the image. It always has capabilities, so that every reader (including the Go
    /// extension after a rollback) finds it again for the same machines.
    ///
    /// An image recorded with an architecture gets only that capability, because a network capability would enable
    /// accelerated networking for new machines. An image with neither gets the architecture for which it was selected.
    #[must_use]
    pub fn to_status(&self, image: &MachineImage, architecture: &str) -> StatusImage {
        let capabilities = self.capabilities().filter(|capabilities| !capabilities.is_empty()).cloned();
        let of_machine = self.selected.machine.values(ARCHITECTURE).and_then(<[String]>::first);
        let of_image = self.kept.and_then(|kept| kept.architecture.as_ref());
        let architecture = of_image.or(of_machine).map_or(architecture, String::as_str);
        let ImageReferences { urn, community_gallery, shared_gallery, id } = self.references;
        StatusImage {
            name: image.name.clone(),
            version: image.version.clone(),
            accelerated_networking: None,
            architecture: None,
            capabilities: Some(capabilities.unwrap_or_else(|| only_architecture(architecture))),
            skip_marketplace_agreement: self.skip_marketplace_agreement,
            urn: urn.map(str::to_owned),
            id: id.map(str::to_owned),
            community_gallery_image_id: community_gallery.map(str::to_owned),
            shared_gallery_image_id: shared_gallery.map(str::to_owned),
        }
    }
}

/// The references and settings at a place of the CloudProfile.
fn listed(config: &CloudProfileConfig, location: Location) -> Option<(ImageReferences<'_>, Option<bool>)> {
    let version = config.machine_images.get(location.image)?.versions.get(location.version)?;
    Some(match location.flavor.and_then(|flavor| version.capability_flavors.get(flavor)) {
        Some(flavor) => (flavor.references(), flavor.skip_marketplace_agreement),
        None => (version.references(), version.skip_marketplace_agreement),
    })
}
