//! Defaults of a CloudProfile, and the synchronisation of the older architecture fields with the capability
//! (docs/contract.md#defaults-of-a-cloudprofile).

use wire::api::gardener::{Capabilities, CapabilityDefinition, ImageContainerRuntime, ProfileMachineType, ProfileSpec};
use wire::capabilities::{
    ARCHITECTURE, DEFAULT_ARCHITECTURE, architectures_of_flavors, defined_architectures, flavors_with_defaults,
    only_architecture,
};

/// Sets the defaults that the API server sets before it validates a CloudProfile.
pub fn apply_defaults(spec: &mut ProfileSpec) {
    let old_format = spec.machine_capabilities.is_empty();
    for image in &mut spec.machine_images {
        image.update_strategy.get_or_insert_with(|| "major".to_owned());
        for version in &mut image.versions {
            if version.cri.is_empty() {
                let name = "containerd".to_owned();
                version.cri.push(ImageContainerRuntime { name, ..ImageContainerRuntime::default() });
            }
            if old_format && version.architectures.is_empty() {
                version.architectures.push(DEFAULT_ARCHITECTURE.to_owned());
            }
        }
    }
    for machine_type in &mut spec.machine_types {
        machine_type.usable.get_or_insert(true);
        if old_format {
            machine_type.architecture.get_or_insert_with(|| DEFAULT_ARCHITECTURE.to_owned());
        }
    }
    for volume_type in &mut spec.volume_types {
        volume_type.usable.get_or_insert(true);
    }
}

/// Synchronises capabilities and the older architecture fields, as the API server does when a profile is written.
/// `had_definitions` is whether the profile defined capabilities before.
///
/// A profile that starts to define several architectures gets flavors and capabilities from the older fields. A profile
/// that no longer defines capabilities loses them. Otherwise, empty older fields are filled, and others never change.
pub fn sync_architectures(spec: &mut ProfileSpec, had_definitions: bool) {
    let ProfileSpec { machine_capabilities: definitions, machine_images, machine_types, .. } = spec;
    let versions = machine_images.iter_mut().flat_map(|image| &mut image.versions);
    if definitions.is_empty() {
        if had_definitions {
            versions.for_each(|version| version.capability_flavors.clear());
            machine_types.iter_mut().for_each(|machine_type| machine_type.capabilities = Capabilities::default());
        }
        return;
    }
    let begins = !had_definitions && defined_architectures(definitions).len() > 1;
    for version in versions {
        if begins && version.capability_flavors.is_empty() {
            version.capability_flavors = match &version.architectures[..] {
                [] => vec![only_architecture(DEFAULT_ARCHITECTURE)],
                architectures => architectures.iter().map(|architecture| only_architecture(architecture)).collect(),
            };
        }
        if version.architectures.is_empty() {
            let flavors = flavors_with_defaults(&version.capability_flavors, definitions);
            version.architectures = sorted(architectures_of_flavors(&flavors));
        }
    }
    for machine_type in machine_types {
        if begins && machine_type.capabilities.is_empty() {
            machine_type.capabilities =
                only_architecture(machine_type.architecture.as_deref().unwrap_or(DEFAULT_ARCHITECTURE));
        }
        fill_architecture(machine_type, definitions);
    }
}

/// Sets the older field of a machine type if its capability has exactly one value.
fn fill_architecture(machine_type: &mut ProfileMachineType, definitions: &[CapabilityDefinition]) {
    if machine_type.architecture.is_some() {
        return;
    }
    let listed = machine_type.capabilities.values(ARCHITECTURE).unwrap_or_else(|| defined_architectures(definitions));
    if let [only] = listed {
        machine_type.architecture = Some(only.clone());
    }
}

/// Sorts architectures, because their order in Gardener is undefined.
pub(super) fn sorted(architectures: Vec<&str>) -> Vec<String> {
    let mut sorted: Vec<String> = architectures.into_iter().map(str::to_owned).collect();
    sorted.sort();
    sorted
}
