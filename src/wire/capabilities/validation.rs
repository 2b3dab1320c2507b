//! Validates definitions and capabilities of machine types and images, with Gardener's paths and error types.

use super::architecture::{architectures_of_flavors, defined_architectures};
use super::defaults::{ARCHITECTURE, ARCHITECTURES};
use super::names::not_a_name;
use crate::api::gardener::{Capabilities, CapabilityDefinition};
use crate::api::gotext::field::{FieldErrors, FieldPath};

/// Prefix of names that only Gardener may define.
const RESERVED: &str = "gardener-";

/// Error detail for capabilities in a profile of the old format.
const UNDEFINED: &str =
    "must not provide capabilities without global definition; define them in spec.machineCapabilities";

/// Validates `spec.machineCapabilities`. As in Gardener, paths contain the names of capabilities.
///
/// Duplicate values are accepted, as in Gardener.
pub fn validate_definitions(definitions: &[CapabilityDefinition], path: FieldPath<'_>, errors: &mut FieldErrors) {
    for (index, definition) in definitions.iter().enumerate() {
        let name_path = path.index(index);
        if definitions.iter().take(index).any(|earlier| earlier.name == definition.name) {
            errors.duplicate(name_path.child("name"), &definition.name);
        }
        if definition.name.starts_with(RESERVED) {
            let detail = format!("the {RESERVED:?} prefix is reserved for Gardener-core capabilities");
            errors.forbidden(name_path.child("name"), detail);
        }
    }
    validate_defined_architectures(definitions, path, errors);
    // If a name is defined twice, Gardener validates only the later definition.
    let is_last = |index: usize, name: &str| !definitions.iter().skip(index + 1).any(|later| later.name == name);
    for (index, definition) in definitions.iter().enumerate() {
        if is_last(index, &definition.name) {
            validate_definition(definition, path, errors);
        }
    }
}

fn validate_defined_architectures(definitions: &[CapabilityDefinition], path: FieldPath<'_>, errors: &mut FieldErrors) {
    let path = path.child(ARCHITECTURE);
    if !definitions.iter().any(|definition| definition.name == ARCHITECTURE) {
        errors.required(path, "architecture capability is required");
    }
    for architecture in defined_architectures(definitions) {
        if !architecture.is_empty() && !ARCHITECTURES.contains(&architecture.as_str()) {
            errors.invalid(path, architecture, format!("allowed architectures are: {}", ARCHITECTURES.join(", ")));
        }
    }
}

fn validate_definition(definition: &CapabilityDefinition, path: FieldPath<'_>, errors: &mut FieldErrors) {
    let CapabilityDefinition { name, values } = definition;
    if name.is_empty() {
        errors.required(path, "capability keys must not be empty");
    } else if let Some(problem) = not_a_name(name) {
        errors.invalid(path, name, format!("capability key must be qualified name: {problem}"));
    }
    let path = path.child(name);
    if values.is_empty() {
        errors.required(path, "capability values must not be empty");
    }
    for (index, value) in values.iter().enumerate() {
        if value.is_empty() {
            errors.required(path.index(index), "capability values must not be empty");
        } else if let Some(problem) = not_a_name(value) {
            errors.invalid(path.index(index), value, format!("capability value must be qualified name: {problem}"));
        }
    }
}

/// Validates the architectures and flavors of an image version at `version`.
pub fn validate_image_version(
    flavors: &[Capabilities],
    architectures: &[String],
    definitions: &[CapabilityDefinition],
    version: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if definitions.is_empty() {
        if !flavors.is_empty() {
            errors.forbidden(version.child("capabilityFlavors"), UNDEFINED);
        }
        if architectures.is_empty() {
            errors.required(version.child("architectures"), "must provide at least one architecture");
        }
        supported_architectures(architectures, &ARCHITECTURES, version, errors);
        return;
    }
    let path = version.child("capabilityFlavors");
    for (index, flavor) in flavors.iter().enumerate() {
        known_capabilities(flavor, definitions, path.index(index), errors);
    }
    validate_architectures(flavors, architectures, definitions, version, errors);
}

fn supported_architectures(
    architectures: &[String],
    supported: &[&str],
    version: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    for (index, architecture) in architectures.iter().enumerate() {
        if !supported.contains(&architecture.as_str()) {
            let path = version.child("architectures");
            errors.not_supported(path.index(index), architecture, supported.iter().copied());
        }
    }
}

fn validate_architectures(
    flavors: &[Capabilities],
    architectures: &[String],
    definitions: &[CapabilityDefinition],
    version: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let defined = defined_architectures(definitions);
    let path = version.child("capabilityFlavors");
    if defined.len() > 1 && flavors.is_empty() {
        errors.required(
            path,
            "must provide at least one image flavor when multiple architectures are defined in spec.machineCapabilities",
        );
        return;
    }
    for (index, flavor) in flavors.iter().enumerate() {
        let path = path.index(index);
        match flavor.values(ARCHITECTURE).unwrap_or_default() {
            [] if defined.len() > 1 => errors.required(
                path.child(ARCHITECTURE),
                "must specify one architecture explicitly as multiple architectures are defined in spec.machineCapabilities",
            ),
            [] | [_] => {}
            several => errors.invalid(
                path.child(ARCHITECTURE),
                several,
                "must not define more than one architecture within an image flavor",
            ),
        }
    }
    let mut named = architectures_of_flavors(flavors);
    if let ([], [only]) = (&named[..], defined) {
        named.push(only);
    }
    if !architectures.iter().all(|architecture| named.contains(&architecture.as_str())) {
        let detail = format!(
            "architecture field values set ({}) conflict with the capability architectures ({})",
            architectures.join(", "),
            named.join(", ")
        );
        errors.invalid(version.child("architectures"), architectures, detail);
    }
    let defined: Vec<&str> = defined.iter().map(String::as_str).collect();
    supported_architectures(architectures, &defined, version, errors);
}

/// Validates the architecture and capabilities of a machine type at `machine_type`.
pub fn validate_machine_type(
    capabilities: &Capabilities,
    architecture: Option<&str>,
    definitions: &[CapabilityDefinition],
    machine_type: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let field = machine_type.child("architecture");
    if let Some(architecture) = architecture
        && !ARCHITECTURES.contains(&architecture)
    {
        errors.not_supported(field, architecture, ARCHITECTURES);
    }
    let path = machine_type.child("capabilities");
    if definitions.is_empty() {
        if architecture.is_none() {
            errors.required(field, "must provide an architecture");
        }
        if !capabilities.is_empty() {
            errors.forbidden(path, UNDEFINED);
        }
        return;
    }
    match (capabilities.values(ARCHITECTURE).unwrap_or_default(), architecture) {
        ([capability], Some(named)) if capability != named => {
            let detail = format!(
                "machine type architecture ({named}) conflicts with the capability architecture ({capability})"
            );
            errors.invalid(field, named, detail);
        }
        ([] | [_], _) => {}
        (several, _) => {
            errors.invalid(path.child(ARCHITECTURE), several, "must not define more than one architecture");
        }
    }
    known_capabilities(capabilities, definitions, path, errors);
}

/// Validates the capabilities of a flavor in the provider config.
pub fn validate_provider_flavor(
    capabilities: &Capabilities,
    definitions: &[CapabilityDefinition],
    path: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    known_capabilities(capabilities, definitions, path, errors);
    let listed = capabilities.values(ARCHITECTURE).unwrap_or_default();
    if defined_architectures(definitions).len() > 1 && listed.len() != 1 {
        errors.invalid(
            path.child(ARCHITECTURE),
            listed,
            "must define exactly one architecture when multiple architectures are supported by the cloud profile",
        );
    }
}

/// Names and values must be defined.
fn known_capabilities(
    capabilities: &Capabilities,
    definitions: &[CapabilityDefinition],
    path: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    for (name, values) in &capabilities.0 {
        let Some(definition) = definitions.iter().rfind(|definition| definition.name == *name) else {
            errors.not_supported(path, name, definitions.iter().map(|definition| definition.name.as_str()));
            continue;
        };
        let path = path.child(name);
        for (index, value) in values.iter().enumerate() {
            if !definition.values.contains(value) {
                errors.not_supported(path.index(index), value, definition.values.iter().map(String::as_str));
            }
        }
    }
}
