//! A CloudProfile: the document, its typed halves, and the offer computed from both.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::selectable::{Defect, ResolvedProfile, SelectableFlavor, SelectableType, SelectableVersion};
use crate::cloud_profile::architecture_fields::apply_defaults;
use decisions::provider::Providers;
use decisions::provider::document::DocumentError;
use decisions::provider::explanation::ImageName;
use decisions::provider::profile::{ListedFlavor, ListedReference, Location, ProfileConfig, ProfileFormat};
use wire::api::gardener::{Capabilities, CapabilityDefinition, ProfileImageVersion, ProfileMachineType, ProfileSpec};
use wire::api::gotext::json::{DecodeError, decode_lenient, to_go_json};
use wire::capabilities::{
    ARCHITECTURE, Classification, DEFAULT_ARCHITECTURE, Life, architecture_of_machine_type, architectures_of_version,
};

/// A decoded CloudProfile.
pub struct Profile {
    /// The full object.
    pub document: Value,
    /// Its `spec`.
    pub spec: ProfileSpec,
    /// The format of the provider's half.
    pub format: &'static dyn ProfileFormat,
    /// The provider's half, `spec.providerConfig`.
    pub config: Box<dyn ProfileConfig>,
}

/// Why a CloudProfile can't be read.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// A field in `spec` is wrong.
    #[error("spec: {0}")]
    Spec(DecodeError),
    /// No known provider has this type.
    #[error("spec.type: no provider of type {provider_type:?} is known here")]
    Type {
        /// The value of `spec.type`.
        provider_type: String,
    },
    /// A field in the provider's half is wrong.
    #[error("spec.providerConfig: {0}")]
    ProviderConfig(DocumentError),
}

// Not added as `#[source]`, because the message already includes them.
impl From<DecodeError> for ProfileError {
    fn from(error: DecodeError) -> Self {
        Self::Spec(error)
    }
}

impl From<DocumentError> for ProfileError {
    fn from(error: DocumentError) -> Self {
        Self::ProviderConfig(error)
    }
}

impl Profile {
    /// Reads the document of a CloudProfile of one of the providers.
    ///
    /// # Errors
    /// If a field is wrong, or no provider has its type.
    pub fn read(document: Value, providers: Providers) -> Result<Self, ProfileError> {
        let spec = spec_of(&document)?;
        let format = providers
            .profile_format(&spec.provider_type)
            .ok_or_else(|| ProfileError::Type { provider_type: spec.provider_type.clone() })?;
        let config = format.open(spec.provider_config.as_deref())?;
        Ok(Self { document, spec, format, config })
    }

    /// Reads the profile as the API server would store it, with the flavors that the provider's webhook fills in.
    ///
    /// # Errors
    /// The same as for [`Profile::read`].
    pub fn read_completed(document: Value, providers: Providers) -> Result<Self, ProfileError> {
        Ok(Self::read(document, providers)?.completed())
    }

    /// The profile as the API server would store it, with the flavors that the provider's webhook fills in.
    pub(super) fn completed(mut self) -> Self {
        apply_defaults(&mut self.spec);
        self.fill_in_flavors();
        self
    }

    /// `metadata.name`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.document["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// The effective capabilities: those of the profile, or those that the old format implies.
    #[must_use]
    pub fn definitions(&self) -> Vec<CapabilityDefinition> {
        self.format.definitions(&self.spec.machine_capabilities).into_owned()
    }

    /// Sets the flavors of versions without any from the provider config, as the provider's webhook does.
    fn fill_in_flavors(&mut self) {
        set_flavors(&mut self.spec, &*self.config, |version| version.capability_flavors.is_empty());
    }

    /// Core's half with all flavors replaced by those of the provider config, because that is what the provider's
    /// webhook stores.
    pub(super) fn spec_by_webhook(&self) -> ProfileSpec {
        let mut spec = self.spec.clone();
        set_flavors(&mut spec, &*self.config, |_| true);
        spec
    }

    /// The offer of the profile at the time `now`.
    #[must_use]
    pub fn resolved_profile(&self, now: Timestamp) -> ResolvedProfile {
        let definitions = self.definitions();
        let regions: Vec<String> = self.spec.regions.iter().map(|region| region.name.clone()).collect();
        let types = self.spec.machine_types.iter().enumerate();
        let mut images = Vec::new();
        for (position, image) in self.spec.machine_images.iter().enumerate() {
            for (version_position, version) in image.versions.iter().enumerate() {
                let life = Life::from(version);
                images.push(SelectableVersion {
                    image: image.name.clone(),
                    version: version.version.clone(),
                    path: format!("spec.machineImages[{position}].versions[{version_position}]"),
                    classification: life.at(now),
                    expires: life.expires(),
                    architectures: admitted_architectures(version, &self.spec.machine_capabilities),
                    admitted: version.capability_flavors.clone(),
                    flavors: self.flavors(&image.name, &version.version, &regions),
                });
            }
        }
        ResolvedProfile {
            name: self.name().to_owned(),
            provider: self.spec.provider_type.clone(),
            machine_types: types
                .map(|(position, machine_type)| self.selectable_type(position, machine_type, &definitions))
                .collect(),
            effects: self.effects(),
            declares_capabilities: !self.spec.machine_capabilities.is_empty(),
            definitions,
            regions,
            images,
        }
    }

    /// Versions with flavors that only the provider's half lists, as they would be offered if core's half listed them,
    /// too.
    pub(super) fn unlisted(&self, resolved_profile: &ResolvedProfile) -> Vec<SelectableVersion> {
        let mut known: BTreeSet<(&str, &str)> =
            resolved_profile.images.iter().map(|known| (known.image.as_str(), known.version.as_str())).collect();
        let mut unlisted = Vec::new();
        for listed in self.config.images().into_iter().filter(|listed| !listed.old_format) {
            if known.insert((listed.image, listed.version)) {
                unlisted.push(SelectableVersion {
                    image: listed.image.to_owned(),
                    version: listed.version.to_owned(),
                    path: config_path(listed.location),
                    classification: Classification::default(),
                    expires: None,
                    architectures: resolved_profile.architectures_of(listed.image, listed.version),
                    admitted: Vec::new(),
                    flavors: self.flavors(listed.image, listed.version, &resolved_profile.regions),
                });
            }
        }
        unlisted
    }

    fn defect(&self, flavor: &ListedFlavor<'_>) -> Option<Defect> {
        if flavor.references.is_empty() {
            return Some(Defect::NoImage);
        }
        let named = flavor.capabilities.values(ARCHITECTURE).is_some_and(|values| !values.is_empty());
        (self.format.needs_architecture() && !named).then_some(Defect::NoArchitecture)
    }

    /// Capabilities of the old format other than the architecture. They affect the machine itself.
    fn effects(&self) -> Vec<String> {
        let definitions = self.format.old_format_definitions().into_iter();
        definitions.map(|definition| definition.name).filter(|name| name != ARCHITECTURE).collect()
    }

    fn selectable_type(
        &self,
        position: usize,
        machine_type: &ProfileMachineType,
        definitions: &[CapabilityDefinition],
    ) -> SelectableType {
        let architecture = architecture_of_machine_type(machine_type, definitions).unwrap_or(DEFAULT_ARCHITECTURE);
        let of_old_format = if self.spec.machine_capabilities.is_empty() {
            let config = self.document.pointer("/spec/providerConfig").unwrap_or(&Value::Null);
            self.format.machine_type_of_old_format(config, &machine_type.name)
        } else {
            Capabilities::default()
        };
        SelectableType {
            name: machine_type.name.clone(),
            path: format!("spec.machineTypes[{position}]"),
            architecture: architecture.to_owned(),
            capabilities: self.format.machine_capabilities(Some(&machine_type.capabilities), architecture, definitions),
            of_old_format,
            usable: machine_type.usable.unwrap_or(true),
        }
    }

    /// The flavors of a version as a Worker uses them. If images are regional, each region is resolved separately,
    /// because a profile may list an image in several entries, of which a region uses the first that has an image for
    /// it.
    fn flavors(&self, image: &str, version: &str, regions: &[String]) -> Vec<SelectableFlavor> {
        let declared = &self.spec.machine_capabilities;
        let in_any = self.config.flavors([image, version], None, declared);
        let is_regional = in_any.iter().flat_map(|flavor| &flavor.references).any(|name| name.region.is_some());
        if !is_regional {
            let flavors = in_any.into_iter().map(|flavor| SelectableFlavor {
                path: config_path(flavor.location),
                defect: self.defect(&flavor),
                anywhere: flavor.references.first().map(image_name),
                by_region: BTreeMap::new(),
                capabilities: flavor.capabilities.into_owned(),
            });
            return flavors.collect();
        }
        let definitions = self.definitions();
        let mut found: Vec<(Location, SelectableFlavor)> = Vec::new();
        for region in regions {
            for flavor in self.config.flavors([image, version], Some(region), declared) {
                let Some(reference) = flavor.in_region(&definitions) else { continue };
                let same = |(location, known): &(Location, SelectableFlavor)| {
                    *location == flavor.location && known.capabilities == *flavor.capabilities
                };
                let position = found.iter().position(same).unwrap_or_else(|| {
                    let path = config_path(flavor.location);
                    let defect = self.defect(&flavor);
                    let capabilities = flavor.capabilities.clone().into_owned();
                    found.push((
                        flavor.location,
                        SelectableFlavor { path, capabilities, defect, ..SelectableFlavor::default() },
                    ));
                    found.len() - 1
                });
                if let Some((_, known)) = found.get_mut(position) {
                    known.by_region.insert(region.clone(), image_name(reference));
                }
            }
        }
        // Regions may have different flavors. They are sorted in the order of the document; the sort is stable within
        // an old-format version.
        found.sort_by_key(|(location, _)| *location);
        found.into_iter().map(|(_, flavor)| flavor).collect()
    }
}

impl fmt::Debug for Profile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Profile").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// Decodes `spec` of a CloudProfile from the text that an API server would send for it.
///
/// # Errors
/// If a field is wrong; the error has the path of the first one.
pub fn spec_of(document: &Value) -> Result<ProfileSpec, DecodeError> {
    decode_lenient(&to_go_json(document.get("spec").unwrap_or(&Value::Null)))
}

/// The path of a position in `spec.providerConfig`.
pub(super) fn config_path(location: Location) -> String {
    format!("spec.providerConfig.{location}")
}

/// Sets the flavors of versions from the provider config if `is_set` selects the version.
fn set_flavors(spec: &mut ProfileSpec, config: &dyn ProfileConfig, is_set: fn(&ProfileImageVersion) -> bool) {
    if spec.machine_capabilities.is_empty() {
        return;
    }
    for listed in config.core_flavors(&spec.machine_images.clone()) {
        let image = spec.machine_images.get_mut(listed.image);
        let version = image.and_then(|image| image.versions.get_mut(listed.version));
        if let Some(version) = version.filter(|version| is_set(version)) {
            version.capability_flavors = listed.flavors.into_iter().map(Cow::into_owned).collect();
        }
    }
}

fn image_name(reference: &ListedReference<'_>) -> ImageName {
    ImageName { member: reference.member.to_owned(), value: reference.value.to_owned() }
}

/// The architectures for which Gardener admits a version; `amd64` if it lists none.
fn admitted_architectures(version: &ProfileImageVersion, declared: &[CapabilityDefinition]) -> Vec<String> {
    let named = architectures_of_version(version, declared);
    if named.is_empty() {
        vec![DEFAULT_ARCHITECTURE.to_owned()]
    } else {
        named.into_iter().map(str::to_owned).collect()
    }
}
