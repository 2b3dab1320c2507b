//! A profile as large as those of large landscapes.

use serde_json::{Value, json};

pub(crate) const TYPES: usize = 400;
pub(crate) const VERSIONS: usize = 200;

/// 400 machine types with different capabilities, and 200 versions with 4 flavors each.
pub(crate) fn profile() -> Value {
    let names: Vec<String> = (0..9).map(|bit| format!("c{bit}")).collect();
    let mut definitions = vec![json!({"name": "architecture", "values": ["amd64"]})];
    definitions.extend(names.iter().map(|name| json!({"name": name, "values": ["a", "b"]})));
    let machine_type = |number: usize| {
        let value = |bit: usize| if number >> bit & 1 == 0 { json!(["a"]) } else { json!(["a", "b"]) };
        let capabilities: Value =
            (0..9).map(|bit| (names[bit].clone(), value(bit))).collect::<serde_json::Map<_, _>>().into();
        json!({"name": format!("type-{number:03}"), "cpu": "4", "gpu": "0", "memory": "16Gi", "capabilities": capabilities})
    };
    let flavor = |number: usize| match number {
        0 => json!({"c0": ["b"], "c1": ["b"]}),
        1 => json!({"c0": ["b"], "c1": ["a"]}),
        2 => json!({"c0": ["a"], "c1": ["b"]}),
        _ => json!({"c0": ["a"], "c1": ["a"]}),
    };
    let version = |number: usize| format!("{}.{}.0", 100 + number / 10, number % 10);
    let core = |number: usize| json!({"version": version(number), "capabilityFlavors": (0..4).map(flavor).collect::<Vec<_>>()});
    let provider = |number: usize| {
        let flavors = (0..4).map(|position| {
            json!({"capabilities": flavor(position), "urn": format!("example:linux:f{position}:{}", version(number))})
        });
        json!({"version": version(number), "capabilityFlavors": flavors.collect::<Vec<_>>()})
    };
    json!({
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "CloudProfile",
        "metadata": {"name": "large"},
        "spec": {
            "type": "azure",
            "machineCapabilities": definitions,
            "regions": [{"name": "westeurope"}],
            "machineTypes": (0..TYPES).map(machine_type).collect::<Vec<_>>(),
            "machineImages": [{"name": "linux", "versions": (0..VERSIONS).map(core).collect::<Vec<_>>()}],
            "providerConfig": {
                "apiVersion": "azure.provider.extensions.gardener.cloud/v1alpha1",
                "kind": "CloudProfileConfig",
                "machineImages": [{"name": "linux", "versions": (0..VERSIONS).map(provider).collect::<Vec<_>>()}],
            },
        },
    })
}
