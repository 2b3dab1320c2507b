//! Images of Azure: how a pool's image is named, and how it is kept.

use serde_json::{Value, json};

use super::Azure;
use super::documents::{CloudProfileConfig, ImageReferences, StatusImage, WorkerStatus};
use crate::api::gardener::{Capabilities, MachineImage};
use crate::capabilities::{ARCHITECTURE, only_architecture};
use crate::provider::explanation::ImageName;
use crate::provider::image::{ImageProvider, ImageSource, KeptImage, KeptImages, SelectedImage};
use crate::provider::profile::{ListedReference, Place};
use crate::provider::{WorkerContext, WorkerError};

/// Azure's own capability: whether the network can be accelerated.
pub const NETWORKING: &str = "azure-networking";
/// Value of [`NETWORKING`]: accelerated.
pub const ACCELERATED: &str = "accelerated";
/// Value of [`NETWORKING`]: not accelerated.
pub const BASIC: &str = "basic";

impl ImageProvider for Azure {
    fn image_members(&self) -> &'static str {
        ImageReferences::MEMBERS
    }

    fn kept_images(&self, context: &WorkerContext<'_>) -> Result<KeptImages, WorkerError> {
        Ok(kept_images(context.provider_status()?.as_ref()))
    }
}

/// What the provider status keeps, in its order.
pub(super) fn kept_images(status: Option<&WorkerStatus>) -> KeptImages {
    KeptImages::of_worker(status.iter().flat_map(|status| &status.machine_images).map(kept_image).collect())
}

fn kept_image(kept: &StatusImage) -> KeptImage {
    let image = MachineImage { name: kept.name.clone(), version: kept.version.clone() };
    let reference = reference(kept.references()).and_then(|named| ImageName::of(named.member, named.value));
    // Its capabilities, else those that its architecture stands for, else everything.
    let capabilities = match (&kept.capabilities, &kept.architecture) {
        (Some(capabilities), _) if !capabilities.is_empty() => capabilities.clone(),
        (_, Some(architecture)) => old_format_capabilities(architecture, kept.accelerated_networking),
        (_, None) => Capabilities::default(),
    };
    KeptImage { image, reference, capabilities, ..KeptImage::default() }
}

/// The reference that machines use, as documents list it: the same in every region.
pub(super) fn reference(references: ImageReferences<'_>) -> Option<ListedReference<'_>> {
    references.preferred().map(|(member, value)| ListedReference { region: None, member, value })
}

/// What the members of the old format say as capabilities.
pub(super) fn old_format_capabilities(architecture: &str, accelerated_networking: Option<bool>) -> Capabilities {
    let accelerated = (accelerated_networking == Some(true)).then_some(ACCELERATED);
    let networking = [BASIC].into_iter().chain(accelerated).collect();
    Capabilities::from_iter([(ARCHITECTURE, vec![architecture]), (NETWORKING, networking)])
}

/// The image of a pool with everything that Azure's documents say of it.
pub struct AzureImage<'a> {
    /// What was selected.
    pub selected: SelectedImage<'a>,
    /// Every reference: machines use the preferred one, the status keeps all.
    references: ImageReferences<'a>,
    /// Whether the marketplace agreement is not checked.
    skip_marketplace_agreement: Option<bool>,
    /// The entry of the provider status, if it comes from there.
    kept: Option<&'a StatusImage>,
}

impl<'a> AzureImage<'a> {
    /// With what its document says: that of the CloudProfile, or the provider status.
    #[must_use]
    pub fn new(
        selected: SelectedImage<'a>,
        config: Option<&'a CloudProfileConfig>,
        status: Option<&'a WorkerStatus>,
    ) -> Self {
        let (references, skip_marketplace_agreement, kept) = match selected.source {
            ImageSource::CloudProfile(place) => {
                let (references, skip) = config.and_then(|config| listed(config, place)).unwrap_or_default();
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

    /// What the image is listed or kept with; images of old statuses have no capabilities.
    #[must_use]
    pub fn capabilities(&self) -> Option<&Capabilities> {
        self.kept.map_or(Some(&*self.selected.capabilities), |kept| kept.capabilities.as_ref())
    }

    /// The image of the root disk. The capital `P` is the Go extension's; the driver reads names in any case.
    pub(super) fn reference(&self) -> Value {
        let ImageName { member, value } = &self.selected.reference;
        let mut members = json!({ member: value });
        if self.skip_marketplace_agreement == Some(true) && self.references.urn.is_some() {
            members["skipMarketPlaceAgreement"] = true.into();
        }
        members
    }

    /// The image as it is kept in the provider status: always by capabilities, so that every reader (also the Go extension
    /// after a way back) finds it again for the same machines.
    ///
    /// An image that was kept by its architecture gets only that capability: adding a network capability would switch
    /// accelerated networking for new machines. One without anything gets the architecture that it was chosen for.
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

/// What stands at a place of the CloudProfile.
fn listed(config: &CloudProfileConfig, place: Place) -> Option<(ImageReferences<'_>, Option<bool>)> {
    let version = config.machine_images.get(place.image)?.versions.get(place.version)?;
    Some(match place.flavor.and_then(|flavor| version.capability_flavors.get(flavor)) {
        Some(flavor) => (flavor.references(), flavor.skip_marketplace_agreement),
        None => (version.references(), version.skip_marketplace_agreement),
    })
}
