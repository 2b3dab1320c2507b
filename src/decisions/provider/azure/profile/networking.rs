//! Accelerated networking: a flag in the old format, a capability in the new one.

use serde_json::{Value, json};

use crate::provider::azure::image::{ACCELERATED, BASIC, NETWORKING};
use crate::provider::profile::Members;
use crate::provider::profile::old_format;
use wire::api::gardener::Capabilities;

/// The flag of versions and machine types.
const FLAG: &str = "acceleratedNetworking";
/// The list of machine types in the document.
const MACHINE_TYPES: &str = "machineTypes";

/// An accelerated version supports both values, so its flavors omit the capability.
pub(super) fn flavors_of_old_format(version: &Members) -> Vec<Members> {
    let mut version = version.clone();
    let accelerated = is_set(version.remove(FLAG).as_ref());
    let mut flavors = old_format::flavors_of_old_format(&version);
    if accelerated {
        return flavors;
    }
    for flavor in &mut flavors {
        let mut capabilities = old_format::capabilities_of(flavor);
        capabilities.0.insert(NETWORKING.to_owned(), vec![BASIC.to_owned()]);
        old_format::set_capabilities(flavor, &capabilities);
    }
    flavors
}

pub(super) fn old_format_of_flavors(version: &str, flavors: &[(String, Members)]) -> Vec<Members> {
    let flagged = flavors.iter().map(|(architecture, flavor)| {
        let mut flagged = flavor.clone();
        if can_accelerate(&old_format::capabilities_of(flavor)) {
            flagged.insert(FLAG.to_owned(), true.into());
        }
        (architecture.clone(), flagged)
    });
    old_format::old_format_of_flavors(version, &flagged.collect::<Vec<_>>())
}

pub(super) fn machine_type_of_old_format(config: &Value, machine_type: &str) -> Capabilities {
    let listed = config.get(MACHINE_TYPES).and_then(Value::as_array).into_iter().flatten();
    let accelerated = listed.filter(|entry| entry["name"] == *machine_type).any(|entry| is_set(entry.get(FLAG)));
    if accelerated { Capabilities::default() } else { Capabilities::from_iter([(NETWORKING, [BASIC])]) }
}

pub(super) fn set_machine_types_of_old_format(config: &mut Members, machine_types: &[(&str, &Capabilities)]) {
    config.remove(MACHINE_TYPES);
    let accelerated = machine_types.iter().filter(|(_, capabilities)| can_accelerate(capabilities));
    let accelerated: Vec<Value> = accelerated.map(|(name, _)| json!({"name": name, FLAG: true})).collect();
    if !accelerated.is_empty() {
        config.insert(MACHINE_TYPES.to_owned(), accelerated.into());
    }
}

fn can_accelerate(capabilities: &Capabilities) -> bool {
    capabilities.values(NETWORKING).is_none_or(|values| values.iter().any(|value| value == ACCELERATED))
}

fn is_set(flag: Option<&Value>) -> bool {
    flag.and_then(Value::as_bool).unwrap_or_default()
}
