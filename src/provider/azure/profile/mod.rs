//! Azure's half of CloudProfiles (gardener-core section 2).
//!
//! * `validation`: of a CloudProfile; `namespaced`: of a NamespacedCloudProfile;
//! * `mapping`: whether every version of core's half has its images.

use serde_json::value::RawValue;

use super::documents::{CloudProfileConfig, ImageReferences, ImageVersion};
use super::image::{candidates_of_version, old_format_definitions};
use crate::api::gardener::{Capabilities, CapabilityDefinition, NamespacedProfileSpec, ProfileSpec};
use crate::api::gotext::field::FieldErrors;
use crate::provider::document::{DocumentError, decode_document};
use crate::provider::profile::{
    EntryFlavor, ListedFlavor, ListedReference, ListedVersion, ProfileConfig, ProfileFormat, VersionEntry,
    listed_flavors, listed_versions,
};

/// CloudProfiles of type `azure`.
pub struct AzureProfiles;

impl ProfileFormat for AzureProfiles {
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

    /// Images of Azure have the same name in every region.
    fn flavors(&self, _region: Option<&str>) -> Vec<EntryFlavor<'_>> {
        let flavors = candidates_of_version(self).into_iter().enumerate().map(|(position, candidate)| EntryFlavor {
            position: self.has_flavors().then_some(position),
            capabilities: candidate.capabilities,
            references: reference(candidate.references).into_iter().collect(),
        });
        flavors.collect()
    }
}

fn reference(references: ImageReferences<'_>) -> Option<ListedReference<'_>> {
    let preferred = references.preferred()?;
    Some(ListedReference { region: None, member: preferred.member(), value: preferred.value() })
}
