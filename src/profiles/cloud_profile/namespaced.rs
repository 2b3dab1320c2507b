//! Merges a NamespacedCloudProfile with its parent (docs/contract.md#namespacedcloudprofiles).

use super::architecture_fields::sorted;
use wire::api::gardener::{
    CapabilityDefinition, KubernetesSettings, NamespacedProfileSpec, ProfileImage, ProfileImageVersion, ProfileSpec,
};
use wire::capabilities::{
    ARCHITECTURE, DEFAULT_ARCHITECTURE, architecture_of_machine_type, architectures_of_flavors,
    architectures_of_version, only_architecture,
};

/// Converts images and machine types of a NamespacedCloudProfile to the format of its parent: with capabilities if the
/// parent defines any, otherwise with architectures.
pub fn to_format_of_parent(namespaced: &mut NamespacedProfileSpec, definitions: &[CapabilityDefinition]) {
    for version in namespaced.machine_images.iter_mut().flat_map(|image| &mut image.versions) {
        if definitions.is_empty() {
            if version.architectures.is_empty() {
                version.architectures = sorted(architectures_of_flavors(&version.capability_flavors));
            }
            version.capability_flavors.clear();
        } else if version.capability_flavors.is_empty() {
            let flavors = version.architectures.iter().map(|architecture| only_architecture(architecture));
            version.capability_flavors = flavors.collect();
        }
    }
    for machine_type in &mut namespaced.machine_types {
        if definitions.is_empty() {
            let capability = machine_type.capabilities.0.remove(ARCHITECTURE).unwrap_or_default();
            if machine_type.architecture.is_none() {
                machine_type.architecture = capability.into_iter().next();
            }
            machine_type.capabilities.0.clear();
        } else if machine_type.capabilities.is_empty() {
            let architecture = architecture_of_machine_type(machine_type, definitions);
            machine_type.capabilities = only_architecture(architecture.unwrap_or(DEFAULT_ARCHITECTURE));
        }
    }
}

/// Merges parent and changes, with the `providerConfig` of the parent: the provider merges that part.
///
/// Lists keep the order of the parent, with new items at the end. For an existing image version, only the expiration
/// (or its absence) is merged, unless the NamespacedCloudProfile has other settings for it. If so, its entry replaces
/// that of the parent.
#[must_use]
pub fn merge(mut parent: ProfileSpec, mut namespaced: NamespacedProfileSpec) -> ProfileSpec {
    to_format_of_parent(&mut namespaced, &parent.machine_capabilities);
    if let Some(kubernetes) = &namespaced.kubernetes {
        merge_kubernetes(&mut parent.kubernetes, kubernetes);
    }
    for image in namespaced.machine_images {
        match parent.machine_images.iter_mut().find(|known| known.name == image.name) {
            Some(known) => merge_image(known, image),
            None => parent.machine_images.push(image),
        }
    }
    for machine_type in namespaced.machine_types {
        replace_or_add(&mut parent.machine_types, machine_type, |machine_type| &machine_type.name);
    }
    for volume_type in namespaced.volume_types {
        replace_or_add(&mut parent.volume_types, volume_type, |volume_type| &volume_type.name);
    }
    if let Some(bundle) = namespaced.ca_bundle {
        parent.ca_bundle.get_or_insert_default().push_str(&bundle);
    }
    if let Some(most) = namespaced.limits.and_then(|limits| limits.max_nodes_total).filter(|most| *most > 0) {
        parent.limits.get_or_insert_default().max_nodes_total = Some(most);
    }
    fill_architectures(&mut parent);
    parent
}

fn merge_kubernetes(parent: &mut KubernetesSettings, namespaced: &KubernetesSettings) {
    for version in &mut parent.versions {
        if let Some(changed) = namespaced.versions.iter().find(|changed| changed.version == version.version) {
            version.expiration_date.clone_from(&changed.expiration_date);
        }
    }
}

fn merge_image(parent: &mut ProfileImage, namespaced: ProfileImage) {
    if namespaced.update_strategy.as_ref().is_some_and(|strategy| !strategy.is_empty()) {
        parent.update_strategy = namespaced.update_strategy;
    }
    for version in namespaced.versions {
        match parent.versions.iter_mut().find(|known| known.version == version.version) {
            Some(known) if is_more_specific(&version) => *known = version,
            Some(known) => known.expiration_date = version.expiration_date,
            None => parent.versions.push(version),
        }
    }
}

/// Whether an entry has more settings for a version than its expiration.
fn is_more_specific(version: &ProfileImageVersion) -> bool {
    !version.architectures.is_empty()
        || !version.capability_flavors.is_empty()
        || !version.cri.is_empty()
        || version.kubelet_version_constraint.is_some()
        || version.classification.is_some()
}

fn replace_or_add<Item>(items: &mut Vec<Item>, item: Item, name: impl Fn(&Item) -> &str) {
    match items.iter().position(|known| name(known) == name(&item)).and_then(|position| items.get_mut(position)) {
        Some(known) => *known = item,
        None => items.push(item),
    }
}

/// Sets empty older architecture fields, by default to `amd64`.
fn fill_architectures(spec: &mut ProfileSpec) {
    let definitions = &spec.machine_capabilities;
    for version in spec.machine_images.iter_mut().flat_map(|image| &mut image.versions) {
        if version.architectures.is_empty() {
            let found = architectures_of_version(version, definitions);
            version.architectures =
                if found.is_empty() { vec![DEFAULT_ARCHITECTURE.to_owned()] } else { sorted(found) };
        }
    }
    for machine_type in &mut spec.machine_types {
        if machine_type.architecture.as_deref().is_none_or(str::is_empty) {
            let found = architecture_of_machine_type(machine_type, definitions).unwrap_or(DEFAULT_ARCHITECTURE);
            machine_type.architecture = Some(found.to_owned());
        }
    }
}
