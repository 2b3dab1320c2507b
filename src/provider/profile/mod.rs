//! The seam for CloudProfiles: what a provider knows of its half of them, `spec.providerConfig`.
//!
//! ```text
//!  spec.providerConfig ── ProfileFormat::open ──► ProfileConfig ─┬─► images       every image, as it is listed
//!    (raw document)          decode, once                        ├─► flavors      what a worker chooses from
//!                                                                ├─► validate     what admission refuses
//!                                                                └─► core_flavors what admission writes into core's half
//! ```
//!
//! What the documents of all providers have in common is written once, over [`ImageDocument`] and [`VersionEntry`]:
//! lists of images (`images`, `document`), the comparison with core's half (`mapping`), a project's additions
//! (`namespaced`,
//! `status_merge`). A provider says how it writes a version.
//!
//! Every provider has one; [`Provider`](super::Provider) adds machines to it.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;
use serde_json::value::RawValue;

use super::document::DocumentError;
use crate::api::gardener::{
    Capabilities, CapabilityDefinition, NamespacedProfileSpec, ProfileImage, ProfileSpec, Region, ShootPool,
};
use crate::api::gotext::field::{FieldErrors, FieldPath};
use crate::capabilities::{ARCHITECTURE, DEFAULT_ARCHITECTURE, architecture_definition, complete_machine_type};

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

/// How a provider writes its half of CloudProfiles.
pub trait ProfileFormat: Send + Sync {
    /// `spec.type` of CloudProfiles, and of Workers.
    fn provider_type(&self) -> &'static str;

    /// The capabilities that a CloudProfile without `machineCapabilities` stands for.
    fn old_format_definitions(&self) -> Vec<CapabilityDefinition> {
        vec![architecture_definition()]
    }

    /// The capabilities that count: those that a CloudProfile declares, or those that one in the old format stands for.
    fn definitions<'a>(&self, declared: &'a [CapabilityDefinition]) -> Cow<'a, [CapabilityDefinition]> {
        if declared.is_empty() { Cow::Owned(self.old_format_definitions()) } else { Cow::Borrowed(declared) }
    }

    /// What machines of a type can do: what the CloudProfile lists, with the architecture of the pool in a gap.
    fn machine_capabilities(
        &self,
        listed: Option<&Capabilities>,
        architecture: &str,
        definitions: &[CapabilityDefinition],
    ) -> Capabilities {
        complete_machine_type(listed, architecture, definitions)
    }

    /// Which of the provider's clouds a CloudProfile with these regions is for, in the words of image listings.
    fn realm(&self, _regions: &[Region]) -> &'static str {
        "public"
    }

    /// The type of `spec.providerConfig`.
    fn config_type(&self) -> ConfigType;

    /// Decodes `spec.providerConfig`; absent is empty.
    ///
    /// # Errors
    /// When it is another document, or a member is unknown or wrong.
    fn open(&self, raw: Option<&RawValue>) -> Result<Box<dyn ProfileConfig>, DocumentError> {
        self.config_type().open(raw)
    }

    /// The documents of a CloudProfile and of a NamespacedCloudProfile that extends it as one.
    ///
    /// # Errors
    /// When one can't be read.
    fn merge(&self, parent: &RawValue, namespaced: &RawValue) -> Result<Value, DocumentError> {
        self.config_type().merge(parent, namespaced)
    }

    /// Whether the old format has an image for each architecture of a version. Else a version has one image, and what
    /// it is for stands in core's half alone.
    fn tells_architectures(&self) -> bool {
        true
    }

    /// Whether provider configs of pools are compared with the CloudProfile ([`ProfileConfig::validate_pool`]).
    fn compares_pools(&self) -> bool {
        false
    }

    /// Why machines don't start from an image of the CloudProfile, whatever it lists.
    fn bypasses_profile(&self, _encrypted_root_volume: bool) -> Option<&'static str> {
        None
    }

    /// Whether of several entries of a version only one counts, not all of them together: the first with an image for the region,
    /// and where capabilities are declared the first at all.
    fn first_entry_counts(&self) -> bool {
        false
    }

    /// Whether a chosen flavor without a reference counts as none, where capabilities are declared: a kept image is next.
    fn passes_over_empty_references(&self) -> bool {
        false
    }

    /// The flavors that a version in the old format stands for, as documents. `admitted` are the architectures by which
    /// core's half admits it.
    fn flavors_of_old_format(&self, version: &Members, _admitted: &[String]) -> Vec<Members> {
        old_format::flavors_of_old_format(version)
    }

    /// The entries of the old format for flavors of a version, each for one architecture. Capabilities that the old
    /// format can't express are lost, and images that it has no words for are left out.
    fn old_format_of_flavors(&self, version: &str, flavors: &[(String, Members)]) -> Vec<Members> {
        old_format::old_format_of_flavors(version, flavors)
    }

    /// Whether machines can start only from flavors that name their architecture, also where a profile defines only
    /// one.
    fn needs_architecture(&self) -> bool {
        false
    }

    /// Whether a member of a version, flavor or machine type says nothing that would not count without it.
    fn says_nothing(&self, member: &str, value: &Value) -> bool {
        member == ARCHITECTURE && value == DEFAULT_ARCHITECTURE
    }

    /// What the document says of a machine type in the old format, as capabilities; nothing where it has no word for
    /// it.
    fn machine_type_of_old_format(&self, _config: &Value, _machine_type: &str) -> Capabilities {
        Capabilities::default()
    }

    /// Writes into the document what the old format says there of machine types; without any, takes it out.
    fn set_machine_types_of_old_format(&self, _config: &mut Members, _machine_types: &[(&str, &Capabilities)]) {}
}

/// The decoded `spec.providerConfig` of a CloudProfile or NamespacedCloudProfile.
pub trait ProfileConfig: Send + Sync {
    /// Every image and version in the order of the document; one that is listed several times comes several times.
    fn images(&self) -> Vec<ListedVersion<'_>>;

    /// The flavors that Workers in a region choose from for an image and version, in their order; for no region in
    /// particular, those of all regions. A version in the old format has the flavors that its members stand for. The image is
    /// its name and version, `declared` are the capabilities that the profile declares.
    fn flavors(
        &self,
        image: [&str; 2],
        region: Option<&str>,
        declared: &[CapabilityDefinition],
    ) -> Vec<ListedFlavor<'_>>;

    /// What is wrong with the document, by itself and against core's half of the profile.
    fn validate(&self, profile: &ProfileSpec) -> FieldErrors {
        let mut errors = FieldErrors::default();
        self.validate_into(profile, &mut errors);
        errors
    }

    /// The same, added to errors of which perhaps only the first are kept.
    fn validate_into(&self, profile: &ProfileSpec, errors: &mut FieldErrors);

    /// What is wrong with the document of a NamespacedCloudProfile.
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

    /// What a pool of a Shoot asks for that the document does not offer; `path` is that of the pool.
    fn validate_pool(&self, pool: &ShootPool, path: FieldPath<'_>, errors: &mut FieldErrors);

    /// What core's half has to list as `capabilityFlavors`, for each of its versions that the document lists.
    fn core_flavors(&self, images: &[ProfileImage]) -> Vec<CoreFlavors<'_>>;

    /// Regions of the profile that a setting of the document does not cover.
    fn uncovered_regions<'a>(&self, regions: &'a [Region]) -> Vec<UncoveredRegion<'a>>;

    /// Flavors that nothing tells apart from an earlier one of the same version. Machines that fit both get neither,
    /// which admission can't refuse, because Gardener accepts it.
    fn repeated_flavors(&self, definitions: &[CapabilityDefinition]) -> Vec<RepeatedFlavor<'_>>;
}

/// A region of a CloudProfile that a setting of the provider's half does not cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UncoveredRegion<'a> {
    /// The region.
    pub region: &'a str,
    /// The member of the document.
    pub member: &'static str,
    /// What fails there without it.
    pub consequence: &'static str,
}

/// What core's half has to list for one of its versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreFlavors<'a> {
    /// Position of the image in core's half.
    pub image: usize,
    /// Position of the version.
    pub version: usize,
    /// The flavors, in order.
    pub flavors: Vec<Cow<'a, Capabilities>>,
}

/// Two flavors of a version that list the same capabilities, in a region if images are regional.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepeatedFlavor<'a> {
    /// Name of the image.
    pub image: &'a str,
    /// The version.
    pub version: &'a str,
    /// The earlier flavor.
    pub first: Place,
    /// The later one.
    pub second: Place,
}

/// A version of an image in the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedVersion<'a> {
    /// Name of the image.
    pub image: &'a str,
    /// The version.
    pub version: &'a str,
    /// Where it stands.
    pub place: Place,
    /// Whether it is in the old format.
    pub old_format: bool,
}

/// A flavor of an image version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedFlavor<'a> {
    /// What machines must be able to do.
    pub capabilities: Cow<'a, Capabilities>,
    /// The image, in each region where the provider has regional images. Empty when the document names none.
    pub references: Vec<ListedReference<'a>>,
    /// Where it stands; in the old format that is the version.
    pub place: Place,
}

impl<'a> ListedFlavor<'a> {
    /// The image, of a flavor that was asked for in one region. Where that is listed several times, the last counts; where the
    /// CloudProfile compares nothing, the first. Of several members that name an image everywhere, the first counts.
    #[must_use]
    pub fn in_region(&self, definitions: &[CapabilityDefinition]) -> Option<&ListedReference<'a>> {
        let first = self.references.first()?;
        let mut of_region =
            self.references.iter().filter(|known| known.region.is_some() && known.region == first.region);
        if definitions.is_empty() { Some(first) } else { of_region.next_back().or(Some(first)) }
    }
}

/// How a cloud calls the image of a flavor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedReference<'a> {
    /// Where the name counts; `None` means everywhere.
    pub region: Option<&'a str>,
    /// The member that names it, such as `urn` or `ami`.
    pub member: &'static str,
    /// The name.
    pub value: &'a str,
}

/// A place in the document. It prints as `machineImages[0].versions[1].capabilityFlavors[2]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Position of the image.
    pub image: usize,
    /// Position of the version.
    pub version: usize,
    /// Position of the flavor, unless the version as a whole is meant.
    pub flavor: Option<usize>,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "machineImages[{}].versions[{}]", self.image, self.version)?;
        match self.flavor {
            Some(flavor) => write!(formatter, ".capabilityFlavors[{flavor}]"),
            None => Ok(()),
        }
    }
}
