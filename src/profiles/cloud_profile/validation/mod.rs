//! Validates a CloudProfile like Gardener's API server, with its paths and error types
//! (docs/contract.md#cloudprofiles).

use std::collections::HashSet;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use wire::api::bounded_text::beginning;
use wire::api::gardener::{Bastion, Limits, ProfileImageVersion, ProfileMachineType, ProfileSpec, VolumeType};
use wire::api::gotext::field::{FieldErrors, FieldPath};
use wire::capabilities::{
    Life, architecture_of_machine_type, architectures_of_version, not_a_name, validate_definitions,
    validate_machine_type,
};

mod images;
mod metadata;
mod quantities;
mod versions;

pub use images::{ImageRules, validate_images};
pub(super) use images::{validate_image, validate_image_version};

/// Maximum length of a text in a message, in characters.
const DISPLAYED: usize = 64;

/// Features of Gardener's API server that affect validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureGates {
    /// `CloudProfileCapabilities`: `machineCapabilities` is allowed.
    pub capabilities: bool,
    /// `VersionClassificationLifecycle`: versions may have a `lifecycle`.
    pub lifecycle: bool,
}

impl Default for FeatureGates {
    /// Gardener's defaults since 1.146.
    fn default() -> Self {
        Self { capabilities: true, lifecycle: false }
    }
}

/// Validates the core fields of a CloudProfile, at `spec`.
#[must_use]
pub fn validate_profile(spec: &ProfileSpec, gates: FeatureGates, now: Timestamp) -> FieldErrors {
    let mut errors = FieldErrors::default();
    let path = FieldPath::new("spec");
    if spec.provider_type.is_empty() {
        errors.required(path.child("type"), "must provide a provider type");
    }
    versions::validate_kubernetes(&spec.kubernetes, gates, now, path.child("kubernetes"), &mut errors);
    let capabilities = path.child("machineCapabilities");
    if !spec.machine_capabilities.is_empty() {
        if gates.capabilities {
            validate_definitions(&spec.machine_capabilities, capabilities, &mut errors);
        } else {
            let gate = "machineCapabilities are not allowed with disabled CloudProfileCapabilities feature gate";
            errors.forbidden(capabilities, gate);
        }
    }
    let rules = ImageRules { definitions: &spec.machine_capabilities, versions_required: true, gates, now };
    validate_images(&spec.machine_images, &rules, path.child("machineImages"), &mut errors);
    validate_machine_types(spec, path.child("machineTypes"), &mut errors);
    validate_volume_types(&spec.volume_types, path.child("volumeTypes"), &mut errors);
    validate_regions(spec, path.child("regions"), &mut errors);
    if let Some(bastion) = &spec.bastion {
        validate_bastion(bastion, spec, now, path.child("bastion"), &mut errors);
    }
    validate_limits(spec.limits.as_ref(), path.child("limits"), &mut errors);
    if let Some(selector) = &spec.seed_selector {
        metadata::validate_selector(selector, path.child("seedSelector"), &mut errors);
    }
    if let Some(bundle) = spec.ca_bundle.as_deref().filter(|bundle| !begins_with_certificate(bundle)) {
        errors.invalid(
            path.child("caBundle"),
            beginning(bundle, DISPLAYED),
            "caBundle is not a valid PEM-encoded certificate",
        );
    }
    errors
}

/// Validates `metadata` of a CloudProfile.
#[must_use]
pub fn validate_metadata(metadata: &ObjectMeta) -> FieldErrors {
    let mut errors = FieldErrors::default();
    metadata::validate_metadata(metadata, &mut errors);
    errors
}

/// Whether the first block of a PEM text is a certificate. Gardener ignores further blocks.
fn begins_with_certificate(bundle: &str) -> bool {
    let Ok((_, block)) = x509_parser::pem::parse_x509_pem(bundle.as_bytes()) else { return false };
    block.label == "CERTIFICATE" && block.parse_x509().is_ok()
}

fn validate_machine_types(spec: &ProfileSpec, path: FieldPath<'_>, errors: &mut FieldErrors) {
    if spec.machine_types.is_empty() {
        errors.required(path, "must provide at least one machine type");
    }
    let mut names = HashSet::new();
    for (index, machine_type) in spec.machine_types.iter().enumerate() {
        let path = path.index(index);
        name(&machine_type.name, path.child("name"), errors);
        if !names.insert(machine_type.name.as_str()) {
            errors.duplicate(path.child("name"), &machine_type.name);
        }
        validate_amounts(machine_type, path, errors);
        let architecture = machine_type.architecture.as_deref();
        validate_machine_type(&machine_type.capabilities, architecture, &spec.machine_capabilities, path, errors);
    }
}

fn validate_amounts(machine_type: &ProfileMachineType, path: FieldPath<'_>, errors: &mut FieldErrors) {
    let ProfileMachineType { cpu, gpu, memory, storage, .. } = machine_type;
    for (member, amount) in [("cpu", cpu), ("gpu", gpu), ("memory", memory)] {
        quantities::validate_amount(amount, path.child(member), errors);
    }
    if let Some(storage) = storage {
        quantities::validate_storage(storage, path.child("storage"), errors);
    }
}

/// Requires a qualified name without prefix.
fn name(name: &str, path: FieldPath<'_>, errors: &mut FieldErrors) {
    if name.is_empty() {
        errors.required(path, "must provide a name");
    } else if let Some(problem) = not_a_name(name) {
        errors.invalid(path, name, problem);
    }
}

fn validate_volume_types(volume_types: &[VolumeType], path: FieldPath<'_>, errors: &mut FieldErrors) {
    for (index, volume_type) in volume_types.iter().enumerate() {
        let path = path.index(index);
        name(&volume_type.name, path.child("name"), errors);
        if volume_types.iter().take(index).any(|earlier| earlier.name == volume_type.name) {
            errors.duplicate(path.child("name"), &volume_type.name);
            // Gardener stops at the first duplicate.
            break;
        }
        if volume_type.class.is_empty() {
            errors.required(path.child("class"), "must provide a class");
        } else if let Some(problem) = not_a_name(&volume_type.class) {
            errors.invalid(path.child("class"), &volume_type.class, problem);
        }
        if let Some(size) = &volume_type.min_size {
            quantities::validate_amount(size, path.child("minSize"), errors);
        }
    }
}

fn validate_regions(spec: &ProfileSpec, path: FieldPath<'_>, errors: &mut FieldErrors) {
    if spec.regions.is_empty() {
        errors.required(path, "must provide at least one region");
    }
    for (index, region) in spec.regions.iter().enumerate() {
        let path = path.index(index);
        if region.name.is_empty() {
            errors.required(path.child("name"), "must provide a region name");
        }
        if spec.regions.iter().take(index).any(|earlier| earlier.name == region.name) {
            errors.duplicate(path, &region.name);
        }
        let zones_path = path.child("zones");
        for (index, zone) in region.zones.iter().enumerate() {
            let path = zones_path.index(index);
            if zone.name.is_empty() {
                errors.required(path.child("name"), "zone name cannot be empty");
            }
            if region.zones.iter().take(index).any(|earlier| earlier.name == zone.name) {
                errors.duplicate(path.child("name"), &zone.name);
            }
        }
        let labels = metadata::texts_by_name(region.labels.as_ref());
        metadata::validate_labels(&labels, path.child("labels"), errors);
    }
}

/// The machine type and image of a bastion must exist, be supported, and fit.
fn validate_bastion(
    bastion: &Bastion,
    spec: &ProfileSpec,
    now: Timestamp,
    path: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if bastion.machine_image.is_none() && bastion.machine_type.is_none() {
        errors.invalid(path, bastion, "bastion section needs a machine type or machine image");
        return;
    }
    let definitions = &spec.machine_capabilities;
    let machine_type = bastion.machine_type.as_ref().map(|requested| {
        let found = spec.machine_types.iter().find(|machine_type| machine_type.name == requested.name);
        if found.is_none() {
            let path = path.child("machineType");
            errors.invalid(path.child("name"), &requested.name, "machine type not found in spec.machineTypes");
        }
        found
    });
    let architecture =
        machine_type.flatten().and_then(|machine_type| architecture_of_machine_type(machine_type, definitions));
    let Some(requested) = &bastion.machine_image else { return };
    let image_path = path.child("machineImage");
    let Some(image) = spec.machine_images.iter().find(|image| image.name == requested.name) else {
        errors.invalid(image_path.child("name"), &requested.name, "image name not found in spec.machineImages");
        return;
    };
    let fits = |version: &&ProfileImageVersion| {
        let architectures = architectures_of_version(version, definitions);
        version.classification.as_deref() == Some("supported")
            && Life::from(*version).at(now).is_active()
            && architecture.is_none_or(|architecture| architectures.contains(&architecture))
    };
    let of_architecture =
        architecture.map_or(String::new(), |architecture| format!(" and architecture {architecture:?}"));
    match &requested.version {
        None if !image.versions.iter().any(|version| fits(&version)) => {
            let detail = format!("no image with classification supported{of_architecture} found");
            errors.invalid(image_path.child("name"), &requested.name, detail);
        }
        Some(version) if !image.versions.iter().any(|listed| listed.version == *version && fits(&listed)) => {
            let detail = format!("no such version with classification supported{of_architecture} found");
            errors.invalid(image_path.child("version"), version, detail);
        }
        _ => {}
    }
}

pub(super) fn validate_limits(limits: Option<&Limits>, path: FieldPath<'_>, errors: &mut FieldErrors) {
    if let Some(most) = limits.and_then(|limits| limits.max_nodes_total)
        && most <= 0
    {
        errors.invalid(path.child("maxNodesTotal"), most, "maxNodesTotal must be greater than 0");
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;
    use crate::cloud_profile::difference;
    use wire::api::gardener::Capabilities;
    use wire::api::gotext::json::{decode_lenient, to_go_json};
    use wire::api::gotext::yaml;
    use wire::capabilities::validate_provider_flavor;

    /// A row of `test/profiles/core-rules.yaml`.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Row {
        rule: String,
        spec: Value,
        #[serde(default)]
        provider: bool,
        #[serde(default)]
        flavors: Vec<Capabilities>,
        #[serde(default)]
        errors: Vec<String>,
    }

    fn profile(row: &Row) -> ProfileSpec {
        let mut spec = json!({
            "type": "x",
            "kubernetes": {"versions": [{"version": "1.34.0"}]},
            "machineCapabilities": [{"name": "h", "values": ["a"]}, {"name": "architecture", "values": ["amd64"]}],
            "machineImages": [{"name": "linux", "updateStrategy": "major",
                "versions": [{"version": "1.0.0", "cri": [{"name": "containerd"}]}]}],
            "machineTypes": [{"name": "t"}],
            "regions": [{"name": "r"}],
        });
        spec.as_object_mut().unwrap().extend(row.spec.as_object().unwrap().clone());
        decode_lenient(&to_go_json(&spec)).unwrap()
    }

    #[test]
    fn every_rule_of_the_api_server() {
        let table = include_str!("../../../../test/profiles/core-rules.yaml");
        let rows: Vec<Row> = serde_json::from_value(yaml::documents(table).unwrap().remove(0)).unwrap();
        let now = "2026-06-01T00:00:00Z".parse().unwrap();
        let mut wrong = Vec::new();
        for row in rows {
            let spec = profile(&row);
            let errors = if row.provider {
                let mut errors = FieldErrors::default();
                for (index, flavor) in row.flavors.iter().enumerate() {
                    let path = FieldPath::new("flavors");
                    validate_provider_flavor(flavor, &spec.machine_capabilities, path.index(index), &mut errors);
                }
                errors
            } else {
                validate_profile(&spec, FeatureGates::default(), now)
            };
            wrong.extend(difference(&errors, &row.errors).map(|difference| format!("{}: {difference}", row.rule)));
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
