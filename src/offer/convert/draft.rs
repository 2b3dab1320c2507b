//! Converts profiles that use the names of GEP-33 drafts: a map `spec.capabilities`, `capabilitySets`, and
//! `capabilities` directly in the version. The names change, the meaning does not.

use serde_json::{Map, Value, json};

use super::{Conversion, ConvertError, Format, Knowledge, SETTINGS, Undecided, convert};
use crate::offer::lint::{Severity, lint};
use crate::provider::Providers;

/// Converts the document of a CloudProfile that uses the names of a draft.
///
/// # Errors
/// As for [`convert`], and if the result would have an error, even if the draft has it, too.
pub fn convert_draft(
    document: &Value,
    knowledge: &Knowledge,
    providers: Providers,
) -> Result<Conversion, ConvertError> {
    let mut conversion = convert(&renamed(document), Format::Capabilities, knowledge, providers)?;
    let findings = lint(&conversion.profile, SETTINGS, providers)?.findings;
    let errors: Vec<_> = findings.into_iter().filter(|finding| finding.severity == Severity::Error).collect();
    if !errors.is_empty() {
        return Err(ConvertError::Refused(errors));
    }
    if document["spec"]["capabilities"].as_object().is_some_and(|capabilities| capabilities.len() > 1) {
        conversion.undecided.push(Undecided {
            subject: "spec.machineCapabilities".to_owned(),
            open: "The order decides between flavors that fit, and the map of the draft has none: names stand in \
                   alphabetical order."
                .to_owned(),
            advice: "Put them into the order of preference.".to_owned(),
        });
    }
    Ok(conversion)
}

/// The document with the current names.
fn renamed(document: &Value) -> Value {
    let mut document = document.clone();
    let Some(spec) = document.get_mut("spec").and_then(Value::as_object_mut) else { return document };
    if let Some(Value::Object(capabilities)) = spec.remove("capabilities") {
        let definitions = capabilities.into_iter().map(|(name, values)| json!({"name": name, "values": list(values)}));
        spec.insert("machineCapabilities".to_owned(), definitions.collect());
    }
    for machine_type in items(spec.get_mut("machineTypes")) {
        if let Some(capabilities) = machine_type.get_mut("capabilities") {
            *capabilities = lists(capabilities.take());
        }
    }
    rename_images(spec.get_mut("machineImages"), &Half::Core);
    let config = spec.get_mut("providerConfig");
    rename_images(config.and_then(|config| config.get_mut("machineImages")), &Half::Provider);
    document
}

/// One half of a profile. Core's flavors are capabilities only; the provider's have them in a field next to the
/// image.
#[derive(PartialEq, Eq)]
enum Half {
    Core,
    Provider,
}

fn rename_images(images: Option<&mut Value>, half: &Half) {
    for image in items(images) {
        let Some(Value::Array(versions)) = image.get_mut("versions").map(Value::take) else { continue };
        let mut merged: Vec<Value> = Vec::new();
        for version in versions {
            let version = with_flavors(version, half);
            // Drafts had one version entry for each set of capabilities.
            let known = merged.iter_mut().find(|known| known["version"] == version["version"]);
            match (known, version["capabilityFlavors"].as_array()) {
                (Some(known), Some(flavors)) if known["capabilityFlavors"].is_array() => {
                    known["capabilityFlavors"].as_array_mut().into_iter().for_each(|all| all.extend(flavors.clone()));
                }
                _ => merged.push(version),
            }
        }
        image["versions"] = merged.into();
    }
}

fn with_flavors(mut version: Value, half: &Half) -> Value {
    let Some(members) = version.as_object_mut() else { return version };
    let flavors = match (members.remove("capabilitySets"), members.remove("capabilities")) {
        (Some(Value::Array(sets)), _) => sets.into_iter().map(|set| flavor(set, half)).collect(),
        (_, Some(capabilities)) if *half == Half::Core => vec![lists(capabilities)],
        (_, Some(capabilities)) => {
            // In drafts, the fields of the image were next to the capabilities.
            let mut flavor = Map::from_iter([("capabilities".to_owned(), lists(capabilities))]);
            let names: Vec<String> = members.keys().filter(|name| *name != "version").cloned().collect();
            flavor.extend(names.into_iter().filter_map(|name| members.remove(&name).map(|value| (name, value))));
            vec![Value::Object(flavor)]
        }
        _ => return version,
    };
    members.insert("capabilityFlavors".to_owned(), flavors.into());
    version
}

fn flavor(mut set: Value, half: &Half) -> Value {
    match set.get_mut("capabilities").map(Value::take) {
        Some(capabilities) if *half == Half::Core => lists(capabilities),
        Some(capabilities) => {
            set["capabilities"] = lists(capabilities);
            set
        }
        None => lists(set),
    }
}

/// Converts the values of capabilities to lists; drafts also allowed `amd64,arm64`.
fn lists(capabilities: Value) -> Value {
    match capabilities {
        Value::Object(members) => members.into_iter().map(|(name, values)| (name, list(values))).collect(),
        other => other,
    }
}

fn list(values: Value) -> Value {
    match values {
        Value::String(text) => text.split(',').map(str::trim).collect(),
        Value::Object(mut members) => members.remove("values").map_or(Value::Object(members), list),
        other => other,
    }
}

fn items(list: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    list.and_then(Value::as_array_mut).into_iter().flatten()
}
