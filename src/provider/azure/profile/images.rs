//! Versions of images in Azure's half of a CloudProfile.

use super::references::validate_references;
use crate::api::gardener::{Capabilities, CapabilityDefinition};
use crate::api::gotext::field::{FieldErrors, FieldPath};
use crate::capabilities::{ARCHITECTURE, ARCHITECTURES, DEFAULT_ARCHITECTURE, validate_provider_flavor};
use crate::provider::azure::documents::{ImageReferences, ImageVersion};
use crate::provider::azure::image::{BASIC, NETWORKING, candidates_of_version};
use crate::provider::profile::{EntryFlavor, ListedReference, Repeated, VersionEntry};

impl VersionEntry for ImageVersion {
    const REPEATED: Repeated = Repeated::All;

    fn version(&self) -> &str {
        &self.version
    }

    fn listed_capabilities(&self) -> impl ExactSizeIterator<Item = &Capabilities> {
        self.capability_flavors.iter().map(|flavor| &flavor.capabilities)
    }

    fn architectures(&self) -> Vec<&str> {
        vec![self.architecture.as_deref().unwrap_or(DEFAULT_ARCHITECTURE)]
    }

    /// Images of Azure have the same name in every region.
    fn flavors(&self, _region: Option<&str>) -> Vec<EntryFlavor<'_>> {
        let flavors = candidates_of_version(self).into_iter().enumerate().map(|(position, candidate)| EntryFlavor {
            position: self.has_flavors().then_some(position),
            capabilities: candidate.capabilities,
            references: reference(candidate.references).into_iter().collect(),
        });
        flavors.collect()
    }

    /// Architectures in their order, the accelerated flavor of each first. Unlike for workers, what is accelerated names no
    /// networking at all, which means every value (gardener-core section 2.3).
    fn core_flavors(entries: &[&Self]) -> Vec<Capabilities> {
        let with_image = entries.iter().filter(|entry| entry.references().preferred().is_some());
        let mut combinations: Vec<(&str, bool)> = with_image
            .map(|entry| {
                let architecture = entry.architecture.as_deref().unwrap_or(DEFAULT_ARCHITECTURE);
                (architecture, entry.accelerated_networking != Some(true))
            })
            .collect();
        combinations.sort_unstable();
        combinations.dedup();
        let flavor = |(architecture, is_basic)| {
            let networking = if is_basic { Some((NETWORKING, [BASIC])) } else { None };
            Capabilities::from_iter([(ARCHITECTURE, [architecture])].into_iter().chain(networking))
        };
        combinations.into_iter().map(flavor).collect()
    }

    fn validate(
        &self,
        image: &str,
        definitions: &[CapabilityDefinition],
        path: FieldPath<'_>,
        errors: &mut FieldErrors,
    ) {
        if definitions.is_empty() {
            if self.has_flavors() {
                let detail = "capabilityFlavors must not be set when cloudprofile is not using capabilities";
                errors.forbidden(path.child("capabilityFlavors"), detail);
            }
            validate_old_format(self, path, errors);
            return;
        }
        let has_image = self.references().preferred().is_some();
        match (self.has_flavors(), has_image) {
            (true, _) => validate_flavors(self, has_image, definitions, path, errors),
            (false, true) => validate_old_format(self, path, errors),
            (false, false) => {
                let detail = format!(
                    "must provide either image or capabilityFlavors for machine image {image}@{}",
                    self.version
                );
                errors.required(path.child("image"), detail);
            }
        }
    }
}

fn reference(references: ImageReferences<'_>) -> Option<ListedReference<'_>> {
    let preferred = references.preferred()?;
    Some(ListedReference { region: None, member: preferred.member(), value: preferred.value() })
}

fn validate_flavors(
    version: &ImageVersion,
    has_image: bool,
    definitions: &[CapabilityDefinition],
    path: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let old_format = [
        ("image", has_image),
        ("architecture", version.architecture.is_some()),
        ("acceleratedNetworking", version.accelerated_networking.is_some()),
    ];
    if old_format.iter().any(|(_, is_set)| *is_set) {
        for (member, _) in old_format.into_iter().filter(|(_, is_set)| *is_set) {
            let detail = "must not be set together with capabilityFlavors. Use one format per version.";
            errors.forbidden(path.child(member), detail);
        }
        return;
    }
    let path = path.child("capabilityFlavors");
    for (index, flavor) in version.capability_flavors.iter().enumerate() {
        let path = path.index(index);
        validate_provider_flavor(&flavor.capabilities, definitions, path.child("capabilities"), errors);
        validate_references(flavor.references(), path, errors);
    }
}

fn validate_old_format(version: &ImageVersion, path: FieldPath<'_>, errors: &mut FieldErrors) {
    validate_references(version.references(), path, errors);
    if let Some(architecture) = &version.architecture
        && !ARCHITECTURES.contains(&architecture.as_str())
    {
        errors.not_supported(path.child("architecture"), architecture, ARCHITECTURES);
    }
}
