//! The load: gardenlet's objects in the namespace of a shoot on Azure. The Go extension was measured with the same
//! documents, so results and digests are comparable.

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

/// The operation annotation, and the annotation with its timestamp.
pub(crate) const OPERATION: &str = "gardener.cloud/operation";
const TIMESTAMP: &str = "gardener.cloud/timestamp";
/// Number of concurrent gardenlet requests.
pub(crate) const SIDE_BY_SIDE: usize = 16;

const REGION: &str = "westeurope";
const KUBERNETES: &str = "1.33.4";
const IMAGE: &str = "gardenlinux";
const IMAGE_VERSION: &str = "1877.3.0";
const AZURE: &str = "azure.provider.extensions.gardener.cloud/v1alpha1";
const USER_DATA_BYTES: usize = 8192;

/// The size of a Worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) pools: usize,
    pub(crate) zones: usize,
}

/// The namespace of a shoot.
pub(crate) fn namespace(shoot: &str) -> String {
    format!("shoot--bench--{shoot}")
}

/// The Worker's name in a namespace.
pub(crate) fn worker_name(namespace: &str) -> &str {
    namespace.trim_start_matches("shoot--bench--")
}

/// Creates everything except the Workers, in new namespaces.
pub(crate) async fn prepare(client: &Client, namespaces: &[String], size: Size) -> Result<()> {
    prepare_with(client, namespaces, size, |document| document).await
}

/// Same as [`prepare`], with Clusters changed by `documents`.
pub(crate) async fn prepare_with(
    client: &Client,
    namespaces: &[String],
    size: Size,
    documents: impl Fn(Value) -> Value,
) -> Result<()> {
    let prepared = namespaces.iter().map(|namespace| prepare_one(client, namespace, size, &documents));
    let prepared: Vec<_> = prepared.collect();
    stream::iter(prepared).buffer_unordered(SIDE_BY_SIDE).try_collect().await
}

async fn prepare_one(client: &Client, namespace: &str, size: Size, documents: &impl Fn(Value) -> Value) -> Result<()> {
    let labels = json!({"gardener.cloud/role": "shoot", "shoot.gardener.cloud/provider": "azure"});
    create(client, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}))
        .await?;
    create(client, documents(cluster(namespace))).await?;
    let azure: Value = ["subscriptionID", "tenantID", "clientID"]
        .into_iter()
        .zip(1..)
        .map(|(key, number)| (key.to_owned(), json!(bytes(&format!("00000000-0000-0000-0000-00000000000{number}")))))
        .chain([("clientSecret".to_owned(), json!(bytes("not-a-secret")))])
        .collect();
    create(client, secret(namespace, "cloudprovider", azure)).await?;
    for number in 1..=size.pools {
        let mut text = format!("#!/bin/bash\n# pool-{number}\nTOKEN=<<BOOTSTRAP_TOKEN>>\nMACHINE=<<MACHINE_NAME>>\n");
        text.extend(std::iter::repeat_n('#', USER_DATA_BYTES - text.len()));
        let data = json!({"cloud_config": bytes(&text)});
        create(client, secret(namespace, &format!("user-data-pool-{number}"), data)).await?;
    }
    let mut deployment = create(client, machine_controller_manager(namespace)).await?;
    deployment.data = json!({"status": {
        "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
        "conditions": [{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}],
    }});
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource("apps/v1", "Deployment"));
    let patch = Patch::Merge(json!({"status": deployment.data["status"]}));
    api.patch_status("machine-controller-manager", &PatchParams::default(), &patch).await?;
    Ok(())
}

pub(crate) fn resource(group_version: &str, kind: &str) -> ApiResource {
    let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

pub(crate) async fn create(client: &Client, document: Value) -> Result<DynamicObject> {
    let text = |member: &Value| member.as_str().unwrap_or_default().to_owned();
    let (kind, name) = (text(&document["kind"]), text(&document["metadata"]["name"]));
    let resource = resource(&text(&document["apiVersion"]), &kind);
    let api = match document["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let object = serde_json::from_value(document)?;
    api.create(&PostParams::default(), &object).await.with_context(|| format!("creating {kind} {name}"))
}

fn bytes(text: &str) -> ByteString {
    ByteString(text.as_bytes().to_vec())
}

fn secret(namespace: &str, name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "type": "Opaque", "data": data})
}

fn cloud_profile() -> Value {
    let gallery = |image: &str| {
        format!("/CommunityGalleries/gardenlinux-13e998fe/Images/gardenlinux-{image}/Versions/{IMAGE_VERSION}")
    };
    let (amd64, arm64) = (
        json!({"architecture": ["amd64"], "azure-networking": ["accelerated", "basic"]}),
        json!({"architecture": ["arm64"]}),
    );
    let machine_type = |name: &str| json!({"name": name, "cpu": "4", "gpu": "0", "memory": "16Gi", "usable": true});
    let mut machine_types = [machine_type("Standard_D4s_v5"), machine_type("Standard_D4ps_v5")];
    machine_types[0]["capabilities"] = json!({"architecture": ["amd64"], "azure-networking": ["accelerated", "basic"]});
    machine_types[1]["capabilities"] = json!({"architecture": ["arm64"], "azure-networking": ["basic"]});
    machine_types[1]["architecture"] = json!("arm64");
    json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "CloudProfile", "metadata": {"name": "azure"}, "spec": {
        "type": "azure",
        "kubernetes": {"versions": [{"version": KUBERNETES}]},
        "regions": [{"name": REGION, "zones": [{"name": "1"}, {"name": "2"}, {"name": "3"}]}],
        "machineCapabilities": [
            {"name": "architecture", "values": ["amd64", "arm64"]},
            {"name": "azure-networking", "values": ["accelerated", "basic"]},
        ],
        "machineTypes": machine_types,
        "machineImages": [{"name": IMAGE, "versions": [{
            "version": IMAGE_VERSION, "architectures": ["amd64", "arm64"], "capabilityFlavors": [amd64, arm64],
        }]}],
        "volumeTypes": [{"name": "Premium_LRS", "class": "premium"}],
        "providerConfig": {
            "apiVersion": AZURE, "kind": "CloudProfileConfig",
            "countUpdateDomains": [], "countFaultDomains": [{"region": REGION, "count": 3}],
            "machineImages": [{"name": IMAGE, "versions": [{"version": IMAGE_VERSION, "capabilityFlavors": [
                {"capabilities": amd64, "communityGalleryImageID": gallery("nvme-gen2")},
                {"capabilities": arm64, "communityGalleryImageID": gallery("arm64-gen2")},
            ]}]}],
        },
    }})
}

/// Removes capabilities and volume caching from a Cluster, a Worker or a patch, so that images are selected by
/// architecture.
pub(crate) fn without_capabilities(mut document: Value) -> Value {
    for pool in document.pointer_mut("/spec/pools").and_then(Value::as_array_mut).into_iter().flatten() {
        pool["providerConfig"].as_object_mut().into_iter().for_each(|config| drop(config.remove("volume")));
    }
    let Some(spec) = document.pointer_mut("/spec/cloudProfile/spec") else { return document };
    spec.as_object_mut().into_iter().for_each(|members| drop(members.remove("machineCapabilities")));
    let types = spec["machineTypes"].as_array_mut().into_iter().flatten();
    types.filter_map(Value::as_object_mut).for_each(|members| drop(members.remove("capabilities")));
    spec["machineImages"][0]["versions"] = json!([{"version": IMAGE_VERSION, "architectures": ["amd64", "arm64"]}]);
    let config = &mut spec["providerConfig"];
    let flavors = config["machineImages"][0]["versions"][0]["capabilityFlavors"].take();
    let image = |flavor: usize, architecture: &str, members: Value| {
        let mut image = json!({
            "version": IMAGE_VERSION, "architecture": architecture,
            "communityGalleryImageID": flavors[flavor]["communityGalleryImageID"],
        });
        json_patch::merge(&mut image, &members);
        image
    };
    config["machineImages"][0]["versions"] =
        json!([image(0, "amd64", json!({"acceleratedNetworking": true})), image(1, "arm64", json!({}))]);
    config["machineTypes"] = json!([{"name": "Standard_D4s_v5", "acceleratedNetworking": true}]);
    document
}

fn cluster(namespace: &str) -> Value {
    json!({"apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Cluster", "metadata": {"name": namespace}, "spec": {
        "cloudProfile": cloud_profile(),
        "seed": {
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "metadata": {"name": "bench"},
            "spec": {"provider": {"type": "azure", "region": REGION}},
        },
        "shoot": {
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
            "metadata": {"name": worker_name(namespace), "namespace": "garden-bench", "generation": 1},
            "spec": {
                "region": REGION, "kubernetes": {"version": KUBERNETES},
                "cloudProfile": {"kind": "CloudProfile", "name": "azure"},
                "provider": {"type": "azure", "workers": []},
                "networking": {"type": "calico", "nodes": "10.250.0.0/16"},
            },
            "status": {"technicalID": namespace, "lastOperation": {
                "type": "Reconcile", "state": "Processing", "progress": 50,
                "lastUpdateTime": "2025-01-01T00:00:00Z", "description": "bench",
            }},
        },
    }})
}

fn pool(number: usize, size: Size) -> Value {
    let (machine_type, architecture) = match number {
        2 if size.pools >= 3 => ("Standard_D4ps_v5", "arm64"),
        _ => ("Standard_D4s_v5", "amd64"),
    };
    let name = format!("pool-{number}");
    json!({
        "name": name, "architecture": architecture, "machineType": machine_type,
        "machineImage": {"name": IMAGE, "version": IMAGE_VERSION},
        "minimum": 3, "maximum": 6, "maxSurge": 1, "maxUnavailable": 0,
        "kubernetesVersion": KUBERNETES, "updateStrategy": "AutoRollingUpdate",
        "zones": (1..=size.zones).map(|zone| zone.to_string()).collect::<Vec<_>>(),
        "labels": {
            "node.kubernetes.io/role": "node", "worker.gardener.cloud/pool": name,
            "worker.gardener.cloud/cri-name": "containerd", "kubernetes.io/arch": architecture,
        },
        "annotations": {"node.machine.sapcloud.io/example": "bench"},
        "taints": if number == 2 { json!([{"key": "bench", "value": "true", "effect": "PreferNoSchedule"}]) } else { json!([]) },
        "nodeTemplate": {"capacity": {"cpu": "4", "gpu": "0", "memory": "16Gi"}},
        "nodeAgentSecretName": "gardener-node-agent-bench-77ac3",
        "userDataSecretRef": {"name": format!("user-data-{name}"), "key": "cloud_config"},
        "volume": {"type": "Premium_LRS", "size": "64Gi"},
        "dataVolumes":
            if number == 3 { json!([{"name": "data", "type": "Premium_LRS", "size": "20Gi"}]) } else { json!([]) },
        "providerConfig": {"apiVersion": AZURE, "kind": "WorkerConfig", "volume": {"caching": "None"}},
    })
}

/// A Worker as gardenlet writes it, with the operation annotation.
pub(crate) fn worker(namespace: &str, size: Size) -> Value {
    json!({
        "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Worker",
        "metadata": {
            "name": worker_name(namespace), "namespace": namespace, "annotations": {OPERATION: "reconcile"},
        },
        "spec": {
            "type": "azure", "region": REGION, "secretRef": {"name": "cloudprovider", "namespace": namespace},
            "sshPublicKey": bytes("ssh-rsa AAAAB3NzaC1yc2E bench"),
            "infrastructureProviderStatus": {
                "apiVersion": AZURE, "kind": "InfrastructureStatus", "zoned": true,
                "resourceGroup": {"name": namespace},
                "networks": {
                    "layout": "SingleSubnet", "vnet": {"name": namespace},
                    "subnets": [{"purpose": "nodes", "name": format!("{namespace}-nodes")}],
                },
                "routeTables": [{"purpose": "nodes", "name": "worker_route_table"}],
                "securityGroups": [{"purpose": "nodes", "name": format!("{namespace}-workers")}],
            },
            "pools": (1..=size.pools).map(|number| pool(number, size)).collect::<Vec<_>>(),
        },
    })
}

/// gardenlet's merge patch to request a reconcile.
pub(crate) fn request() -> Value {
    json!({"metadata": {"annotations": {OPERATION: "reconcile", TIMESTAMP: Timestamp::now().to_string()}}})
}

/// Same as [`request`], with another node agent Secret for the first pools, whose machines roll.
pub(crate) fn roll(namespace: &str, size: Size, rolling_pools: usize) -> Value {
    let mut pools = worker(namespace, size)["spec"]["pools"].take();
    for pool in pools.as_array_mut().into_iter().flatten().take(rolling_pools) {
        pool["nodeAgentSecretName"] = json!("gardener-node-agent-bench-rolled");
    }
    let mut patch = request();
    patch["spec"] = json!({ "pools": pools });
    patch
}

fn machine_controller_manager(namespace: &str) -> Value {
    let labels = json!({"role": "machine-controller-manager"});
    let container = json!({"name": "mcm", "image": "registry.invalid/mcm:none"});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "machine-controller-manager", "namespace": namespace, "labels": labels},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    })
}
