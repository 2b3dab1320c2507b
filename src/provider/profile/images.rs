//! `machineImages` of a `CloudProfileConfig`: every provider lists images by name and version, and differs only in what
//! stands in a version.

use std::borrow::Cow;

use serde::Deserialize;

use super::{ListedFlavor, ListedReference, ListedVersion, Place};
use crate::api::gardener::Capabilities;
use crate::api::gotext::json::null_as_default;

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

/// A version of an image, as a provider lists it.
pub trait VersionEntry {
    /// The version.
    fn version(&self) -> &str;

    /// Whether it lists flavors; else it is in the old format.
    fn has_flavors(&self) -> bool;

    /// The flavors that machines in a region, or in any region, start from; in the old format those that its members
    /// stand for. A provider with regional images leaves flavors out that have no image there.
    fn flavors(&self, region: Option<&str>) -> Vec<EntryFlavor<'_>>;
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

/// Every image and version in the order of the document.
pub fn listed_versions<Version: VersionEntry>(images: &[ImageVersions<Version>]) -> Vec<ListedVersion<'_>> {
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

/// The flavors of an image and version for a region, or for any: those of the first entry of that name that has any.
pub fn listed_flavors<'a, Version: VersionEntry>(
    images: &'a [ImageVersions<Version>],
    image: &str,
    version: &str,
    region: Option<&str>,
) -> Vec<ListedFlavor<'a>> {
    let entries = images.iter().enumerate().filter(|(_, entry)| entry.name == image);
    let of_entry = |(image, entry): (usize, &'a ImageVersions<Version>)| {
        let versions = entry.versions.iter().enumerate().filter(|(_, listed)| listed.version() == version);
        let flavors = versions.flat_map(|(version, listed)| {
            listed.flavors(region).into_iter().map(move |flavor| ListedFlavor {
                capabilities: flavor.capabilities,
                references: flavor.references,
                place: Place { image, version, flavor: flavor.position },
            })
        });
        flavors.collect::<Vec<_>>()
    };
    entries.map(of_entry).find(|flavors| !flavors.is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use crate::api::gardener::Capabilities;
    use crate::provider::document::DocumentError;
    use crate::provider::profile::{ListedVersion, Place, ProfileConfig, for_type};

    fn open(provider: &str, images: &str) -> Result<Box<dyn ProfileConfig>, DocumentError> {
        let document = format!(
            r#"{{"apiVersion":"{provider}.provider.extensions.gardener.cloud/v1alpha1","kind":"CloudProfileConfig",
                "machineImages":{images}}}"#
        );
        let raw = serde_json::value::RawValue::from_string(document).unwrap();
        for_type(provider).unwrap().open(Some(&raw))
    }

    /// Place, region, image of each flavor.
    fn references(config: &dyn ProfileConfig, version: &str, region: Option<&str>) -> Vec<String> {
        let flavors = config.flavors("linux", version, region);
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
        assert!(config.flavors("linux", "3", None).is_empty());
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
            *config.flavors("linux", "1", None)[1].capabilities,
            Capabilities::from_iter([("architecture", ["arm64"])])
        );
    }
}
