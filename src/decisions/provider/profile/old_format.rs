//! Converts image versions between the old format and flavors, as documents, without losing other members.
//!
//! In the old format a version has one image per architecture. This file has the conversion that providers share; a
//! provider with additional members overrides it in its own [`ProfileFormat`](super::ProfileFormat).

use serde_json::{Map, Value, json};

use wire::api::gardener::Capabilities;
use wire::capabilities::{ARCHITECTURE, DEFAULT_ARCHITECTURE};

/// Members of a version or flavor.
pub type Members = Map<String, Value>;

/// Converts an old-format version to one flavor, or to one flavor per architecture of its regions. Members unrelated to
/// capabilities are copied.
#[must_use]
pub fn flavors_of_old_format(version: &Members) -> Vec<Members> {
    let mut common = version.clone();
    for member in ["version", "capabilityFlavors", "regions"] {
        common.remove(member);
    }
    let architecture = text(common.remove(ARCHITECTURE)).unwrap_or_else(|| DEFAULT_ARCHITECTURE.to_owned());
    let regions = version.get("regions").and_then(Value::as_array).filter(|regions| !regions.is_empty());
    let Some(regions) = regions else {
        return vec![flavor(&architecture, common)];
    };
    let mut by_architecture: Vec<(String, Vec<Value>)> = Vec::new();
    for region in regions {
        let mut region = region.clone();
        let named = region.as_object_mut().and_then(|region| text(region.remove(ARCHITECTURE)));
        let architecture = named.unwrap_or_else(|| architecture.clone());
        match by_architecture.iter_mut().find(|(known, _)| *known == architecture) {
            Some((_, regions)) => regions.push(region),
            None => by_architecture.push((architecture, vec![region])),
        }
    }
    let flavors = by_architecture.into_iter().map(|(architecture, regions)| {
        let mut members = common.clone();
        members.insert("regions".to_owned(), regions.into());
        flavor(&architecture, members)
    });
    flavors.collect()
}

/// Converts flavors of a version to entries of the old format, each for one architecture. Flavors that differ only in
/// their regions share an entry; `amd64` is implicit.
#[must_use]
pub fn old_format_of_flavors(version: &str, flavors: &[(String, Members)]) -> Vec<Members> {
    let mut entries: Vec<Members> = Vec::new();
    for (architecture, flavor) in flavors {
        let mut entry = flavor.clone();
        entry.remove("capabilities");
        entry.insert("version".to_owned(), version.into());
        let other = (architecture != DEFAULT_ARCHITECTURE).then(|| Value::from(architecture.as_str()));
        let Some(Value::Array(mut regions)) = entry.remove("regions") else {
            if let Some(other) = other {
                entry.insert(ARCHITECTURE.to_owned(), other);
            }
            entries.push(entry);
            continue;
        };
        for region in regions.iter_mut().filter_map(Value::as_object_mut) {
            if let Some(other) = &other {
                region.insert(ARCHITECTURE.to_owned(), other.clone());
            }
        }
        // Merge entries that differ only in their regions.
        let same = |known: &&mut Members| {
            let mut known = (**known).clone();
            known.remove("regions").is_some() && known == entry
        };
        match entries.iter_mut().find(same).and_then(|known| known.get_mut("regions")?.as_array_mut()) {
            Some(known) => known.append(&mut regions),
            None => {
                entry.insert("regions".to_owned(), regions.into());
                entries.push(entry);
            }
        }
    }
    entries
}

/// Adds the capabilities to the members of a flavor.
fn flavor(architecture: &str, mut members: Members) -> Members {
    members.insert("capabilities".to_owned(), json!({ARCHITECTURE: [architecture]}));
    members
}

/// The capabilities of a flavor document. Null is empty, as for the decoder. The document has been decoded before, so
/// every value is text.
#[must_use]
pub fn capabilities_of(flavor: &Members) -> Capabilities {
    let listed = flavor.get("capabilities").and_then(Value::as_object).into_iter().flatten();
    let values =
        |values: &Value| values.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    Capabilities(listed.map(|(name, listed)| (name.clone(), values(listed))).collect())
}

/// Sets the capabilities of a flavor document; empty capabilities fit every machine and are omitted.
pub fn set_capabilities(flavor: &mut Members, capabilities: &Capabilities) {
    if capabilities.is_empty() {
        flavor.remove("capabilities");
    } else {
        flavor.insert("capabilities".to_owned(), json!(capabilities));
    }
}

fn text(value: Option<Value>) -> Option<String> {
    value.and_then(|value| value.as_str().map(str::to_owned))
}
