//! `cloudprofile capability` reports what depends on a capability, and what breaks without it.

use serde_json::{Value, json};

use super::{AT, example, replaced};
use crate::binary::{Outcome, command, outcome};
use crate::json::assert_described;

fn request(capability: &str, documents: &[String], arguments: &[&str]) -> Outcome {
    let arguments = [&["cloudprofile", "capability", capability, "-"], &AT[..], arguments].concat();
    outcome(command(&arguments), &documents.join("\n---\n"))
}

/// A Shoot with a pool for each machine type.
fn shoot(name: &str, profile: &Value, machine_types: &[&str]) -> String {
    let pools = machine_types.iter().enumerate().map(|(number, machine_type)| {
        let architecture = if machine_type.contains("ps_") { "arm64" } else { "amd64" };
        let image = json!({"name": "gardenlinux", "version": "1877.3.0"});
        json!({
            "name": format!("pool-{number}"), "minimum": 1, "maximum": 2,
            "machine": {"type": machine_type, "architecture": architecture, "image": image},
        })
    });
    let spec = json!({
        "cloudProfile": profile, "region": "westeurope", "kubernetes": {"version": "1.34.2"},
        "provider": {"type": "azure", "workers": pools.collect::<Vec<_>>()},
    });
    json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
        "metadata": {"name": name, "namespace": "garden-farm"}, "spec": spec,
    })
    .to_string()
}

fn namespaced() -> String {
    json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "NamespacedCloudProfile",
        "metadata": {"name": "own", "namespace": "garden-farm"},
        "spec": {
            "parent": {"kind": "CloudProfile", "name": "azure"},
            "machineTypes": [{
                "name": "Standard_Own", "cpu": "4", "gpu": "0", "memory": "8Gi",
                "capabilities": {"architecture": ["amd64"], "hypervisorType": ["gen1"]},
            }],
        },
    })
    .to_string()
}

fn documents() -> Vec<String> {
    let profile = json!({"kind": "CloudProfile", "name": "azure"});
    let own = json!({"kind": "NamespacedCloudProfile", "name": "own"});
    vec![
        example("azure"),
        namespaced(),
        shoot("web", &profile, &["Standard_A4_v2", "Standard_D4s_v5", "Standard_D4ps_v5"]),
        shoot("own", &own, &["Standard_Own"]),
    ]
}

#[test]
fn value_names_everything_that_depends_on_it() {
    let output = request("hypervisorType=gen1", &documents(), &["-o", "json"]);
    assert_eq!(output.code, 4, "{output:?}");
    let document = output.json();
    let profile = &document["profiles"][0];
    assert_eq!(profile["machineTypes"], json!(["Standard_A4_v2"]));
    let versions: Vec<&Value> =
        profile["versions"].as_array().unwrap().iter().map(|version| &version["version"]).collect();
    assert_eq!(versions, ["2001.1.0", "1877.3.0", "1592.9.0"]);
    let child = &profile["namespacedCloudProfiles"][0];
    assert_eq!((&child["name"], &child["lists"]), (&json!("garden-farm/own"), &json!(true)));
    assert_eq!(child["machineTypes"], json!(["Standard_A4_v2", "Standard_Own"]));
    let pools: Vec<[&Value; 3]> = profile["pools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pool| ["shoot", "machineType", "loss"].map(|member| &pool[member]))
        .collect();
    let deleted = json!("its machine type has to go");
    assert_eq!(
        pools,
        [
            [&json!("garden-farm/web"), &json!("Standard_A4_v2"), &deleted],
            [&json!("garden-farm/own"), &json!("Standard_Own"), &deleted],
        ]
    );
    assert_eq!(profile["without"]["machineTypes"], json!(["Standard_A4_v2"]));
    assert_eq!(document["evidence"]["notGiven"], json!([]));
}

#[test]
fn whole_capability_can_be_removed_without_effect() {
    let unused = replaced(
        &example("azure"),
        &[(
            "  - name: azure-networking\n",
            "  - name: rdma\n    values: [none, infiniband]\n  - name: azure-networking\n",
        )],
    );
    let output = request("rdma", std::slice::from_ref(&unused), &[]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stdout.contains("rdma        removed"), "{}", output.stdout);
    let listed = replaced(
        &unused,
        &[(
            "hypervisorType: [gen1], azure-networking: [basic]",
            "hypervisorType: [gen1], rdma: [none], azure-networking: [basic]",
        )],
    );
    assert_eq!(
        request("rdma", std::slice::from_ref(&listed), &[]).code,
        1,
        "a machine type lists it, and nothing breaks"
    );
    assert_eq!(request("rdma=infiniband", &[listed], &[]).code, 0);
    // Flavors that differ only in the generation become equal.
    let output = request("hypervisorType", &[example("azure")], &["-o", "json"]);
    assert_eq!(output.code, 4, "{output:?}");
    let effects = &output.json()["profiles"][0]["without"]["combinations"];
    assert_eq!(effects[0]["effect"], "vanishes", "{effects}");
    assert_eq!(request("architecture", &[example("azure")], &[]).code, 4);
}

#[test]
fn unknown_capabilities_are_errors() {
    let profile = [example("azure")];
    for (capability, code, error) in [
        ("hypervisortype", 3, "no capability \"hypervisortype\""),
        ("hypervisorType=gen3", 3, "no value of hypervisorType \"gen3\""),
        ("=gen1", 2, "a capability or one of its values"),
    ] {
        let output = request(capability, &profile, &[]);
        assert_eq!((output.code, output.stdout.as_str()), (code, ""), "{capability}: {output:?}");
        assert!(output.stderr.contains(error), "{capability}: {}", output.stderr);
    }
    let unknown = shoot("web", &json!({"kind": "NamespacedCloudProfile", "name": "none"}), &["Standard_A4_v2"]);
    let output = request("hypervisorType=gen1", &[example("azure"), unknown], &["-o", "json"]);
    assert_eq!(output.code, 3, "it may extend the profile: {output:?}");
    let not_given = request("hypervisorType=gen1", &profile, &["-o", "json"]).json()["evidence"]["notGiven"].clone();
    assert_eq!(not_given.as_array().unwrap().len(), 2, "Shoots and NamespacedCloudProfiles: {not_given}");
}

#[test]
fn capability_prints_what_is_described() {
    let value = request("hypervisorType=gen1", &documents(), &["-o", "json"]);
    let whole = request("hypervisorType", &documents(), &["-o", "json"]);
    let aws = request("bootMode", &[example("aws")], &["-o", "json"]);
    let architecture = request("architecture", &[example("azure")], &["-o", "json"]);
    // A profile in which a version has only this flavor.
    let only = replaced(
        &example("azure"),
        &[
            (
                "      - {architecture: [amd64], hypervisorType: [gen2]}\n      - {architecture: [amd64], hypervisorType: [gen1]}\n  providerConfig",
                "      - {architecture: [amd64], hypervisorType: [gen1]}\n  providerConfig",
            ),
            (
                "        - capabilities: {architecture: [amd64], hypervisorType: [gen2]}\n          urn: example:gardenlinux:gen2:1592.9.0\n",
                "",
            ),
        ],
    );
    let version = request("hypervisorType=gen1", &[only], &["-o", "json"]);
    assert_eq!(version.json()["profiles"][0]["without"]["versions"], json!(["gardenlinux 1592.9.0"]));
    let all = [value, whole, aws, architecture, version].map(|output| output.json());
    assert_described(&all, "cloudprofile capability -o json");
}
