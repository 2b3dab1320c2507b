//! Versions of images in AWS's half of a CloudProfile.

use std::borrow::Cow;

use crate::api::gardener::{Capabilities, CapabilityDefinition};
use crate::api::gotext::field::{FieldErrors, FieldPath};
use crate::capabilities::{ARCHITECTURES, validate_provider_flavor};
use crate::provider::aws::documents::{FlavorRegion, ImageVersion};
use crate::provider::aws::image::{DEFAULT_ARCHITECTURE, only_architecture};
use crate::provider::profile::{EntryFlavor, ListedReference, Repeated, VersionEntry};

impl VersionEntry for ImageVersion {
    const REPEATED: Repeated = Repeated::Last;

    fn version(&self) -> &str {
        &self.version
    }

    fn listed_capabilities(&self) -> impl ExactSizeIterator<Item = &Capabilities> {
        self.capability_flavors.iter().map(|flavor| &flavor.capabilities)
    }

    fn architectures(&self) -> Vec<&str> {
        let named = self.regions.iter().map(|region| region.architecture.as_deref().unwrap_or(DEFAULT_ARCHITECTURE));
        let mut architectures: Vec<&str> = named.collect();
        architectures.sort_unstable();
        architectures.dedup();
        architectures
    }

    fn flavors(&self, region: Option<&str>) -> Vec<EntryFlavor<'_>> {
        let mut flavors = if self.has_flavors() { declared(self, region) } else { of_old_format(self, region) };
        flavors.retain(|flavor| !flavor.references.is_empty());
        flavors
    }

    fn core_flavors(entries: &[&Self]) -> Vec<Capabilities> {
        let mut architectures: Vec<&str> = entries.iter().flat_map(|entry| entry.architectures()).collect();
        architectures.sort_unstable();
        architectures.dedup();
        architectures.into_iter().map(only_architecture).collect()
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
                let detail = "must not be set as CloudProfile does not define capabilities. Use regions instead.";
                errors.forbidden(path.child("capabilityFlavors"), detail);
            }
            validate_regions(self, image, path, errors);
        } else if self.has_flavors() {
            if !self.regions.is_empty() {
                let detail = "must not be set together with capabilityFlavors. Use one format per version.";
                errors.forbidden(path.child("regions"), detail);
            }
            validate_flavors(self, image, definitions, path.child("capabilityFlavors"), errors);
        } else {
            validate_regions(self, image, path, errors);
        }
    }
}

fn validate_regions(version: &ImageVersion, image: &str, path: FieldPath<'_>, errors: &mut FieldErrors) {
    let path = path.child("regions");
    if version.regions.is_empty() {
        let detail =
            format!("must provide at least one region for machine image {image:?} and version {:?}", version.version);
        errors.required(path, detail);
    }
    for (index, region) in version.regions.iter().enumerate() {
        let path = path.index(index);
        validate_region(&region.name, &region.ami, path, errors);
        if let Some(architecture) = &region.architecture
            && !ARCHITECTURES.contains(&architecture.as_str())
        {
            errors.not_supported(path.child("architecture"), architecture, ARCHITECTURES);
        }
    }
}

fn validate_region(name: &str, ami: &str, path: FieldPath<'_>, errors: &mut FieldErrors) {
    if name.is_empty() {
        errors.required(path.child("name"), "must provide a name");
    }
    if ami.is_empty() {
        errors.required(path.child("ami"), "must provide an ami");
    }
}

fn validate_flavors(
    version: &ImageVersion,
    image: &str,
    definitions: &[CapabilityDefinition],
    path: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    for (index, flavor) in version.capability_flavors.iter().enumerate() {
        let path = path.index(index);
        validate_provider_flavor(&flavor.capabilities, definitions, path.child("capabilities"), errors);
        let regions = path.child("regions");
        if flavor.regions.is_empty() {
            let detail = format!(
                "must provide at least one region for machine image {image:?} and version {:?}",
                version.version
            );
            errors.required(regions, detail);
        }
        for (index, region) in flavor.regions.iter().enumerate() {
            let path = regions.index(index);
            let FlavorRegion { name, ami, architecture } = region;
            validate_region(name, ami, path, errors);
            if architecture.is_some() {
                let detail = "must be defined in .capabilities.architecture";
                errors.forbidden(path.child("architecture"), detail);
            }
        }
    }
}

fn declared<'a>(version: &'a ImageVersion, region: Option<&str>) -> Vec<EntryFlavor<'a>> {
    let flavors = version.capability_flavors.iter().enumerate().map(|(position, flavor)| {
        let mut references = Vec::new();
        for mapping in &flavor.regions {
            name_image(&mut references, region, &mapping.name, &mapping.ami);
        }
        EntryFlavor { position: Some(position), capabilities: Cow::Borrowed(&flavor.capabilities), references }
    });
    flavors.collect()
}

/// One flavor for each architecture.
fn of_old_format<'a>(version: &'a ImageVersion, region: Option<&str>) -> Vec<EntryFlavor<'a>> {
    let mut flavors: Vec<(&str, Vec<ListedReference<'a>>)> = Vec::new();
    for mapping in &version.regions {
        let architecture = mapping.architecture.as_deref().unwrap_or(DEFAULT_ARCHITECTURE);
        let position = flavors.iter().position(|(known, _)| *known == architecture).unwrap_or_else(|| {
            flavors.push((architecture, Vec::new()));
            flavors.len() - 1
        });
        if let Some((_, references)) = flavors.get_mut(position) {
            name_image(references, region, &mapping.name, &mapping.ami);
        }
    }
    let flavor = |(architecture, references)| EntryFlavor {
        position: None,
        capabilities: Cow::Owned(only_architecture(architecture)),
        references,
    };
    flavors.into_iter().map(flavor).collect()
}

/// Where a region is listed twice, the last entry counts.
fn name_image<'a>(references: &mut Vec<ListedReference<'a>>, wanted: Option<&str>, region: &'a str, ami: &'a str) {
    if wanted.is_some_and(|wanted| wanted != region) {
        return;
    }
    let reference = ListedReference { region: Some(region), member: "ami", value: ami };
    match references.iter_mut().find(|known| known.region == Some(region)) {
        Some(known) => *known = reference,
        None => references.push(reference),
    }
}
