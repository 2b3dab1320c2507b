//! Converts profiles with the names of GEP-33 drafts: a map `spec.capabilities`, `capabilitySets`, and `capabilities`
//! in the version itself or in its regions. The result has today's names and the same meaning.

use serde_json::{Map, Value, json};

use super::origins::Origins;
use super::{Conversion, ConvertError, Format, Knowledge, SETTINGS, Undecided, convert_today};
use crate::resolved_profile::lint::{Severity, lint};
use decisions::provider::Providers;
use wire::capabilities::ARCHITECTURE;

/// Converts the document of a CloudProfile that uses the names of a draft.
///
/// # Errors
/// As [`convert`](super::convert), and when the result would have an error, whether the draft had it or not. The paths are those of
/// the document.
pub fn convert_draft(
    document: &Value,
    knowledge: &Knowledge,
    providers: Providers,
) -> Result<Conversion, ConvertError> {
    let (renamed, origins) = renamed(document)?;
    let converted = convert_today(&renamed, Format::Capabilities, knowledge, providers);
    let mut conversion = converted.map_err(|error| origins.in_error(error))?;
    let findings = lint(&conversion.profile, SETTINGS, providers)?.findings;
    let errors: Vec<_> = findings.into_iter().filter(|finding| finding.severity == Severity::Error).collect();
    if !errors.is_empty() {
        return Err(origins.in_error(ConvertError::Refused(errors)));
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

/// The first member with a name that only drafts have.
#[must_use]
pub fn draft_member(document: &Value) -> Option<String> {
    let spec = document.get("spec")?;
    if spec["capabilities"].is_object() {
        return Some("spec.capabilities".to_owned());
    }
    let halves = [("spec", spec), ("spec.providerConfig", &spec["providerConfig"])];
    halves.into_iter().find_map(|(path, half)| draft_member_of(half, path))
}

fn draft_member_of(half: &Value, path: &str) -> Option<String> {
    for (position, image) in half["machineImages"].as_array()?.iter().enumerate() {
        for (index, version) in image["versions"].as_array().into_iter().flatten().enumerate() {
            let path = format!("{path}.machineImages[{position}].versions[{index}]");
            if let Some(name) = ["capabilitySets", "capabilities"].into_iter().find(|name| !version[name].is_null()) {
                return Some(format!("{path}.{name}"));
            }
            let mut regions = version["regions"].as_array().into_iter().flatten();
            if let Some(region) = regions.position(|region| !region["capabilities"].is_null()) {
                return Some(format!("{path}.regions[{region}].capabilities"));
            }
        }
    }
    None
}

/// The document with today's names, and where they come from.
fn renamed(document: &Value) -> Result<(Value, Origins), ConvertError> {
    let mut document = document.clone();
    let mut origins = Origins::default();
    let Some(spec) = document.get_mut("spec").and_then(Value::as_object_mut) else { return Ok((document, origins)) };
    if let Some(Value::Object(capabilities)) = spec.remove("capabilities") {
        origins.add("spec.machineCapabilities", "spec.capabilities");
        for (index, name) in capabilities.keys().enumerate() {
            let path = format!("spec.machineCapabilities[{index}]");
            origins.add(format!("{path}.values"), format!("spec.capabilities.{name}"));
            origins.add(path, format!("spec.capabilities.{name}"));
        }
        let definitions = capabilities.into_iter().map(|(name, values)| json!({"name": name, "values": list(values)}));
        spec.insert("machineCapabilities".to_owned(), definitions.collect());
    }
    for machine_type in items(spec.get_mut("machineTypes")) {
        if let Some(capabilities) = machine_type.get_mut("capabilities") {
            *capabilities = lists(capabilities.take());
        }
    }
    rename_images(spec.get_mut("machineImages"), Half::Core, &mut origins)?;
    let config = spec.get_mut("providerConfig");
    let images = config.and_then(|config| config.get_mut("machineImages"));
    rename_images(images, Half::Provider, &mut origins)?;
    Ok((document, origins))
}

/// The part of a profile. Flavors in the provider config have a member `capabilities` next to the image.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Core,
    Provider,
}

/// A flavor with today's names, and the path of its source.
struct Flavor {
    today: Value,
    origin: String,
    /// Paths of the regions that were merged into it.
    regions: Vec<String>,
}

fn rename_images(images: Option<&mut Value>, half: Half, origins: &mut Origins) -> Result<(), ConvertError> {
    let half_path = if half == Half::Core { "spec" } else { "spec.providerConfig" };
    for (position, image) in items(images).enumerate() {
        let Some(Value::Array(versions)) = image.get_mut("versions").map(Value::take) else { continue };
        let path = format!("{half_path}.machineImages[{position}].versions");
        let mut merged: Vec<Value> = Vec::new();
        for (index, mut version) in versions.into_iter().enumerate() {
            let origin = format!("{path}[{index}]");
            let Some(flavors) = flavors(&mut version, half, &origin)? else {
                origins.add(format!("{path}[{}]", merged.len()), origin);
                merged.push(version);
                continue;
            };
            // Each set of capabilities had an entry of its own.
            let is_same =
                |known: &Value| known["version"] == version["version"] && known["capabilityFlavors"].is_array();
            let location = merged.iter().position(is_same).unwrap_or_else(|| {
                version["capabilityFlavors"] = json!([]);
                origins.add(format!("{path}[{}]", merged.len()), origin);
                merged.push(version);
                merged.len() - 1
            });
            let known = merged.get_mut(location).and_then(|known| known["capabilityFlavors"].as_array_mut());
            add_flavors(known, flavors, &format!("{path}[{location}].capabilityFlavors"), origins);
        }
        image["versions"] = merged.into();
    }
    Ok(())
}

fn add_flavors(known: Option<&mut Vec<Value>>, flavors: Vec<Flavor>, path: &str, origins: &mut Origins) {
    let Some(known) = known else { return };
    for flavor in flavors {
        let path = format!("{path}[{}]", known.len());
        for (index, region) in flavor.regions.iter().enumerate() {
            origins.add(format!("{path}.regions[{index}]"), region);
        }
        origins.add(path, flavor.origin);
        known.push(flavor.today);
    }
}

/// Moves the flavors out of a version's members; `None` if it has today's names.
fn flavors(version: &mut Value, half: Half, path: &str) -> Result<Option<Vec<Flavor>>, ConvertError> {
    let Some(members) = version.as_object_mut() else { return Ok(None) };
    let has_regions = members
        .get("regions")
        .and_then(Value::as_array)
        .is_some_and(|regions| regions.iter().any(|region| !region["capabilities"].is_null()));
    let flavors = match (members.remove("capabilitySets"), members.remove("capabilities")) {
        (Some(Value::Array(sets)), _) => {
            let flavor = |(index, set)| {
                let origin = format!("{path}.capabilitySets[{index}]");
                Ok(Flavor { today: flavor_of_set(set, half, &origin)?, origin, regions: Vec::new() })
            };
            sets.into_iter().enumerate().map(flavor).collect::<Result<_, ConvertError>>()?
        }
        (_, Some(capabilities)) if half == Half::Core => {
            let today = lists(capabilities);
            let origin = format!("{path}.capabilities");
            vec![Flavor { today, origin, regions: Vec::new() }]
        }
        (_, capabilities) if has_regions => {
            let regions = members.remove("regions").unwrap_or_default();
            flavors_of_regions(regions, capabilities.map(lists).unwrap_or_else(|| json!({})), path)?
        }
        (_, Some(capabilities)) => vec![flavor_of_version(members, lists(capabilities), path)?],
        _ => return Ok(None),
    };
    Ok(Some(flavors))
}

/// The flavor of a version whose members name both the capabilities and the image.
fn flavor_of_version(
    members: &mut Map<String, Value>,
    mut capabilities: Value,
    path: &str,
) -> Result<Flavor, ConvertError> {
    add_architecture(members, &mut capabilities, path)?;
    let mut flavor = Map::from_iter([("capabilities".to_owned(), capabilities)]);
    let names: Vec<String> = members.keys().filter(|name| *name != "version").cloned().collect();
    flavor.extend(names.into_iter().filter_map(|name| members.remove(&name).map(|value| (name, value))));
    let regions = flavor.get("regions").and_then(Value::as_array).map_or(0, Vec::len);
    let regions = (0..regions).map(|index| format!("{path}.regions[{index}]")).collect();
    Ok(Flavor { today: Value::Object(flavor), origin: path.to_owned(), regions })
}

/// Regions with the same capabilities are one flavor.
fn flavors_of_regions(regions: Value, of_version: Value, path: &str) -> Result<Vec<Flavor>, ConvertError> {
    let Value::Array(regions) = regions else { return Ok(Vec::new()) };
    let mut found: Vec<Flavor> = Vec::new();
    for (index, mut region) in regions.into_iter().enumerate() {
        let path = format!("{path}.regions[{index}]");
        let mut capabilities = of_version.clone();
        if let Some(members) = region.as_object_mut() {
            let own = members.remove("capabilities").map(lists);
            if let (Some(all), Some(Value::Object(own))) = (capabilities.as_object_mut(), own) {
                all.extend(own);
            }
            add_architecture(members, &mut capabilities, &path)?;
        }
        let known = found.iter_mut().find(|known| known.today["capabilities"] == capabilities);
        match known.and_then(|known| Some((known.today["regions"].as_array_mut()?, &mut known.regions))) {
            Some((regions, paths)) => {
                regions.push(region);
                paths.push(path);
            }
            None => found.push(Flavor {
                today: json!({"capabilities": capabilities, "regions": [region]}),
                origin: path.clone(),
                regions: vec![path],
            }),
        }
    }
    Ok(found)
}

/// Moves an `architecture` next to the capabilities into them, as in today's format.
fn add_architecture(
    members: &mut Map<String, Value>,
    capabilities: &mut Value,
    path: &str,
) -> Result<(), ConvertError> {
    let Some(architecture) = members.remove(ARCHITECTURE) else { return Ok(()) };
    match capabilities.get(ARCHITECTURE).and_then(Value::as_array) {
        Some(named) if named.contains(&architecture) => {}
        Some(named) => {
            let named: Vec<&str> = named.iter().filter_map(Value::as_str).collect();
            let reason = format!(
                "{} contradicts capabilities.{ARCHITECTURE} next to it ({})",
                architecture.as_str().unwrap_or("the value"),
                named.join(", ")
            );
            return Err(ConvertError::Contradiction { path: format!("{path}.{ARCHITECTURE}"), reason });
        }
        None => capabilities[ARCHITECTURE] = json!([architecture]),
    }
    Ok(())
}

fn flavor_of_set(mut set: Value, half: Half, path: &str) -> Result<Value, ConvertError> {
    let Some(capabilities) = set.get_mut("capabilities").map(Value::take) else { return Ok(lists(set)) };
    let mut capabilities = lists(capabilities);
    if half == Half::Core {
        return Ok(capabilities);
    }
    if let Some(members) = set.as_object_mut() {
        add_architecture(members, &mut capabilities, path)?;
    }
    set["capabilities"] = capabilities;
    Ok(set)
}

/// Capabilities whose values are lists; drafts also had `amd64,arm64`.
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
