//! AWS's half of CloudProfiles (gardener-core sections 2 and 2.8).

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::documents::{CloudProfileConfig, ImageVersion};
use super::image::{DEFAULT_ARCHITECTURE, old_format_definitions, only_architecture};
use crate::api::gardener::{Capabilities, CapabilityDefinition, NamespacedProfileSpec, ProfileSpec};
use crate::api::gotext::field::FieldErrors;
use crate::provider::document::{DocumentError, decode_document};
use crate::provider::profile::{
    EntryFlavor, ListedFlavor, ListedReference, ListedVersion, ProfileConfig, ProfileFormat, VersionEntry,
    listed_flavors, listed_versions,
};

/// CloudProfiles of type `aws`.
pub struct AwsProfiles;

impl ProfileFormat for AwsProfiles {
    fn provider_type(&self) -> &'static str {
        super::TYPE
    }

    fn old_format_definitions(&self) -> Vec<CapabilityDefinition> {
        old_format_definitions()
    }

    fn open(&self, raw: Option<&RawValue>) -> Result<Box<dyn ProfileConfig>, DocumentError> {
        let config: Option<CloudProfileConfig> = raw.map(decode_document).transpose()?;
        Ok(Box::new(config.unwrap_or_default()))
    }
}

impl ProfileConfig for CloudProfileConfig {
    fn images(&self) -> Vec<ListedVersion<'_>> {
        listed_versions(&self.machine_images)
    }

    fn flavors(&self, image: &str, version: &str, region: Option<&str>) -> Vec<ListedFlavor<'_>> {
        listed_flavors(&self.machine_images, image, version, region)
    }

    fn validate(&self, _profile: &ProfileSpec) -> FieldErrors {
        FieldErrors::default()
    }

    fn validate_namespaced(&self, _namespaced: &NamespacedProfileSpec, _parent: &ProfileSpec) -> FieldErrors {
        FieldErrors::default()
    }

    fn core_flavors(&self, _image: &str, _version: &str) -> Option<Vec<Capabilities>> {
        None
    }
}

impl VersionEntry for ImageVersion {
    fn version(&self) -> &str {
        &self.version
    }

    fn has_flavors(&self) -> bool {
        !self.capability_flavors.is_empty()
    }

    fn flavors(&self, region: Option<&str>) -> Vec<EntryFlavor<'_>> {
        let mut flavors = if self.has_flavors() { declared(self, region) } else { of_old_format(self, region) };
        flavors.retain(|flavor| !flavor.references.is_empty());
        flavors
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
