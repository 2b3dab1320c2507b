//! The provider config of AliCloud CloudProfiles.

use serde_json::Value;

use super::AliCloud;
use super::documents::{API_VERSION, CloudProfileConfig, ImageRegion};
use crate::provider::profile::old_format::{old_format_of_flavors, set_capabilities};
use crate::provider::profile::{ConfigType, Members, ProfileFormat, RegionImage, Repeated, SameVersion};
use wire::api::gardener::{Capabilities, CapabilityDefinition};
use wire::capabilities::{DEFAULT_ARCHITECTURE, only_architecture};

impl ProfileFormat for AliCloud {
    fn provider_type(&self) -> &'static str {
        "alicloud"
    }

    /// Without declared capabilities nothing is compared, not even architectures.
    fn old_format_definitions(&self) -> Vec<CapabilityDefinition> {
        Vec::new()
    }

    /// A machine type without an architecture runs images of every architecture, so that of the pool is not added.
    fn machine_capabilities(
        &self,
        listed: Option<&Capabilities>,
        _architecture: &str,
        _definitions: &[CapabilityDefinition],
    ) -> Capabilities {
        listed.cloned().unwrap_or_default()
    }

    fn distinguishes_architectures(&self) -> bool {
        false
    }

    fn bypasses_profile(&self, encrypted_root_volume: bool) -> Option<&'static str> {
        encrypted_root_volume.then_some("an encrypted root volume needs the encrypted copy in the account of the shoot")
    }

    fn first_entry_counts(&self) -> bool {
        true
    }

    fn passes_over_empty_references(&self) -> bool {
        true
    }

    /// The old format has no architectures, so each architecture in `spec.machineImages` gets the same images.
    fn flavors_of_old_format(&self, version: &Members, admitted: &[String]) -> Vec<Members> {
        let flavor = |architecture: &String| {
            let mut flavor = Members::new();
            flavor.insert("regions".to_owned(), version.get("regions").cloned().unwrap_or_default());
            set_capabilities(&mut flavor, &only_architecture(architecture));
            flavor
        };
        admitted.iter().map(flavor).collect()
    }

    fn old_format_of_flavors(&self, version: &str, flavors: &[(String, Members)]) -> Vec<Members> {
        let any_architecture: Vec<(String, Members)> =
            flavors.iter().map(|(_, flavor)| (DEFAULT_ARCHITECTURE.to_owned(), flavor.clone())).collect();
        let mut entries = old_format_of_flavors(version, &any_architecture);
        // Flavors for several architectures may have the same images.
        for entry in &mut entries {
            if let Some(regions) = entry.get_mut("regions").and_then(Value::as_array_mut) {
                let mut known = Vec::new();
                regions.retain(|region| {
                    !known.contains(region) && {
                        known.push(region.clone());
                        true
                    }
                });
            }
        }
        entries
    }

    fn config_type(&self) -> ConfigType {
        ConfigType::of::<CloudProfileConfig>(SameVersion::Replaced)
    }
}

/// If a version is listed several times, the first entry with an image for the region is used.
impl RegionImage for ImageRegion {
    const API_VERSION: &'static str = API_VERSION;
    const MEMBER: &'static str = "id";
    const REPEATED_VERSIONS: Repeated = Repeated::First;
    const CANDIDATES: Repeated = Repeated::First;
    const DISTINGUISHES_ARCHITECTURES: bool = false;
    const KEEPS_REPEATED_REGIONS: bool = true;

    fn region(&self) -> &str {
        &self.name
    }

    fn image(&self) -> &str {
        &self.id
    }
}
