//! The provider config of Azure CloudProfiles.
//!
//! * `images`: image versions, and their flavors in `spec.machineImages`;
//! * `networking`: converts between flags of the old format and capabilities;
//! * `references`: validates image references.

use serde_json::Value;

use super::Azure;
use super::cloud::AzureCloud;
use super::documents::{CloudProfileConfig, FaultDomainCount, ImageVersion};
use super::image::{ACCELERATED, BASIC, NETWORKING};
use crate::provider::profile::{
    ConfigType, ImageDocument, ImageVersions, Members, ProfileFormat, SameVersion, UncoveredRegion, name_architectures,
};
use wire::api::gardener::{Capabilities, CapabilityDefinition, NamespacedProfileSpec, ProfileSpec, Region};
use wire::api::gotext::field::{FieldErrors, FieldPath};
use wire::capabilities::{ARCHITECTURE, DEFAULT_ARCHITECTURE, architecture_definition};

mod images;
mod networking;
mod references;

impl ProfileFormat for Azure {
    fn provider_type(&self) -> &'static str {
        "azure"
    }

    fn old_format_definitions(&self) -> Vec<CapabilityDefinition> {
        let networking = CapabilityDefinition {
            name: NETWORKING.to_owned(),
            values: [ACCELERATED, BASIC].map(str::to_owned).to_vec(),
        };
        vec![architecture_definition(), networking]
    }

    fn former_names(&self, capability: &str) -> &'static [&'static str] {
        // GEP-33 calls it `network` in its examples.
        if capability == NETWORKING { &["network", "networking", "acceleratedNetworking"] } else { &[] }
    }

    fn realm(&self, regions: &[Region]) -> &'static str {
        let of_region = |region: &Region| AzureCloud::of_region(&region.name);
        regions.first().map_or(AzureCloud::Public, of_region).realm()
    }

    fn config_type(&self) -> ConfigType {
        ConfigType::of::<CloudProfileConfig>(SameVersion::Added).completed_by(name_architectures)
    }

    fn flavors_of_old_format(&self, version: &Members, _admitted: &[String]) -> Vec<Members> {
        networking::flavors_of_old_format(version)
    }

    fn old_format_of_flavors(&self, version: &str, flavors: &[(String, Members)]) -> Vec<Members> {
        networking::old_format_of_flavors(version, flavors)
    }

    fn is_silent(&self, member: &str, value: &Value) -> bool {
        match member {
            ARCHITECTURE => value == DEFAULT_ARCHITECTURE,
            "acceleratedNetworking" | "skipMarketplaceAgreement" => value == false,
            _ => false,
        }
    }

    fn machine_type_of_old_format(&self, config: &Value, machine_type: &str) -> Capabilities {
        networking::machine_type_of_old_format(config, machine_type)
    }

    fn set_machine_types_of_old_format(&self, config: &mut Members, machine_types: &[(&str, &Capabilities)]) {
        networking::set_machine_types_of_old_format(config, machine_types);
    }
}

impl ImageDocument for CloudProfileConfig {
    type Version = ImageVersion;

    const MAPPING_AFTER_ERRORS: bool = false;
    const SKIPS_VERSIONS_OF_PARENT: bool = false;
    const UNMAPPED_VERSIONS_OF_PARENT: bool = true;

    fn machine_images(&self) -> &[ImageVersions<ImageVersion>] {
        &self.machine_images
    }

    fn validate_settings(&self, path: FieldPath<'_>, errors: &mut FieldErrors) {
        validate_domain_counts(&self.count_fault_domains, path.child("countFaultDomains"), errors);
        validate_domain_counts(&self.count_update_domains, path.child("countUpdateDomains"), errors);
    }

    /// Machines in regions without zones are placed in scale sets, which require a number of fault domains.
    fn uncovered_regions<'a>(&self, regions: &'a [Region]) -> Vec<UncoveredRegion<'a>> {
        let is_counted = |region: &Region| self.count_fault_domains.iter().any(|count| count.region == region.name);
        let uncovered = regions.iter().filter(|region| region.zones.is_empty() && !is_counted(region));
        let regions = uncovered.map(|region| UncoveredRegion {
            region: &region.name,
            member: "countFaultDomains",
            consequence: "it has no zones, so its machines need a scale set with a number of fault domains; pools there fail",
        });
        regions.collect()
    }

    fn validate_namespaced_settings(
        &self,
        namespaced: &NamespacedProfileSpec,
        parent: &ProfileSpec,
        path: FieldPath<'_>,
        errors: &mut FieldErrors,
    ) {
        let forbidden = [
            ("cloudConfiguration", "cloud configuration", self.cloud_configuration.is_some()),
            ("countFaultDomains", "count fault domains", !self.count_fault_domains.is_empty()),
            ("countUpdateDomains", "count update domains", !self.count_update_domains.is_empty()),
        ];
        for (member, words, is_set) in forbidden {
            if is_set {
                let detail = format!("{words} is not allowed in a NamespacedCloudProfile providerConfig");
                errors.forbidden(path.child(member), detail);
            }
        }
        let path = path.child("machineTypes");
        for (index, machine_type) in self.machine_types.iter().enumerate() {
            let name = &machine_type.name;
            if parent.machine_types.iter().any(|known| known.name == *name) {
                let detail = format!("machine type {name} is already defined in the parent CloudProfile");
                errors.forbidden(path.index(index), detail);
            } else if !namespaced.machine_types.iter().any(|known| known.name == *name) {
                let detail =
                    format!("machine type {name} is not defined in the NamespacedCloudProfile .spec.machineTypes");
                errors.required(path.index(index), detail);
            }
        }
    }
}

fn validate_domain_counts(counts: &[FaultDomainCount], path: FieldPath<'_>, errors: &mut FieldErrors) {
    if counts.is_empty() {
        errors.required(path, "must provide at least one domain count");
    }
    for (index, count) in counts.iter().enumerate() {
        let path = path.index(index);
        if count.region.is_empty() {
            errors.required(path.child("region"), "must provide a region");
        }
        if count.count < 0 {
            errors.invalid(path.child("count"), count.count, "count must not be negative");
        }
    }
}
