//! From the old format of an image version to flavors and back, as documents: nothing that stands in a version gets lost.
//!
//! In the old format a version has an image for each architecture. What providers share of it is here; a provider that says
//! more about versions or machine types does so in its own [`ProfileFormat`](super::ProfileFormat).

use serde_json::{Map, Value, json};

use crate::api::gardener::Capabilities;
use crate::capabilities::{ARCHITECTURE, DEFAULT_ARCHITECTURE};

/// Members of a version or flavor.
pub type Members = Map<String, Value>;

/// The flavors that an old-format version stands for: one, or one for each architecture of its regions. Members that say
/// nothing about capabilities go along.
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

/// The entries of the old format for the flavors of a version, each for one architecture. Regions of several flavors share
/// an entry; `amd64` need not be named.
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
        // Entries that differ only in their regions are one.
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

/// The members of a flavor with its capabilities.
fn flavor(architecture: &str, mut members: Members) -> Members {
    members.insert("capabilities".to_owned(), json!({ARCHITECTURE: [architecture]}));
    members
}

/// What a flavor document says that machines must be able to do. As for the decoder, null is empty; the document has been
/// decoded before, so that every value is text.
#[must_use]
pub fn capabilities_of(flavor: &Members) -> Capabilities {
    let listed = flavor.get("capabilities").and_then(Value::as_object).into_iter().flatten();
    let values =
        |values: &Value| values.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    Capabilities(listed.map(|(name, listed)| (name.clone(), values(listed))).collect())
}

/// Writes what machines must be able to do into a flavor document; nothing means everything.
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
