//! `machineImages` of a `CloudProfileConfig`: all providers list images by name and version, and differ only in the
//! members of a version.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;

use super::{ListedFlavor, ListedReference, ListedVersion, Location, UncoveredRegion};
use wire::api::gardener::{Capabilities, CapabilityDefinition, NamespacedProfileSpec, ProfileSpec, Region, ShootPool};
use wire::api::gotext::field::{FieldErrors, FieldPath};
use wire::api::gotext::json::null_as_default;
use wire::capabilities::{ARCHITECTURES, only_architecture, validate_provider_flavor};

/// An image with its versions.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, bound = "Version: Deserialize<'de>")]
pub struct ImageVersions<Version> {
    /// Name of the image.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// Versions of the image. A version may be listed several times, for example once per architecture in the old
    /// format.
    #[serde(default = "Vec::new", deserialize_with = "null_as_default")]
    pub versions: Vec<Version>,
}

/// Which entries apply if a version is listed several times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeated {
    /// All entries, combined.
    All,
    /// The first entry.
    First,
    /// The last entry.
    Last,
}

/// A version of an image in a provider's document.
pub trait VersionEntry: Send + Sync {
    /// Which entries validation uses if a version is listed several times.
    const REPEATED: Repeated;

    /// Which entries Workers use: all of them, or the first one that is not empty. In the latter case, without declared
    /// capabilities, it is the first one in the old format with an image for the region.
    const CANDIDATES: Repeated = Repeated::All;

    /// Whether the old format distinguishes architectures if no capabilities are declared.
    const DISTINGUISHES_ARCHITECTURES: bool = true;

    /// The version.
    fn version(&self) -> &str;

    /// Capabilities of each listed flavor; empty for the old format.
    fn listed_capabilities(&self) -> impl ExactSizeIterator<Item = &Capabilities>;

    /// Whether the version lists flavors; otherwise it is in the old format.
    fn has_flavors(&self) -> bool {
        self.listed_capabilities().len() > 0
    }

    /// Whether the version has neither flavors nor members of the old format.
    fn is_empty(&self) -> bool {
        !self.has_flavors() && self.old_format_members().is_empty()
    }

    /// Architectures of the old format.
    fn architectures(&self) -> Vec<&str>;

    /// The flavors for machines in a region, or in any region; the old format is converted to flavors. A provider with
    /// regional images omits flavors without an image in the region.
    fn flavors(&self, region: Option<&str>) -> Vec<EntryFlavor<'_>>;

    /// The flavors that `spec.machineImages` has to list for a version whose entries are all in the old format, in an
    /// order that does not depend on the order of the entries. Empty entries are ignored.
    fn core_flavors(entries: &[&Self]) -> Vec<Capabilities> {
        let entries = entries.iter().filter(|entry| !entry.old_format_members().is_empty());
        let mut architectures: Vec<&str> = entries.flat_map(|entry| entry.architectures()).collect();
        architectures.sort_unstable();
        architectures.dedup();
        architectures.into_iter().map(only_architecture).collect()
    }

    /// Validates the entry on its own. `image` is the name of its image.
    fn validate(
        &self,
        image: &str,
        definitions: &[CapabilityDefinition],
        path: FieldPath<'_>,
        errors: &mut FieldErrors,
    ) {
        let flavors = path.child("capabilityFlavors");
        if definitions.is_empty() && self.has_flavors() {
            let detail = "must not be set as CloudProfile does not define capabilities. Use the old format instead.";
            errors.forbidden(flavors, detail);
        }
        if definitions.is_empty() || !self.has_flavors() {
            self.validate_old_format(image, !definitions.is_empty(), path, errors);
            return;
        }
        let old_format = self.old_format_members();
        if !old_format.is_empty() {
            for member in old_format {
                let detail = "must not be set together with capabilityFlavors. Use one format per version.";
                errors.forbidden(path.child(member), detail);
            }
            return;
        }
        for (index, capabilities) in self.listed_capabilities().enumerate() {
            let path = flavors.index(index);
            validate_provider_flavor(capabilities, definitions, path.child("capabilities"), errors);
            self.validate_flavor(index, image, path, errors);
        }
    }

    /// The members of the old format that are set.
    fn old_format_members(&self) -> Vec<&'static str>;

    /// Validates the members of the old format, even if none is set. With `has_choice`, flavors would be allowed as
    /// well.
    fn validate_old_format(&self, image: &str, has_choice: bool, path: FieldPath<'_>, errors: &mut FieldErrors);

    /// Validates the images of the flavor at that position.
    fn validate_flavor(&self, index: usize, image: &str, path: FieldPath<'_>, errors: &mut FieldErrors);
}

/// The decoded document of a provider. Each type that implements it also implements
/// [`ProfileConfig`](super::ProfileConfig).
pub trait ImageDocument: Send + Sync {
    /// Type of the provider's version entries.
    type Version: VersionEntry;

    /// Whether the images are compared with `spec.machineImages` even after other errors.
    const MAPPING_AFTER_ERRORS: bool = true;

    /// Whether versions of a NamespacedCloudProfile that its parent has are skipped.
    const SKIPS_VERSIONS_OF_PARENT: bool = true;

    /// Whether a NamespacedCloudProfile in the old format may add a version without an image to an image of its parent.
    /// Pools with that version can't be created; upstream accepts it for some providers.
    const UNMAPPED_VERSIONS_OF_PARENT: bool = false;

    /// The listed images.
    fn machine_images(&self) -> &[ImageVersions<Self::Version>];

    /// Validates the other members, at `path`.
    fn validate_settings(&self, _path: FieldPath<'_>, _errors: &mut FieldErrors) {}

    /// Checks that other members of the document allow the settings of a Shoot pool at `path`.
    fn validate_pool(&self, _pool: &ShootPool, _path: FieldPath<'_>, _errors: &mut FieldErrors) {}

    /// Regions of the profile that another member does not cover.
    fn uncovered_regions<'a>(&self, _regions: &'a [Region]) -> Vec<UncoveredRegion<'a>> {
        Vec::new()
    }

    /// Validates the other members in a NamespacedCloudProfile, at `path`.
    fn validate_namespaced_settings(
        &self,
        _namespaced: &NamespacedProfileSpec,
        _parent: &ProfileSpec,
        _path: FieldPath<'_>,
        _errors: &mut FieldErrors,
    ) {
    }
}

/// Error detail for a version in neither format.
#[must_use]
pub fn neither_format(image: &str, version: &str) -> String {
    format!("must provide either image or capabilityFlavors for machine image {image}@{version}")
}

/// Requires an architecture that Gardener supports.
pub fn validate_architecture(architecture: &str, path: FieldPath<'_>, errors: &mut FieldErrors) {
    if !ARCHITECTURES.contains(&architecture) {
        errors.not_supported(path.child("architecture"), architecture, ARCHITECTURES);
    }
}

/// A flavor of a version.
#[derive(Clone, Debug)]
pub struct EntryFlavor<'a> {
    /// Position in `capabilityFlavors`; `None` in the old format.
    pub position: Option<usize>,
    /// Capabilities that machines must support.
    pub capabilities: Cow<'a, Capabilities>,
    /// References to the image, one per region for providers with regional images.
    pub references: Vec<ListedReference<'a>>,
}

impl<'a> EntryFlavor<'a> {
    /// Flavors listed in `capabilityFlavors`, in order.
    pub(in crate::provider) fn listed(
        flavors: impl Iterator<Item = (&'a Capabilities, Vec<ListedReference<'a>>)>,
    ) -> Vec<Self> {
        let flavor = |(position, (capabilities, references))| Self {
            position: Some(position),
            capabilities: Cow::Borrowed(capabilities),
            references,
        };
        flavors.enumerate().map(flavor).collect()
    }

    /// A flavor converted from the old format.
    pub(in crate::provider) fn old_format(capabilities: Capabilities, references: Vec<ListedReference<'a>>) -> Self {
        Self { position: None, capabilities: Cow::Owned(capabilities), references }
    }
}

/// Every image and version in document order.
pub(super) fn listed_versions<Version: VersionEntry>(images: &[ImageVersions<Version>]) -> Vec<ListedVersion<'_>> {
    let versions = images.iter().enumerate().flat_map(|(image, entry)| {
        entry.versions.iter().enumerate().map(move |(position, version)| ListedVersion {
            image: &entry.name,
            version: version.version(),
            location: Location { image, version: position, flavor: None },
            old_format: !version.has_flavors(),
        })
    });
    versions.collect()
}

/// The flavors of an image and version for a region, or for all regions, from the first entry with flavors. `declared`
/// are the capabilities that the profile declares.
pub fn listed_flavors<'a, Version: VersionEntry>(
    images: &'a [ImageVersions<Version>],
    [image, version]: [&str; 2],
    region: Option<&str>,
    declared: &[CapabilityDefinition],
) -> Vec<ListedFlavor<'a>> {
    let mut entries = images.iter().enumerate().filter(|(_, entry)| entry.name == image);
    let of_entry = |(image, entry): (usize, &'a ImageVersions<Version>)| {
        let flavors = |(version, listed): (usize, &'a Version)| {
            let flavors = listed.flavors(region).into_iter().map(move |flavor| ListedFlavor {
                capabilities: flavor.capabilities,
                references: flavor.references,
                location: Location { image, version, flavor: flavor.position },
            });
            flavors.collect::<Vec<_>>()
        };
        let has_any = |flavors: &Vec<ListedFlavor<'_>>| !flavors.is_empty();
        let mut versions = entry.versions.iter().enumerate().filter(|(_, listed)| listed.version() == version);
        match (Version::CANDIDATES, declared.is_empty()) {
            (Repeated::First, true) => versions.filter(|(_, listed)| !listed.has_flavors()).map(flavors).find(has_any),
            (Repeated::First, false) => versions.find(|(_, listed)| !listed.is_empty()).map(flavors),
            (Repeated::All | Repeated::Last, _) => Some(versions.flat_map(flavors).collect()).filter(has_any),
        }
    };
    entries.find_map(of_entry).unwrap_or_default()
}

/// Index of images and versions by name.
pub(super) struct ImageIndex<'a, Version> {
    images: HashMap<&'a str, HashMap<&'a str, Vec<&'a Version>>>,
}

impl<'a, Version: VersionEntry> ImageIndex<'a, Version> {
    /// If several images have the same name, the last one is used.
    pub(super) fn new(images: &'a [ImageVersions<Version>]) -> Self {
        let of_image = |image: &'a ImageVersions<Version>| {
            let mut versions: HashMap<&str, Vec<&Version>> = HashMap::new();
            for version in &image.versions {
                let entries = versions.entry(version.version()).or_default();
                match Version::REPEATED {
                    Repeated::First if !entries.is_empty() => continue,
                    Repeated::Last => entries.clear(),
                    Repeated::First | Repeated::All => {}
                }
                entries.push(version);
            }
            (image.name.as_str(), versions)
        };
        Self { images: images.iter().map(of_image).collect() }
    }

    pub(super) fn has_image(&self, image: &str) -> bool {
        self.images.contains_key(image)
    }

    /// The entries of a version after [`VersionEntry::REPEATED`]; empty if it is not listed.
    pub(super) fn entries(&self, image: &str, version: &str) -> &[&'a Version] {
        self.images.get(image).and_then(|versions| versions.get(version)).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use crate::provider::Providers;
    use crate::provider::document::DocumentError;
    use crate::provider::profile::{ListedVersion, Location, ProfileConfig};
    use wire::api::gardener::Capabilities;

    fn open(provider: &str, images: &str) -> Result<Box<dyn ProfileConfig>, DocumentError> {
        let document = format!(
            r#"{{"apiVersion":"{provider}.provider.extensions.gardener.cloud/v1alpha1","kind":"CloudProfileConfig",
                "machineImages":{images}}}"#
        );
        let raw = serde_json::value::RawValue::from_string(document).unwrap();
        Providers::SHIPPED.profile_format(provider).unwrap().open(Some(&raw))
    }

    /// Place, region, and image of each flavor.
    fn references(config: &dyn ProfileConfig, version: &str, region: Option<&str>) -> Vec<String> {
        let flavors = config.flavors(["linux", version], region, &[]);
        let of_flavor = flavors.iter().flat_map(|flavor| {
            flavor.references.iter().map(|reference| {
                let region = reference.region.unwrap_or("everywhere");
                format!("{} {region} {}", flavor.location, reference.value)
            })
        });
        of_flavor.collect()
    }

    #[test]
    fn versions_come_in_the_order_of_the_document_and_as_often_as_they_are_listed() {
        let config = open(
            "azure",
            r#"[{"name":"linux","versions":[{"version":"1","urn":"a:b:c:d"},{"version":"1","architecture":"arm64","urn":"e:f:g:h"},
                {"version":"2","capabilityFlavors":[{"capabilities":{"architecture":["amd64"]},"id":"x"}]}]}]"#,
        )
        .unwrap();
        let listed = |version, position, old_format| ListedVersion {
            image: "linux",
            version,
            location: Location { image: 0, version: position, flavor: None },
            old_format,
        };
        assert_eq!(config.images(), [listed("1", 0, true), listed("1", 1, true), listed("2", 2, false)]);
        assert_eq!(
            references(&*config, "1", Some("anywhere")),
            ["machineImages[0].versions[0] everywhere a:b:c:d", "machineImages[0].versions[1] everywhere e:f:g:h"]
        );
        assert_eq!(references(&*config, "2", None), ["machineImages[0].versions[2].capabilityFlavors[0] everywhere x"]);
        assert!(config.flavors(["linux", "3"], None, &[]).is_empty());
    }

    #[test]
    fn regional_images_are_listed_for_one_region_or_for_all() {
        let config = open(
            "aws",
            r#"[{"name":"linux","versions":[
                {"version":"1","regions":[{"name":"eu","ami":"a"},{"name":"eu","ami":"b","architecture":"arm64"},
                    {"name":"us","ami":"c"},{"name":"us","ami":"d"}]},
                {"version":"2","capabilityFlavors":[{"regions":[{"name":"eu","ami":"e"}]},{"regions":[{"name":"us","ami":"f"}]}]}]}]"#,
        )
        .unwrap();
        let at = |version: &str, region| references(&*config, version, region);
        let old = "machineImages[0].versions[0]";
        assert_eq!(at("1", None), [format!("{old} eu a"), format!("{old} us d"), format!("{old} eu b")]);
        assert_eq!(at("1", Some("us")), [format!("{old} us d")]);
        assert_eq!(at("2", Some("us")), ["machineImages[0].versions[1].capabilityFlavors[1] us f"]);
        assert_eq!(
            *config.flavors(["linux", "1"], None, &[])[1].capabilities,
            Capabilities::from_iter([("architecture", ["arm64"])])
        );
    }
}
