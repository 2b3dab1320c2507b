//! CloudProfiles of unknown providers, whose provider config is not decoded.

use super::{
    ConfigType, GenericFlavors, ListedFlavor, ListedVersion, ProfileConfig, ProfileFormat, RepeatedFlavor,
    UncoveredRegion,
};
use wire::api::gardener::{CapabilityDefinition, NamespacedProfileSpec, ProfileImage, ProfileSpec, Region, ShootPool};
use wire::api::gotext::field::{FieldErrors, FieldPath};

/// The format of an unknown provider.
pub struct UnknownFormat;

impl ProfileFormat for UnknownFormat {
    fn provider_type(&self) -> &'static str {
        ""
    }

    fn config_type(&self) -> ConfigType {
        ConfigType::unknown()
    }
}

/// A document of an unknown provider.
pub struct UnknownConfig;

impl ProfileConfig for UnknownConfig {
    fn images(&self) -> Vec<ListedVersion<'_>> {
        Vec::new()
    }

    fn flavors(&self, _: [&str; 2], _: Option<&str>, _: &[CapabilityDefinition]) -> Vec<ListedFlavor<'_>> {
        Vec::new()
    }

    fn validate_into(&self, _: &ProfileSpec, _: &mut FieldErrors) {}

    fn validate_namespaced_into(&self, _: &NamespacedProfileSpec, _: &ProfileSpec, _: &mut FieldErrors) {}

    fn validate_pool(&self, _: &ShootPool, _: FieldPath<'_>, _: &mut FieldErrors) {}

    fn core_flavors(&self, _: &[ProfileImage]) -> Vec<GenericFlavors<'_>> {
        Vec::new()
    }

    fn uncovered_regions<'a>(&self, _: &'a [Region]) -> Vec<UncoveredRegion<'a>> {
        Vec::new()
    }

    fn repeated_flavors(&self, _: &[CapabilityDefinition]) -> Vec<RepeatedFlavor<'_>> {
        Vec::new()
    }
}
