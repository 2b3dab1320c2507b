//! The provider config of OpenStack CloudProfiles.

use serde_json::Value;

use super::documents::{API_VERSION, CloudProfileConfig, ImageRegion, ImageVersion};
use super::{OpenStack, settings, shoot_pools};
use crate::provider::profile::old_format::old_format_of_flavors;
use crate::provider::profile::{
    ArchitectureOf, ConfigType, EntryFlavor, ImageDocument, ImageVersions, ListedReference, Members, ProfileFormat,
    RegionImage, Repeated, SameVersion, VersionEntry, architectures, flavors_by_architecture, neither_format,
    references, validate_regions,
};
use wire::api::gardener::{Capabilities, CapabilityDefinition, ShootPool};
use wire::api::gotext::field::{FieldErrors, FieldPath};
use wire::capabilities::{ARCHITECTURE, DEFAULT_ARCHITECTURE, complete_machine_type, only_architecture};

impl ProfileFormat for OpenStack {
    fn provider_type(&self) -> &'static str {
        "openstack"
    }

    /// The document lists the allowed server group policies.
    fn compares_pools(&self) -> bool {
        true
    }

    /// Only regions have an architecture. An image with only a name is for `amd64`, so flavors of other architectures
    /// without regions are dropped.
    fn old_format_of_flavors(&self, version: &str, flavors: &[(String, Members)]) -> Vec<Members> {
        let has_regions =
            |flavor: &Members| flavor.get("regions").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
        let can_be_written =
            |(architecture, flavor): &&(String, Members)| architecture == DEFAULT_ARCHITECTURE || has_regions(flavor);
        let flavors: Vec<(String, Members)> = flavors.iter().filter(can_be_written).cloned().collect();
        old_format_of_flavors(version, &flavors)
    }

    /// An explicitly empty architecture fits no image.
    fn machine_capabilities(
        &self,
        listed: Option<&Capabilities>,
        architecture: &str,
        definitions: &[CapabilityDefinition],
    ) -> Capabilities {
        let mut capabilities = complete_machine_type(listed, architecture, definitions);
        let is_listed = listed.is_some_and(|listed| listed.values(ARCHITECTURE).is_some());
        let defined = definitions.iter().find(|definition| definition.name == ARCHITECTURE);
        if architecture.is_empty() && !is_listed && defined.is_none_or(|defined| defined.values.len() != 1) {
            capabilities.0.insert(ARCHITECTURE.to_owned(), vec![String::new()]);
        }
        capabilities
    }

    fn config_type(&self) -> ConfigType {
        ConfigType::of::<CloudProfileConfig>(SameVersion::Replaced)
    }
}

impl ImageDocument for CloudProfileConfig {
    type Version = ImageVersion;

    fn machine_images(&self) -> &[ImageVersions<ImageVersion>] {
        &self.machine_images
    }

    fn validate_settings(&self, path: FieldPath<'_>, errors: &mut FieldErrors) {
        settings::validate(self, path, errors);
    }

    fn validate_pool(&self, pool: &ShootPool, path: FieldPath<'_>, errors: &mut FieldErrors) {
        shoot_pools::validate_policy(pool, &self.server_group_policies, path, errors);
    }
}

impl VersionEntry for ImageVersion {
    const REPEATED: Repeated = Repeated::All;

    fn version(&self) -> &str {
        &self.version
    }

    fn listed_capabilities(&self) -> impl ExactSizeIterator<Item = &Capabilities> {
        self.capability_flavors.iter().map(|flavor| &flavor.capabilities)
    }

    /// An image with only a name is for `amd64`.
    fn architectures(&self) -> Vec<&str> {
        if self.regions.is_empty() { vec![DEFAULT_ARCHITECTURE] } else { architectures(&self.regions) }
    }

    fn flavors(&self, region: Option<&str>) -> Vec<EntryFlavor<'_>> {
        let mut flavors = if self.has_flavors() {
            EntryFlavor::listed(self.capability_flavors.iter().map(|flavor| {
                let references = with_global(references(&flavor.regions, region), &flavor.image, region);
                (&flavor.capabilities, references)
            }))
        } else {
            self.flavors_of_old_format(region)
        };
        flavors.retain(|flavor| !flavor.references.is_empty());
        flavors
    }

    fn old_format_members(&self) -> Vec<&'static str> {
        let members = [("image", !self.image.is_empty()), ("regions", !self.regions.is_empty())];
        members.into_iter().filter_map(|(member, is_set)| is_set.then_some(member)).collect()
    }

    fn validate_old_format(&self, image: &str, has_choice: bool, path: FieldPath<'_>, errors: &mut FieldErrors) {
        if self.old_format_members().is_empty() {
            let detail = if has_choice { neither_format(image, &self.version) } else { no_image(image, &self.version) };
            errors.required(path.child("image"), detail);
        }
        validate_regions(&self.regions, ArchitectureOf::Entry, path.child("regions"), errors);
    }

    fn validate_flavor(&self, index: usize, image: &str, path: FieldPath<'_>, errors: &mut FieldErrors) {
        let Some(flavor) = self.capability_flavors.get(index) else { return };
        if flavor.image.is_empty() && flavor.regions.is_empty() {
            errors.required(path.child("image"), no_image(image, &self.version));
        }
        validate_regions(&flavor.regions, ArchitectureOf::Flavor, path.child("regions"), errors);
    }
}

impl ImageVersion {
    /// One flavor per architecture of the regions, each with the name for all regions as a fallback.
    fn flavors_of_old_format(&self, region: Option<&str>) -> Vec<EntryFlavor<'_>> {
        let mut flavors = flavors_by_architecture(&self.regions, region);
        if flavors.is_empty() {
            flavors.push(EntryFlavor::old_format(only_architecture(DEFAULT_ARCHITECTURE), Vec::new()));
        }
        for flavor in &mut flavors {
            flavor.references = with_global(std::mem::take(&mut flavor.references), &self.image, region);
        }
        flavors
    }
}

/// Adds the name for all regions if the region has no image or an empty id. Without a region, it is added last.
fn with_global<'a>(
    mut references: Vec<ListedReference<'a>>,
    image: &'a str,
    region: Option<&str>,
) -> Vec<ListedReference<'a>> {
    if image.is_empty() {
        return references;
    }
    for reference in references.iter_mut().filter(|reference| reference.value.is_empty()) {
        *reference = ListedReference { region: reference.region, member: "image", value: image };
    }
    if region.is_none() || references.is_empty() {
        references.push(ListedReference { region: None, member: "image", value: image });
    }
    references
}

impl RegionImage for ImageRegion {
    const API_VERSION: &'static str = API_VERSION;
    const MEMBER: &'static str = "id";
    const REPEATED_VERSIONS: Repeated = Repeated::All;

    fn region(&self) -> &str {
        &self.name
    }

    fn image(&self) -> &str {
        &self.id
    }

    fn architecture(&self) -> Option<&str> {
        self.architecture.as_deref()
    }
}

fn no_image(image: &str, version: &str) -> String {
    format!("must provide an image or at least one region for machine image {image}@{version}")
}
