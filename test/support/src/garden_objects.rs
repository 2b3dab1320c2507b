//! Objects that tests start from.

use serde_json::{Value, json};

const AZURE: &str = "azure.provider.extensions.gardener.cloud/v1alpha1";
const AWS: &str = "aws.provider.extensions.gardener.cloud/v1alpha1";

/// The label that Gardener sets on objects of a provider.
pub fn labels(provider: &str) -> Value {
    json!({format!("provider.extensions.gardener.cloud/{provider}"): "true"})
}

/// Azure's provider config with these versions of one image.
pub fn azure_config(versions: Value) -> Value {
    json!({
        "apiVersion": AZURE, "kind": "CloudProfileConfig",
        "countFaultDomains": [{"region": "westeurope", "count": 2}],
        "countUpdateDomains": [{"region": "westeurope", "count": 5}],
        "machineImages": [{"name": "linux", "versions": versions}],
    })
}

/// A CloudProfile for Azure with capabilities and all flavors.
pub fn azure_profile(name: &str) -> Value {
    json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "CloudProfile",
        "metadata": {"name": name, "labels": labels("azure")},
        "spec": {
            "type": "azure",
            "regions": [{"name": "westeurope"}],
            "kubernetes": {"versions": [{"version": "1.33.1"}]},
            "machineCapabilities": [
                {"name": "architecture", "values": ["amd64", "arm64"]},
                {"name": "hypervisorType", "values": ["gen2", "gen1"]},
                {"name": "azure-networking", "values": ["accelerated", "basic"]},
            ],
            "machineTypes": [{"name": "Standard_D4s_v5", "cpu": "4", "gpu": "0", "memory": "16Gi",
                "capabilities": {"architecture": ["amd64"]}}],
            "machineImages": [{"name": "linux", "updateStrategy": "major", "versions": [
                {"version": "1.0.0", "cri": [{"name": "containerd"}], "capabilityFlavors": [
                    {"architecture": ["amd64"], "hypervisorType": ["gen2"]},
                    {"architecture": ["arm64"]},
                ]},
            ]}],
            "providerConfig": azure_config(json!([{"version": "1.0.0", "capabilityFlavors": [
                {"capabilities": {"architecture": ["amd64"], "hypervisorType": ["gen2"]}, "urn": "a:b:c:1"},
                {"capabilities": {"architecture": ["arm64"]}, "urn": "a:b:c:2"},
            ]}])),
        },
    })
}

/// A CloudProfile for AWS in the old format.
pub fn aws_profile(name: &str) -> Value {
    json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "CloudProfile",
        "metadata": {"name": name, "labels": labels("aws")},
        "spec": {
            "type": "aws",
            "machineImages": [{"name": "linux", "versions": [{"version": "1.0.0", "architectures": ["amd64"]}]}],
            "providerConfig": {"apiVersion": AWS, "kind": "CloudProfileConfig", "machineImages": [
                {"name": "linux", "versions": [{"version": "1.0.0", "regions": [{"name": "eu-west-1", "ami": "ami-1"}]}]},
            ]},
        },
    })
}

/// A NamespacedCloudProfile that adds a version to an Azure parent.
pub fn namespaced_profile(namespace: &str, parent: &str) -> Value {
    json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "NamespacedCloudProfile",
        "metadata": {"name": "own", "namespace": namespace, "labels": labels("azure")},
        "spec": {
            "parent": {"kind": "CloudProfile", "name": parent},
            "machineImages": [{"name": "linux", "versions": [
                {"version": "2.0.0", "cri": [{"name": "containerd"}], "capabilityFlavors": [{"architecture": ["amd64"]}]},
            ]}],
            "providerConfig": {"apiVersion": AZURE, "kind": "CloudProfileConfig", "machineImages": [
                {"name": "linux", "versions": [
                    {"version": "2.0.0", "capabilityFlavors": [{"capabilities": {"architecture": ["amd64"]}, "urn": "a:b:c:3"}]},
                ]},
            ]},
        },
    })
}

/// A Shoot on Azure with one pool in zone 1.
pub fn azure_shoot(namespace: &str) -> Value {
    json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
        "metadata": {"name": "s", "namespace": namespace, "labels": labels("azure")},
        "spec": {"region": "westeurope", "provider": {
            "type": "azure",
            "infrastructureConfig": {"apiVersion": AZURE, "kind": "InfrastructureConfig", "zoned": true,
                "networks": {"workers": "10.250.0.0/16"}},
            "workers": [{"name": "a", "minimum": 1, "maximum": 2, "machine": {"type": "Standard_D4s_v5"}, "zones": ["1"],
                "volume": {"type": "Premium_LRS", "size": "50Gi"}}],
        }},
    })
}

/// The maximum size: etcd accepts 1.5 MiB, including managed fields.
pub const HUGE: usize = 1_500_000;

/// A complete profile of about that size.
pub fn huge_profile(name: &str) -> Value {
    let mut profile = azure_profile(name);
    let (mut core, mut provider) = (Vec::new(), Vec::new());
    let mut size = 0;
    while size < HUGE {
        let version = format!("1.{}.0", core.len());
        let flavors: Vec<Value> = ["gen2", "gen1"]
            .into_iter()
            .flat_map(|hypervisor| {
                ["amd64", "arm64"]
                    .map(|architecture| json!({"architecture": [architecture], "hypervisorType": [hypervisor]}))
            })
            .collect();
        let with_images = flavors.iter().map(|flavor| {
            let id = format!("/SharedGalleries/gallery-of-{name}/Images/linux/Versions/{version}");
            json!({"capabilities": flavor, "sharedGalleryImageID": id})
        });
        let listed = json!({"version": version, "capabilityFlavors": with_images.collect::<Vec<_>>()});
        let version = json!({"version": version, "cri": [{"name": "containerd"}], "capabilityFlavors": flavors});
        size += listed.to_string().len() + version.to_string().len();
        core.push(version);
        provider.push(listed);
    }
    profile["spec"]["machineImages"][0]["versions"] = core.into();
    profile["spec"]["providerConfig"]["machineImages"][0]["versions"] = provider.into();
    profile
}

/// An admission review for a new object.
pub fn review(resource: &str, object: &Value) -> Vec<u8> {
    review_of_change(resource, object, &Value::Null)
}

/// An admission review for a changed object, or a new one if `old` is null.
pub fn review_of_change(resource: &str, object: &Value, old: &Value) -> Vec<u8> {
    let operation = if old.is_null() { "CREATE" } else { "UPDATE" };
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "1-2-3", "operation": operation, "name": object["metadata"]["name"], "namespace": object["metadata"]["namespace"],
            "kind": {"group": "core.gardener.cloud", "version": "v1beta1", "kind": object["kind"]},
            "resource": {"group": "core.gardener.cloud", "version": "v1beta1", "resource": resource},
            "object": object, "oldObject": old, "dryRun": false,
        },
    });
    review.to_string().into_bytes()
}
