//! The capability `architecture`, and the older fields that it supersedes.

use super::defaults::{ARCHITECTURE, values_of};
use crate::api::gardener::{Capabilities, CapabilityDefinition, ProfileImageVersion, ProfileMachineType};

/// The architectures that a profile defines; empty for profiles in the old format.
///
/// If a capability is defined twice, the later definition wins.
#[must_use]
pub fn defined_architectures(definitions: &[CapabilityDefinition]) -> &[String] {
    definitions.iter().rfind(|definition| definition.name == ARCHITECTURE).map_or(&[], |definition| &definition.values)
}

/// The architecture of a machine type: its capability, the only architecture of the profile, or the older field.
#[must_use]
pub fn architecture_of_machine_type<'a>(
    machine_type: &'a ProfileMachineType,
    definitions: &'a [CapabilityDefinition],
) -> Option<&'a str> {
    let definition = definitions.iter().rfind(|definition| definition.name == ARCHITECTURE);
    match definition.map(|definition| values_of(&machine_type.capabilities, definition)) {
        Some([only]) => Some(only),
        _ => machine_type.architecture.as_deref().filter(|field| !field.is_empty()),
    }
}

/// The distinct architectures of an image version: those of its flavors, those of the profile if it has no flavors, or
/// those of the older field.
#[must_use]
pub fn architectures_of_version<'a>(
    version: &'a ProfileImageVersion,
    definitions: &'a [CapabilityDefinition],
) -> Vec<&'a str> {
    let named = match &version.capability_flavors[..] {
        [] => once_each(defined_architectures(definitions)),
        flavors => architectures_of_flavors(flavors),
    };
    if named.is_empty() { once_each(&version.architectures) } else { named }
}

/// The distinct architectures of flavors.
#[must_use]
pub fn architectures_of_flavors(flavors: &[Capabilities]) -> Vec<&str> {
    once_each(flavors.iter().filter_map(|flavor| flavor.values(ARCHITECTURE)).flatten())
}

fn once_each<'a>(values: impl IntoIterator<Item = &'a String>) -> Vec<&'a str> {
    let mut once: Vec<&str> = Vec::new();
    for value in values {
        if !once.contains(&value.as_str()) {
            once.push(value);
        }
    }
    once
}
