//! Which image a pool's machines start from (spec/azure-worker.md sections 7.2 and 7.3).
//!
//! First the CloudProfile is asked; whatever goes wrong there, an image that the Worker used before and keeps in its
//! provider status may still do.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::documents::{CloudProfileConfig, ImageReferences, ImageVersion, StatusImage, WorkerStatus};
use crate::api::gardener::{Capabilities, CapabilityDefinition, MachineImage};
use crate::capabilities::are_compatible;
pub use crate::provider::image::{ARCHITECTURE, DEFAULT_ARCHITECTURE, NotInProfile, NotInStatus};
use crate::provider::image::{best_candidate, definitions_or, kept_of_image, of_first_entry};

/// Azure's own capability: whether the network can be accelerated.
pub const NETWORKING: &str = "azure-networking";
/// Value of [`NETWORKING`]: accelerated.
pub const ACCELERATED: &str = "accelerated";
/// Value of [`NETWORKING`]: not accelerated.
pub const BASIC: &str = "basic";

/// The capabilities of CloudProfiles in the old format.
pub(super) fn old_format_definitions() -> Vec<CapabilityDefinition> {
    let definition = |name: &str, values: [&str; 2]| CapabilityDefinition {
        name: name.to_owned(),
        values: values.map(str::to_owned).to_vec(),
    };
    vec![definition(ARCHITECTURE, ["amd64", "arm64"]), definition(NETWORKING, [ACCELERATED, BASIC])]
}

/// The capabilities that a CloudProfile declares, or those that one in the old format stands for.
#[must_use]
pub fn profile_definitions(declared: &[CapabilityDefinition]) -> Cow<'_, [CapabilityDefinition]> {
    definitions_or(declared, old_format_definitions)
}

/// An image that a machine could start from: a flavor of the CloudProfile, or an old-format version as one.
#[derive(Clone, Debug)]
pub struct Candidate<'a> {
    /// What machines must be able to do.
    pub capabilities: Cow<'a, Capabilities>,
    /// The image, if the profile names one.
    pub references: ImageReferences<'a>,
    /// Whether the marketplace agreement is not checked.
    pub skip_marketplace_agreement: Option<bool>,
}

/// The image of a pool.
#[derive(Clone, Debug)]
pub struct SelectedImage<'a> {
    /// Where it was found.
    pub source: ImageSource<'a>,
    /// Its capabilities; images of old statuses have none.
    pub capabilities: Option<Cow<'a, Capabilities>>,
    /// The image, if one is named.
    pub references: ImageReferences<'a>,
    /// Whether the marketplace agreement is not checked.
    pub skip_marketplace_agreement: Option<bool>,
}

/// Where an image was found.
#[derive(Clone, Copy, Debug)]
pub enum ImageSource<'a> {
    /// In the CloudProfile.
    CloudProfile,
    /// In the provider status of the Worker, after the CloudProfile gave none.
    ProviderStatus(&'a StatusImage),
}

impl ImageSource<'_> {
    /// The document, for messages.
    #[must_use]
    pub fn place(self) -> &'static str {
        match self {
            Self::CloudProfile => "the CloudProfile",
            Self::ProviderStatus(_) => "status.providerStatus",
        }
    }
}

/// The candidates of the first entry for the image that has any for the version, in the order of the profile.
#[must_use]
pub fn candidates<'a>(config: &'a CloudProfileConfig, image: &MachineImage) -> Vec<Candidate<'a>> {
    of_first_entry(config.machine_images.iter().filter(|entry| entry.name == image.name), |entry| {
        let versions = entry.versions.iter().filter(|version| version.version == image.version);
        versions.flat_map(candidates_of_version).collect()
    })
}

pub(super) fn candidates_of_version(version: &ImageVersion) -> Vec<Candidate<'_>> {
    if version.capability_flavors.is_empty() {
        let architecture = version.architecture.as_deref().unwrap_or(DEFAULT_ARCHITECTURE);
        return vec![Candidate {
            capabilities: Cow::Owned(old_format_capabilities(architecture, version.accelerated_networking)),
            references: version.references(),
            skip_marketplace_agreement: version.skip_marketplace_agreement,
        }];
    }
    version
        .capability_flavors
        .iter()
        .map(|flavor| Candidate {
            capabilities: Cow::Borrowed(&flavor.capabilities),
            references: flavor.references(),
            skip_marketplace_agreement: flavor.skip_marketplace_agreement,
        })
        .collect()
}

/// What the members of the old format say as capabilities.
fn old_format_capabilities(architecture: &str, accelerated_networking: Option<bool>) -> Capabilities {
    let networking: &[&str] = if accelerated_networking == Some(true) { &[BASIC, ACCELERATED] } else { &[BASIC] };
    let owned = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
    Capabilities(BTreeMap::from([
        (ARCHITECTURE.to_owned(), owned(&[architecture])),
        (NETWORKING.to_owned(), owned(networking)),
    ]))
}

/// The best image of the CloudProfile for a machine.
///
/// # Errors
/// When the profile lists no such version, no flavor fits the machine, or several fit equally well.
pub fn image_in_profile<'a>(
    config: Option<&'a CloudProfileConfig>,
    image: &MachineImage,
    machine: &Capabilities,
    definitions: &[CapabilityDefinition],
) -> Result<SelectedImage<'a>, NotInProfile> {
    let candidates = candidates(config.ok_or(NotInProfile::NoConfig)?, image);
    let best = best_candidate(candidates, machine, definitions, |candidate| &*candidate.capabilities)?;
    Ok(SelectedImage {
        source: ImageSource::CloudProfile,
        capabilities: Some(best.capabilities),
        references: best.references,
        skip_marketplace_agreement: best.skip_marketplace_agreement,
    })
}

/// The first image of the provider status that fits a machine.
///
/// # Errors
/// When there is none.
pub fn image_in_status<'a>(
    status: Option<&'a WorkerStatus>,
    image: &MachineImage,
    machine: &Capabilities,
    definitions: &[CapabilityDefinition],
) -> Result<SelectedImage<'a>, NotInStatus> {
    let mut kept = kept_of_image(status.map(|status| &*status.machine_images), image)?;
    let found =
        kept.find(|kept| are_compatible(&machine_side(kept), machine, definitions)).ok_or(NotInStatus::Incompatible)?;
    Ok(SelectedImage {
        source: ImageSource::ProviderStatus(found),
        capabilities: found.capabilities.as_ref().map(Cow::Borrowed),
        references: found.references(),
        skip_marketplace_agreement: found.skip_marketplace_agreement,
    })
}

/// What a kept image fits: its capabilities, else those that its architecture stands for, else everything.
pub(super) fn machine_side(kept: &StatusImage) -> Cow<'_, Capabilities> {
    match (&kept.capabilities, &kept.architecture) {
        (Some(capabilities), _) if !capabilities.0.is_empty() => Cow::Borrowed(capabilities),
        (_, Some(architecture)) => Cow::Owned(old_format_capabilities(architecture, kept.accelerated_networking)),
        (_, None) => Cow::Owned(Capabilities::default()),
    }
}

/// The image as it is kept in the provider status: always by capabilities, so that every reader (also the Go extension
/// after a way back) finds it again for the same machines.
///
/// An image that was kept by its architecture gets only that capability: adding a network capability would switch
/// accelerated networking for new machines. One without anything gets the architecture that it was chosen for.
#[must_use]
pub fn status_image(image: &MachineImage, selected: &SelectedImage<'_>, machine_architecture: &str) -> StatusImage {
    let capabilities = selected.capabilities.as_deref().filter(|capabilities| !capabilities.0.is_empty()).cloned();
    let architecture = match selected.source {
        ImageSource::ProviderStatus(kept) => kept.architecture.as_deref().unwrap_or(machine_architecture),
        ImageSource::CloudProfile => machine_architecture,
    };
    let by_architecture = || Capabilities(BTreeMap::from([(ARCHITECTURE.to_owned(), vec![architecture.to_owned()])]));
    let references = selected.references;
    StatusImage {
        name: image.name.clone(),
        version: image.version.clone(),
        capabilities: Some(capabilities.unwrap_or_else(by_architecture)),
        skip_marketplace_agreement: selected.skip_marketplace_agreement,
        urn: references.urn.map(str::to_owned),
        id: references.id.map(str::to_owned),
        community_gallery_image_id: references.community_gallery.map(str::to_owned),
        shared_gallery_image_id: references.shared_gallery.map(str::to_owned),
        ..StatusImage::default()
    }
}
