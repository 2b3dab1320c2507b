//! The offer of a CloudProfile: machine types and image versions, with the images that the provider starts machines
//! from.
//!
//! Combines both halves of a profile: Gardener admits Shoots by `spec`, and the provider resolves images by
//! `spec.providerConfig`. Code that uses the offer depends neither on documents nor on providers.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

use decisions::provider::explanation::ImageName;
use wire::api::gardener::{Capabilities, CapabilityDefinition};
use wire::capabilities::{Classification, DEFAULT_ARCHITECTURE, is_supported_by_image};

/// The offer of one profile.
#[derive(Clone, Debug, Default)]
pub struct ResolvedProfile {
    /// `metadata.name`.
    pub name: String,
    /// `spec.type`.
    pub provider: String,
    /// Capabilities in order of preference: those of the profile, or those that the old format implies.
    pub definitions: Vec<CapabilityDefinition>,
    /// Whether the profile itself declares capabilities.
    pub declares_capabilities: bool,
    /// Capabilities that affect the machine itself, through the values that machine type and image have in common.
    pub effects: Vec<String>,
    /// Names of the regions, in the order of the profile.
    pub regions: Vec<String>,
    /// Machine types in the order of the profile.
    pub machine_types: Vec<SelectableType>,
    /// Image versions that the profile lists, in its order.
    pub images: Vec<SelectableVersion>,
}

/// A machine type.
#[derive(Clone, Debug, Default)]
pub struct SelectableType {
    /// Name such as `Standard_D4s_v5`.
    pub name: String,
    /// Path such as `spec.machineTypes[3]`.
    pub path: String,
    /// The architecture by which Gardener admits it.
    pub architecture: String,
    /// Capabilities of its machines, as the provider completes them for a pool that sets no architecture.
    pub capabilities: Capabilities,
    /// Capabilities in the old format of the provider's half. They affect the machine, but not the choice of the image.
    pub of_old_format: Capabilities,
    /// Whether shoots may use it.
    pub usable: bool,
}

/// A version of an image.
#[derive(Clone, Debug)]
pub struct SelectableVersion {
    /// Name of the image.
    pub image: String,
    /// The version.
    pub version: String,
    /// Path such as `spec.machineImages[0].versions[2]`.
    pub path: String,
    /// Its classification when the offer was computed.
    pub classification: Classification,
    /// When it expires, if it does.
    pub expires: Option<Timestamp>,
    /// CPU architectures for which Gardener admits it.
    pub architectures: Vec<String>,
    /// Flavors by which Gardener admits machine types. If there are none, all are admitted.
    pub admitted: Vec<Capabilities>,
    /// Flavors of the provider config, in its order.
    pub flavors: Vec<SelectableFlavor>,
}

/// A flavor of an image version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectableFlavor {
    /// Path such as `spec.providerConfig.machineImages[0].versions[2].capabilityFlavors[1]`.
    pub path: String,
    /// Capabilities that machines must have.
    pub capabilities: Capabilities,
    /// The image of regions without an image of their own.
    pub anywhere: Option<ImageName>,
    /// The image of each region.
    pub by_region: BTreeMap<String, ImageName>,
    /// Why machines can't start from it although it can be chosen.
    pub defect: Option<Defect>,
}

/// Why no machine starts from a flavor that is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Defect {
    /// It has no image.
    NoImage,
    /// It does not set an architecture, which the provider needs.
    NoArchitecture,
}

impl Defect {
    /// The text for messages.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::NoImage => "it names no image",
            Self::NoArchitecture => "it does not name its architecture",
        }
    }
}

impl SelectableFlavor {
    /// The image in a region.
    #[must_use]
    pub fn in_region(&self, region: &str) -> Option<&ImageName> {
        self.by_region.get(region).or(self.anywhere.as_ref())
    }
}

impl ResolvedProfile {
    /// The architectures for which core's half admits a version. A version that it does not list may have any
    /// architecture in use.
    #[must_use]
    pub fn architectures_of(&self, image: &str, version: &str) -> Vec<String> {
        let listed = self.images.iter().find(|known| known.image == image && known.version == version);
        listed.map_or_else(|| self.architectures_in_use(), |listed| listed.architectures.clone())
    }

    /// The architectures of machine types and versions, or Gardener's default if there are none.
    fn architectures_in_use(&self) -> Vec<String> {
        let of_types = self.machine_types.iter().map(|machine_type| &machine_type.architecture);
        let of_versions = self.images.iter().flat_map(|version| &version.architectures);
        let used: BTreeSet<&String> = of_types.chain(of_versions).collect();
        if used.is_empty() { vec![DEFAULT_ARCHITECTURE.to_owned()] } else { used.into_iter().cloned().collect() }
    }
}

impl SelectableVersion {
    /// Whether Gardener admits machines of this type, regardless of the provider (docs/admission.md).
    #[must_use]
    pub fn admits(&self, machine: &SelectableType, definitions: &[CapabilityDefinition]) -> bool {
        let of_architecture = self.architectures.is_empty() || self.architectures.contains(&machine.architecture);
        of_architecture && is_supported_by_image(&machine.capabilities, &self.admitted, definitions)
    }

    /// Whether it has expired.
    #[must_use]
    pub fn is_expired(&self) -> bool {
        self.classification == Classification::Expired
    }

    /// Whether its images depend on the region.
    #[must_use]
    pub fn is_regional(&self) -> bool {
        self.flavors.iter().any(|flavor| !flavor.by_region.is_empty())
    }

    /// A title such as `gardenlinux 1877.3.0`.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{} {}", self.image, self.version)
    }
}
