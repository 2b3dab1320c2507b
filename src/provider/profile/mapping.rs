//! Checks that every version in `spec.machineImages` has images in the provider config.

use std::fmt;

use super::images::{ImageIndex, VersionEntry};
use crate::api::gardener::{Capabilities, CapabilityDefinition, ProfileImageVersion, ProfileSpec};
use crate::api::gotext::field::{FieldErrors, FieldPath};
use crate::capabilities::{ARCHITECTURE, ARCHITECTURES, mean_the_same, with_defaults};

/// Reports versions, flavors and architectures of `spec.machineImages` that the provider config lacks.
pub(super) fn validate_mapping<Version: VersionEntry>(
    index: &ImageIndex<'_, Version>,
    profile: &ProfileSpec,
    path: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let definitions = &profile.machine_capabilities;
    for (position, image) in profile.machine_images.iter().enumerate() {
        let path = path.index(position);
        if image.versions.is_empty() {
            continue;
        }
        if !index.has_image(&image.name) {
            let name = &image.name;
            let detail = format!(
                "must provide a provider image mapping for image {name:?}: list it in spec.providerConfig.machineImages"
            );
            errors.required(path, detail);
            continue;
        }
        let versions = path.child("versions");
        for (position, version) in image.versions.iter().enumerate() {
            let path = versions.index(position);
            let entries = index.entries(&image.name, &version.version);
            if definitions.is_empty() {
                for architecture in &version.architectures {
                    if !ARCHITECTURES.contains(&architecture.as_str()) {
                        errors.not_supported(path.child("architectures"), architecture, ARCHITECTURES);
                    }
                }
                for missing in missing_architectures(version, entries) {
                    errors.required(path, missing.text(&image.name, version, "the providerConfig"));
                }
                continue;
            }
            if entries.is_empty() {
                let detail = format!(
                    "machine image version {}@{} is not defined in the providerConfig: list it in \
                     spec.providerConfig.machineImages",
                    image.name, version.version
                );
                errors.required(path, detail);
                continue;
            }
            let flavors = path.child("capabilityFlavors");
            for missing in missing_flavors(version, entries, definitions) {
                let detail = missing.text(&image.name, version, "the providerConfig");
                errors.required(flavors.index(missing.position), detail);
            }
        }
    }
}

/// An architecture of `spec.machineImages` without an image.
pub(super) struct MissingArchitecture<'a> {
    architecture: &'a str,
    listed: Vec<&'a str>,
}

impl MissingArchitecture<'_> {
    pub(super) fn text(&self, image: &str, version: &ProfileImageVersion, place: &str) -> String {
        let listed = match &self.listed[..] {
            [] => "the version is not listed there".to_owned(),
            listed => format!("there it has {}", listed.join(", ")),
        };
        format!(
            "machine image version {image}@{} and architecture: {} is not defined in {place}; {listed}. Add an image, or \
             remove the architecture from the version",
            version.version, self.architecture
        )
    }
}

/// Architectures of a version without an entry.
pub(super) fn missing_architectures<'a, Version: VersionEntry>(
    version: &'a ProfileImageVersion,
    entries: &[&'a Version],
) -> impl Iterator<Item = MissingArchitecture<'a>> {
    let listed: Vec<&str> = entries.iter().flat_map(|entry| entry.architectures()).collect();
    let missing = version.architectures.iter().filter({
        let listed = listed.clone();
        let any = !Version::TELLS_ARCHITECTURES && !entries.is_empty();
        move |architecture| !any && !listed.contains(&architecture.as_str())
    });
    missing.map(move |architecture| MissingArchitecture { architecture, listed: listed.clone() })
}

/// A flavor of `spec.machineImages` without an image.
pub(super) struct MissingFlavor {
    pub(super) position: usize,
    wanted: Capabilities,
    offered: Offered,
}

/// Flavors or architectures that the provider config lists instead.
enum Offered {
    /// Flavors.
    Flavors(Vec<Capabilities>),
    /// Architectures, in the old format.
    Architectures(Vec<String>),
}

impl MissingFlavor {
    pub(super) fn text(&self, image: &str, version: &ProfileImageVersion, place: &str) -> String {
        let wanted = Flavor(&self.wanted);
        let offered = match &self.offered {
            Offered::Architectures(listed) => {
                format!("it has images for {}. Add one", listed.join(", "))
            }
            Offered::Flavors(listed) => match nearest(&self.wanted, listed) {
                None => "it has no flavors. Add one".to_owned(),
                Some(nearest) => {
                    let differences: Vec<String> = differing(&self.wanted, nearest)
                        .map(|(name, core, provider)| {
                            format!("{name} (core [{}], provider [{}])", core.join(", "), provider.join(", "))
                        })
                        .collect();
                    format!(
                        "the nearest flavor there differs in {}. Add one with the same values",
                        differences.join(" and ")
                    )
                }
            },
        };
        format!(
            "machine image version {image}@{} and capabilityFlavor {wanted} is not defined in {place}; {offered}, or remove \
             the flavor",
            version.version
        )
    }
}

/// Flavors of a version, by position, without an entry. Only the first entry with flavors is used; if no entry has
/// flavors, architectures are compared.
pub(super) fn missing_flavors<Version: VersionEntry>(
    version: &ProfileImageVersion,
    entries: &[&Version],
    definitions: &[CapabilityDefinition],
) -> Vec<MissingFlavor> {
    // A version without flavors has an implicit flavor for all machines.
    let everything = [Capabilities::default()];
    let wanted = if version.capability_flavors.is_empty() { &everything[..] } else { &version.capability_flavors };
    let listing = entries.iter().find(|entry| entry.has_flavors());
    let architectures: Vec<&str> = entries.iter().flat_map(|entry| entry.architectures()).collect();
    let is_missing = |wanted: &Capabilities| match listing {
        Some(entry) => !entry.listed_capabilities().any(|listed| mean_the_same(wanted, listed, definitions)),
        None => {
            let wanted = with_defaults(wanted, definitions);
            let mut wanted = wanted.values(ARCHITECTURE).unwrap_or_default().iter();
            wanted.any(|architecture| !architectures.contains(&architecture.as_str()))
        }
    };
    let offered = || match listing {
        Some(entry) => {
            let flavors = entry.listed_capabilities().map(|flavor| with_defaults(flavor, definitions));
            Offered::Flavors(flavors.collect())
        }
        None => Offered::Architectures(architectures.iter().map(|&listed| listed.to_owned()).collect()),
    };
    let missing = wanted.iter().enumerate().filter(|(_, wanted)| is_missing(wanted));
    let flavors = missing.map(|(position, wanted)| MissingFlavor {
        position,
        wanted: with_defaults(wanted, definitions),
        offered: offered(),
    });
    flavors.collect()
}

/// The flavor that differs in the fewest capabilities.
fn nearest<'a>(wanted: &Capabilities, listed: &'a [Capabilities]) -> Option<&'a Capabilities> {
    listed.iter().min_by_key(|listed| differing(wanted, listed).count())
}

/// Name and values of the capabilities in which two flavors differ.
fn differing<'a>(
    wanted: &'a Capabilities,
    listed: &'a Capabilities,
) -> impl Iterator<Item = (&'a str, &'a [String], &'a [String])> {
    wanted.0.iter().filter_map(|(name, values)| {
        let others = listed.values(name).unwrap_or_default();
        let same =
            values.iter().all(|value| others.contains(value)) && others.iter().all(|other| values.contains(other));
        (!same).then_some((name.as_str(), values.as_slice(), others))
    })
}

/// Formats a flavor: `{architecture: [amd64], hyper: [gen2, gen1]}`.
pub(super) struct Flavor<'a>(pub(super) &'a Capabilities);

impl fmt::Display for Flavor<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.0.0.iter().map(|(name, values)| format!("{name}: [{}]", values.join(", ")));
        write!(formatter, "{{{}}}", entries.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use crate::provider::Providers;

    #[test]
    fn a_missing_flavor_is_explained_with_the_nearest_one() {
        let config = RawValue::from_string(
            r#"{"apiVersion":"azure.provider.extensions.gardener.cloud/v1alpha1","kind":"CloudProfileConfig",
                "countFaultDomains":[{"region":"r","count":1}],"countUpdateDomains":[{"region":"r","count":1}],
                "machineImages":[{"name":"os","versions":[{"version":"1","capabilityFlavors":[
                    {"capabilities":{"architecture":["arm64"]},"id":"a"},
                    {"capabilities":{"architecture":["amd64"],"hyper":["gen2"]},"id":"b"}]}]}]}"#
                .to_owned(),
        );
        let profile = r#"{"machineCapabilities":[{"name":"architecture","values":["amd64","arm64"]},{"name":"hyper","values":["gen2","gen1"]}],
            "machineImages":[{"name":"os","versions":[{"version":"1","capabilityFlavors":[{"architecture":["amd64"],"hyper":["gen1"]}]}]}]}"#;
        let errors = Providers::SHIPPED
            .profile_format("azure")
            .unwrap()
            .open(Some(&config.unwrap()))
            .unwrap()
            .validate(&serde_json::from_str(profile).unwrap());
        let texts: Vec<String> = errors.0.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            ["spec.machineImages[0].versions[0].capabilityFlavors[0]: Required value: machine image version os@1 and \
              capabilityFlavor {architecture: [amd64], hyper: [gen1]} is not defined in the providerConfig; the nearest \
              flavor there differs in hyper (core [gen1], provider [gen2]). Add one with the same values, or remove the flavor"]
        );
    }
}
