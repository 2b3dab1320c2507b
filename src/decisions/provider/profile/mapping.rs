//! Checks that every version in `spec.machineImages` has images in the provider config.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::fmt;

use super::images::{ImageIndex, VersionEntry};
use wire::api::gardener::{Capabilities, CapabilityDefinition, ProfileImageVersion, ProfileSpec};
use wire::api::gotext::field::{FieldErrors, FieldPath};
use wire::capabilities::{ARCHITECTURE, ARCHITECTURES, Meaning, Meanings, with_defaults};

/// The place to list an image, in messages.
const LOCATION: &str = "the providerConfig";
/// Architectures that a message lists; the others are counted.
const MOST_LISTED: usize = 20;
/// Maximum number of flavors, and of their values, that are compared to find the nearest flavor for a message.
const MOST_COMPARED: usize = 1000;
const MOST_VALUES_COMPARED: usize = 1_000_000;

/// Reports versions, flavors and architectures of `spec.machineImages` that the provider config lacks.
pub(super) fn validate_mapping<Version: VersionEntry>(
    index: &ImageIndex<'_, Version>,
    profile: &ProfileSpec,
    path: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let definitions = &profile.machine_capabilities;
    let meanings = Meanings::new(definitions);
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
            if errors.is_stopped() {
                return;
            }
            let path = versions.index(position);
            let entries = index.entries(&image.name, &version.version);
            if definitions.is_empty() {
                for architecture in &version.architectures {
                    if !ARCHITECTURES.contains(&architecture.as_str()) {
                        errors.not_supported(path.child("architectures"), architecture, ARCHITECTURES);
                    }
                }
                let missing = MissingArchitectures::find(version, entries);
                for architecture in missing.iter() {
                    errors.required_with(path, || missing.text(architecture, &image.name, version, LOCATION));
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
            let missing = MissingFlavors::find(version, entries, definitions, &meanings);
            for (position, flavor) in missing.iter() {
                let detail = || missing.text(flavor, &image.name, version, LOCATION);
                errors.required_with(flavors.index(position), detail);
            }
        }
    }
}

/// Architectures of core's half without an image.
pub(super) struct MissingArchitectures<'a> {
    missing: Vec<&'a str>,
    listed: Vec<&'a str>,
}

impl<'a> MissingArchitectures<'a> {
    /// Architectures of a version that no entry has.
    pub(super) fn find<Version: VersionEntry>(version: &'a ProfileImageVersion, entries: &[&'a Version]) -> Self {
        let listed: Vec<&str> = entries.iter().flat_map(|entry| entry.architectures()).collect();
        if !Version::DISTINGUISHES_ARCHITECTURES && !entries.is_empty() {
            return Self { missing: Vec::new(), listed };
        }
        let known: HashSet<&str> = listed.iter().copied().collect();
        let target = version.architectures.iter().map(String::as_str);
        Self { missing: target.filter(|architecture| !known.contains(architecture)).collect(), listed }
    }

    /// In the order of the version.
    pub(super) fn iter(&self) -> impl Iterator<Item = &'a str> {
        self.missing.iter().copied()
    }

    pub(super) fn text(
        &self,
        architecture: &str,
        image: &str,
        version: &ProfileImageVersion,
        location: &str,
    ) -> String {
        let listed = match &self.listed[..] {
            [] => "the version is not listed there".to_owned(),
            listed => format!("there it has {}", some(listed)),
        };
        format!(
            "machine image version {image}@{} and architecture: {architecture} is not defined in {location}; {listed}. Add an image, or \
             remove the architecture from the version",
            version.version
        )
    }
}

/// The first names, and how many more there are.
fn some(names: &[&str]) -> String {
    let named = names.iter().take(MOST_LISTED).copied().collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(MOST_LISTED).filter(|more| *more > 0) {
        Some(more) => format!("{named} and {more} more"),
        None => named,
    }
}

/// Flavors of core's half without an image.
pub(super) struct MissingFlavors<'a> {
    /// With their positions.
    missing: Vec<(usize, Cow<'a, Capabilities>)>,
    selectable: Selectable<'a>,
    definitions: &'a [CapabilityDefinition],
}

/// The flavors or architectures that the provider config lists for a version.
enum Selectable<'a> {
    /// Flavors.
    Flavors(Vec<&'a Capabilities>),
    /// Architectures, in the old format.
    Architectures(Vec<&'a str>),
}

impl<'a> MissingFlavors<'a> {
    /// Flavors of a version, by position, that no entry has. Among several entries only the first with flavors is
    /// compared; if none has flavors, the architectures are compared.
    pub(super) fn find<Version: VersionEntry>(
        version: &'a ProfileImageVersion,
        entries: &[&'a Version],
        definitions: &'a [CapabilityDefinition],
        meanings: &Meanings<'a>,
    ) -> Self {
        // A version without flavors has an implicit one for all machines.
        let target: Vec<Cow<'a, Capabilities>> = match &version.capability_flavors[..] {
            [] => vec![Cow::Owned(Capabilities::default())],
            flavors => flavors.iter().map(Cow::Borrowed).collect(),
        };
        let target = target.into_iter().enumerate();
        let (missing, selectable) = match entries.iter().find(|entry| entry.has_flavors()) {
            Some(entry) => {
                let listed: Vec<&Capabilities> = entry.listed_capabilities().collect();
                let known: BTreeSet<Meaning<'_>> = listed.iter().map(|flavor| meanings.of(flavor)).collect();
                let missing = target.filter(|(_, target)| !known.contains(&meanings.of(target)));
                (missing.collect(), Selectable::Flavors(listed))
            }
            None => {
                let listed: Vec<&str> = entries.iter().flat_map(|entry| entry.architectures()).collect();
                let known: HashSet<&str> = listed.iter().copied().collect();
                let missing = target.filter(|(_, target)| {
                    let mut target = architectures(target, definitions).iter();
                    target.any(|architecture| !known.contains(architecture.as_str()))
                });
                (missing.collect(), Selectable::Architectures(listed))
            }
        };
        Self { missing, selectable, definitions }
    }

    /// Positions and flavors.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Capabilities)> {
        self.missing.iter().map(|(position, flavor)| (*position, &**flavor))
    }

    pub(super) fn text(
        &self,
        flavor: &Capabilities,
        image: &str,
        version: &ProfileImageVersion,
        location: &str,
    ) -> String {
        let target = with_defaults(flavor, self.definitions);
        let selectable = match &self.selectable {
            Selectable::Architectures(listed) => format!("it has images for {}. Add one", some(listed)),
            Selectable::Flavors(listed) => match self.nearest(&target, listed) {
                None => "it has no flavors. Add one".to_owned(),
                Some(nearest) => {
                    let differences: Vec<String> = differing(&target, &nearest)
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
            "machine image version {image}@{} and capabilityFlavor {} is not defined in {location}; {selectable}, or remove \
             the flavor",
            version.version,
            Flavor(&target)
        )
    }

    /// The flavor that differs in the fewest capabilities, among the first.
    fn nearest(&self, target: &Capabilities, listed: &[&Capabilities]) -> Option<Capabilities> {
        let values: usize = self.definitions.iter().map(|definition| definition.values.len() + 1).sum();
        let most = (MOST_VALUES_COMPARED / values.max(1)).clamp(1, MOST_COMPARED);
        let listed = listed.iter().take(most).map(|flavor| with_defaults(flavor, self.definitions));
        listed.min_by_key(|listed| differing(target, listed).count())
    }
}

/// The architectures of a flavor, where the capability is defined.
pub(super) fn architectures<'a>(flavor: &'a Capabilities, definitions: &'a [CapabilityDefinition]) -> &'a [String] {
    // If a name is defined twice, the later definition wins.
    let definition = definitions.iter().rev().find(|definition| definition.name == ARCHITECTURE);
    definition.map_or(&[], |definition| flavor.values(ARCHITECTURE).unwrap_or(&definition.values))
}

/// Name and values of the capabilities in which two flavors differ.
fn differing<'a>(
    target: &'a Capabilities,
    listed: &'a Capabilities,
) -> impl Iterator<Item = (&'a str, &'a [String], &'a [String])> {
    target.0.iter().filter_map(|(name, values)| {
        let others = listed.values(name).unwrap_or_default();
        let is_same = values == others || values.iter().collect::<BTreeSet<_>>() == others.iter().collect();
        (!is_same).then_some((name.as_str(), values.as_slice(), others))
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
    fn explains_missing_flavor_with_nearest() {
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
