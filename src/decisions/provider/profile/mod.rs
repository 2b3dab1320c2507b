//! The interface for `spec.providerConfig` of CloudProfiles, which each provider implements.
//!
//! ```text
//!  spec.providerConfig ── ProfileFormat::open ──► ProfileConfig ─┬─► images       every listed image
//!    (raw document)          decode, once                        ├─► flavors      what Workers select from
//!                                                                ├─► validate     errors, for admission
//!                                                                └─► core_flavors flavors for spec.machineImages
//! ```
//!
//! The parts that all providers share are implemented for [`ImageDocument`] and [`VersionEntry`]: lists of images
//! (`images`, `document`), the comparison with `spec.machineImages` (`mapping`), and NamespacedCloudProfiles
//! (`namespaced`, `config_type`). A provider implements only its version entries.
//!
//! Every provider has a format; [`Provider`](super::Provider) adds machines to it.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;
use serde_json::value::RawValue;

use super::document::DocumentError;
use wire::api::gardener::{
    Capabilities, CapabilityDefinition, NamespacedProfileSpec, ProfileImage, ProfileSpec, Region, ShootPool,
};
use wire::api::gotext::field::{FieldErrors, FieldPath};
use wire::capabilities::{ARCHITECTURE, DEFAULT_ARCHITECTURE, architecture_definition, complete_machine_type};

mod config_type;
mod document;
mod images;
mod images_only;
mod mapping;
mod namespaced;
pub mod old_format;
mod regional;
mod repeated;
mod unknown;

pub use config_type::{ConfigType, SameVersion, name_architectures};
pub use images::{
    EntryFlavor, ImageDocument, ImageVersions, Repeated, VersionEntry, listed_flavors, neither_format,
    validate_architecture,
};
pub use images_only::{ImagesOnly, ListedIn};
pub use old_format::Members;
pub use regional::{
    ArchitectureOf, RegionImage, RegionalFlavor, RegionalVersion, architectures, flavors_by_architecture, references,
    validate_regions,
};
pub use unknown::{UnknownConfig, UnknownFormat};

/// The format of a provider's part of CloudProfiles.
pub trait ProfileFormat: Send + Sync {
    /// `spec.type` of CloudProfiles and Workers.
    fn provider_type(&self) -> &'static str;

    /// The implicit capabilities of a CloudProfile without `machineCapabilities`.
    fn old_format_definitions(&self) -> Vec<CapabilityDefinition> {
        vec![architecture_definition()]
    }

    /// Names that proposals and earlier versions had for one of these capabilities; the provider does not know them.
    fn former_names(&self, _capability: &str) -> &'static [&'static str] {
        &[]
    }

    /// The effective capabilities: those that a CloudProfile declares, or the implicit ones of the old format.
    fn definitions<'a>(&self, declared: &'a [CapabilityDefinition]) -> Cow<'a, [CapabilityDefinition]> {
        if declared.is_empty() { Cow::Owned(self.old_format_definitions()) } else { Cow::Borrowed(declared) }
    }

    /// The capabilities of a machine type: those listed in the CloudProfile, completed with the architecture of the
    /// pool.
    fn machine_capabilities(
        &self,
        listed: Option<&Capabilities>,
        architecture: &str,
        definitions: &[CapabilityDefinition],
    ) -> Capabilities {
        complete_machine_type(listed, architecture, definitions)
    }

    /// The provider's cloud for a CloudProfile with these regions, named as in image listings.
    fn realm(&self, _regions: &[Region]) -> &'static str {
        "public"
    }

    /// The type of `spec.providerConfig`.
    fn config_type(&self) -> ConfigType;

    /// Decodes `spec.providerConfig`; absent is empty.
    ///
    /// # Errors
    /// If it is another document, or a member is unknown or invalid.
    fn open(&self, raw: Option<&RawValue>) -> Result<Box<dyn ProfileConfig>, DocumentError> {
        self.config_type().open(raw)
    }

    /// Merges the documents of a CloudProfile and a NamespacedCloudProfile that extends it.
    ///
    /// # Errors
    /// If one of them can't be decoded.
    fn merge(&self, parent: &RawValue, namespaced: &RawValue) -> Result<Value, DocumentError> {
        self.config_type().merge(parent, namespaced)
    }

    /// Whether the old format has an image for each architecture of a version. Otherwise a version has one image, and
    /// only `spec.machineImages` has its architectures.
    fn distinguishes_architectures(&self) -> bool {
        true
    }

    /// Whether provider configs of pools are validated against the CloudProfile ([`ProfileConfig::validate_pool`]).
    fn compares_pools(&self) -> bool {
        false
    }

    /// Reason why machines don't use images of the CloudProfile, regardless of its content.
    fn bypasses_profile(&self, _encrypted_root_volume: bool) -> Option<&'static str> {
        None
    }

    /// Whether only one of several entries of a version is used: the first with an image for the region, or with
    /// declared capabilities the very first.
    fn first_entry_counts(&self) -> bool {
        false
    }

    /// Whether a selected flavor without a reference falls back to a kept image, if capabilities are declared.
    fn passes_over_empty_references(&self) -> bool {
        false
    }

    /// Converts a version in the old format to flavors, as documents. `admitted` are the architectures of the version
    /// in `spec.machineImages`.
    fn flavors_of_old_format(&self, version: &Members, _admitted: &[String]) -> Vec<Members> {
        old_format::flavors_of_old_format(version)
    }

    /// Converts flavors of a version to entries of the old format, each for one architecture. Capabilities that the old
    /// format can't express are lost, and images that it can't express are omitted.
    fn old_format_of_flavors(&self, version: &str, flavors: &[(String, Members)]) -> Vec<Members> {
        old_format::old_format_of_flavors(version, flavors)
    }

    /// Whether machines require flavors with an architecture, even if a profile defines only one.
    fn needs_architecture(&self) -> bool {
        false
    }

    /// Whether a member of a version, flavor or machine type has its default value.
    fn is_silent(&self, member: &str, value: &Value) -> bool {
        member == ARCHITECTURE && value == DEFAULT_ARCHITECTURE
    }

    /// The capabilities of a machine type from the old format of the document; empty if it has none.
    fn machine_type_of_old_format(&self, _config: &Value, _machine_type: &str) -> Capabilities {
        Capabilities::default()
    }

    /// Sets the machine types of the old format in the document; removes the member if there are none.
    fn set_machine_types_of_old_format(&self, _config: &mut Members, _machine_types: &[(&str, &Capabilities)]) {}
}

/// The decoded `spec.providerConfig` of a CloudProfile or NamespacedCloudProfile.
pub trait ProfileConfig: Send + Sync {
    /// Every image and version in document order, including repeated ones.
    fn images(&self) -> Vec<ListedVersion<'_>>;

    /// The ordered flavors that Workers in a region select from, or without a region those of all regions. Versions in
    /// the old format are converted to flavors. `image` is a name and version, `declared` are the capabilities that the
    /// profile declares.
    fn flavors(
        &self,
        image: [&str; 2],
        region: Option<&str>,
        declared: &[CapabilityDefinition],
    ) -> Vec<ListedFlavor<'_>>;

    /// Validates the document, by itself and against core's half of the profile.
    fn validate(&self, profile: &ProfileSpec) -> FieldErrors {
        let mut errors = FieldErrors::default();
        self.validate_into(profile, &mut errors);
        errors
    }

    /// The same, added to errors of which perhaps only the first are kept.
    fn validate_into(&self, profile: &ProfileSpec, errors: &mut FieldErrors);

    /// Validates the document of a NamespacedCloudProfile.
    fn validate_namespaced(&self, namespaced: &NamespacedProfileSpec, parent: &ProfileSpec) -> FieldErrors {
        let mut errors = FieldErrors::default();
        self.validate_namespaced_into(namespaced, parent, &mut errors);
        errors
    }

    /// The same, added to errors of which perhaps only the first are kept.
    fn validate_namespaced_into(
        &self,
        namespaced: &NamespacedProfileSpec,
        parent: &ProfileSpec,
        errors: &mut FieldErrors,
    );

    /// Checks that the document allows the settings of a Shoot pool at `path`.
    fn validate_pool(&self, pool: &ShootPool, path: FieldPath<'_>, errors: &mut FieldErrors);

    /// The `capabilityFlavors` that `spec.machineImages` has to list, for each of its versions that the document lists.
    fn core_flavors(&self, images: &[ProfileImage]) -> Vec<GenericFlavors<'_>>;

    /// Regions of the profile that a setting of the document does not cover.
    fn uncovered_regions<'a>(&self, regions: &'a [Region]) -> Vec<UncoveredRegion<'a>>;

    /// Flavors with the same capabilities as an earlier flavor of the same version. Machines that fit both get neither.
    /// Admission can't deny this, because Gardener accepts it.
    fn repeated_flavors(&self, definitions: &[CapabilityDefinition]) -> Vec<RepeatedFlavor<'_>>;
}

/// A region of a CloudProfile that a setting of the provider config does not cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UncoveredRegion<'a> {
    /// Name of the region.
    pub region: &'a str,
    /// Member of the document.
    pub member: &'static str,
    /// Consequence of the gap.
    pub consequence: &'static str,
}

/// The flavors that `spec.machineImages` has to list for a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenericFlavors<'a> {
    /// Position of the image in `spec.machineImages`.
    pub image: usize,
    /// Position of the version.
    pub version: usize,
    /// Flavors in order.
    pub flavors: Vec<Cow<'a, Capabilities>>,
}

/// Two flavors of a version with the same capabilities, in the same region if images are regional.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepeatedFlavor<'a> {
    /// Name of the image.
    pub image: &'a str,
    /// Version of the image.
    pub version: &'a str,
    /// Place of the earlier flavor.
    pub first: Location,
    /// Place of the later flavor.
    pub second: Location,
}

/// A version of an image in the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedVersion<'a> {
    /// Name of the image.
    pub image: &'a str,
    /// Version of the image.
    pub version: &'a str,
    /// Place in the document.
    pub location: Location,
    /// Whether it is in the old format.
    pub old_format: bool,
}

/// A flavor of an image version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedFlavor<'a> {
    /// Capabilities that machines must support.
    pub capabilities: Cow<'a, Capabilities>,
    /// References to the image, one per region for providers with regional images. Empty if the document has none.
    pub references: Vec<ListedReference<'a>>,
    /// Place of the flavor, or of the version in the old format.
    pub location: Location,
}

impl<'a> ListedFlavor<'a> {
    /// The reference of a flavor that was listed for one region. If the region is listed several times, the last one
    /// wins, or the first if the CloudProfile compares no capabilities. Of several references for all regions, the
    /// first wins.
    #[must_use]
    pub fn in_region(&self, definitions: &[CapabilityDefinition]) -> Option<&ListedReference<'a>> {
        let first = self.references.first()?;
        let mut of_region =
            self.references.iter().filter(|known| known.region.is_some() && known.region == first.region);
        if definitions.is_empty() { Some(first) } else { of_region.next_back().or(Some(first)) }
    }
}

/// A cloud's reference to the image of a flavor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedReference<'a> {
    /// Region of the reference; `None` for all regions.
    pub region: Option<&'a str>,
    /// Member that holds the reference, such as `urn` or `ami`.
    pub member: &'static str,
    /// Value of the member.
    pub value: &'a str,
}

/// A place in the document, formatted as `machineImages[0].versions[1].capabilityFlavors[2]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// Position of the image.
    pub image: usize,
    /// Position of the version.
    pub version: usize,
    /// Position of the flavor; `None` for the version as a whole.
    pub flavor: Option<usize>,
}

impl fmt::Display for Location {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "machineImages[{}].versions[{}]", self.image, self.version)?;
        match self.flavor {
            Some(flavor) => write!(formatter, ".capabilityFlavors[{flavor}]"),
            None => Ok(()),
        }
    }
}
