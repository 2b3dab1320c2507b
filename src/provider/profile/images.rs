//! `machineImages` of a `CloudProfileConfig`: every provider lists images by name and version, and differs only in what
//! stands in a version.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;

use super::{ListedFlavor, ListedReference, ListedVersion, Place, UncoveredRegion};
use crate::api::gardener::{Capabilities, CapabilityDefinition, NamespacedProfileSpec, ProfileSpec, Region, ShootPool};
use crate::api::gotext::field::{FieldErrors, FieldPath};
use crate::api::gotext::json::null_as_default;
use crate::capabilities::{ARCHITECTURES, only_architecture, validate_provider_flavor};

/// An image with its versions.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, bound = "Version: Deserialize<'de>")]
pub struct ImageVersions<Version> {
    /// Name of the image.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// Its versions. A version may be listed several times, in the old format for example once per architecture.
    #[serde(default = "Vec::new", deserialize_with = "null_as_default")]
    pub versions: Vec<Version>,
}

/// Which entries count where a version is listed several times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeated {
    /// All of them together.
    All,
    /// The first one.
    First,
    /// The last one.
    Last,
}

/// A version of an image, as a provider lists it.
pub trait VersionEntry: Send + Sync {
    /// Which entries count for validation where a version is listed several times.
    const REPEATED: Repeated;

    /// Which entries count for Workers: all of them; or the first one that is not empty, and where no capabilities are declared the
    /// first one in the old format with an image for the region.
    const CANDIDATES: Repeated = Repeated::All;

    /// Whether the old format tells architectures apart where no capabilities are declared.
    const TELLS_ARCHITECTURES: bool = true;

    /// The version.
    fn version(&self) -> &str;

    /// What machines must be able to do for each flavor that is listed; none for the old format.
    fn listed_capabilities(&self) -> impl ExactSizeIterator<Item = &Capabilities>;

    /// Whether it lists flavors; else it is in the old format.
    fn has_flavors(&self) -> bool {
        self.listed_capabilities().len() > 0
    }

    /// Whether it has neither flavors nor members of the old format.
    fn is_empty(&self) -> bool {
        !self.has_flavors() && self.old_format_members().is_empty()
    }

    /// The architectures of the old format.
    fn architectures(&self) -> Vec<&str>;

    /// The flavors that machines in a region, or in any region, start from; in the old format those that its members
    /// stand for. A provider with regional images leaves flavors out that have no image there.
    fn flavors(&self, region: Option<&str>) -> Vec<EntryFlavor<'_>>;

    /// What core's half has to list for a version of which all entries are in the old format; in an order that depends
    /// only on what they say. Nothing comes of an entry without any member.
    fn core_flavors(entries: &[&Self]) -> Vec<Capabilities> {
        let entries = entries.iter().filter(|entry| !entry.old_format_members().is_empty());
        let mut architectures: Vec<&str> = entries.flat_map(|entry| entry.architectures()).collect();
        architectures.sort_unstable();
        architectures.dedup();
        architectures.into_iter().map(only_architecture).collect()
    }

    /// What is wrong with the entry by itself, for an image of that name.
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

    /// What is wrong with the members of the old format; also when there are none. `has_choice` says that flavors would
    /// be allowed as well.
    fn validate_old_format(&self, image: &str, has_choice: bool, path: FieldPath<'_>, errors: &mut FieldErrors);

    /// What is wrong with the images of the flavor at that position.
    fn validate_flavor(&self, index: usize, image: &str, path: FieldPath<'_>, errors: &mut FieldErrors);
}

/// The decoded document of a provider. Whoever has it has a [`ProfileConfig`](super::ProfileConfig).
pub trait ImageDocument: Send + Sync {
    /// What the provider lists for a version.
    type Version: VersionEntry;

    /// Whether the images are compared with core's half of the profile even if something else is wrong already.
    const MAPPING_AFTER_ERRORS: bool = true;

    /// Whether versions of a NamespacedCloudProfile that its parent has are not looked at.
    const SKIPS_VERSIONS_OF_PARENT: bool = true;

    /// Whether a NamespacedCloudProfile in the old format may add a version without an image to an image of its parent.
    /// Pools with that version can't be made; upstream accepts it for some providers.
    const UNMAPPED_VERSIONS_OF_PARENT: bool = false;

    /// The images.
    fn machine_images(&self) -> &[ImageVersions<Self::Version>];

    /// What is wrong with the other members, at `path`.
    fn validate_settings(&self, _path: FieldPath<'_>, _errors: &mut FieldErrors) {}

    /// What a pool of a Shoot asks for that another member does not offer; `path` is that of the pool.
    fn validate_pool(&self, _pool: &ShootPool, _path: FieldPath<'_>, _errors: &mut FieldErrors) {}

    /// Regions of the profile that another member does not cover.
    fn uncovered_regions<'a>(&self, _regions: &'a [Region]) -> Vec<UncoveredRegion<'a>> {
        Vec::new()
    }

    /// What is wrong with the other members in a NamespacedCloudProfile, at `path`.
    fn validate_namespaced_settings(
        &self,
        _namespaced: &NamespacedProfileSpec,
        _parent: &ProfileSpec,
        _path: FieldPath<'_>,
        _errors: &mut FieldErrors,
    ) {
    }
}

/// The detail of an error: a version is in neither format.
#[must_use]
pub fn neither_format(image: &str, version: &str) -> String {
    format!("must provide either image or capabilityFlavors for machine image {image}@{version}")
}

/// The architecture of an image must be one that Gardener knows.
pub fn validate_architecture(architecture: &str, path: FieldPath<'_>, errors: &mut FieldErrors) {
    if !ARCHITECTURES.contains(&architecture) {
        errors.not_supported(path.child("architecture"), architecture, ARCHITECTURES);
    }
}

/// A flavor of a version.
#[derive(Clone, Debug)]
pub struct EntryFlavor<'a> {
    /// Its position in `capabilityFlavors`; `None` in the old format.
    pub position: Option<usize>,
    /// What machines must be able to do.
    pub capabilities: Cow<'a, Capabilities>,
    /// The image, in each region where the provider has regional images.
    pub references: Vec<ListedReference<'a>>,
}

impl<'a> EntryFlavor<'a> {
    /// Those of `capabilityFlavors`, in order.
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

    /// One of the old format.
    pub(in crate::provider) fn old_format(capabilities: Capabilities, references: Vec<ListedReference<'a>>) -> Self {
        Self { position: None, capabilities: Cow::Owned(capabilities), references }
    }
}

/// Every image and version in the order of the document.
pub(super) fn listed_versions<Version: VersionEntry>(images: &[ImageVersions<Version>]) -> Vec<ListedVersion<'_>> {
    let versions = images.iter().enumerate().flat_map(|(image, entry)| {
        entry.versions.iter().enumerate().map(move |(position, version)| ListedVersion {
            image: &entry.name,
            version: version.version(),
            place: Place { image, version: position, flavor: None },
            old_format: !version.has_flavors(),
        })
    });
    versions.collect()
}

/// The flavors of an image and version for a region, or for any: those of the first entry of that name that has any. `declared` are
/// the capabilities that the profile declares.
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
                place: Place { image, version, flavor: flavor.position },
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

/// Images and versions by name, for looking many of them up.
pub(super) struct ImageIndex<'a, Version> {
    images: HashMap<&'a str, HashMap<&'a str, Vec<&'a Version>>>,
}

impl<'a, Version: VersionEntry> ImageIndex<'a, Version> {
    /// Of several images with one name the last counts.
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

    /// The entries that count for a version; empty when it is not listed.
    pub(super) fn entries(&self, image: &str, version: &str) -> &[&'a Version] {
        self.images.get(image).and_then(|versions| versions.get(version)).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use crate::api::gardener::Capabilities;
    use crate::provider::Providers;
    use crate::provider::document::DocumentError;
    use crate::provider::profile::{ListedVersion, Place, ProfileConfig};

    fn open(provider: &str, images: &str) -> Result<Box<dyn ProfileConfig>, DocumentError> {
        let document = format!(
            r#"{{"apiVersion":"{provider}.provider.extensions.gardener.cloud/v1alpha1","kind":"CloudProfileConfig",
                "machineImages":{images}}}"#
        );
        let raw = serde_json::value::RawValue::from_string(document).unwrap();
        Providers::SHIPPED.profile_format(provider).unwrap().open(Some(&raw))
    }

    /// Place, region, image of each flavor.
    fn references(config: &dyn ProfileConfig, version: &str, region: Option<&str>) -> Vec<String> {
        let flavors = config.flavors(["linux", version], region, &[]);
        let of_flavor = flavors.iter().flat_map(|flavor| {
            flavor.references.iter().map(|reference| {
                let region = reference.region.unwrap_or("everywhere");
                format!("{} {region} {}", flavor.place, reference.value)
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
            place: Place { image: 0, version: position, flavor: None },
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
