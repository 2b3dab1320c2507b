//! What gardenlet leaves in a seed for many shoots: always the same, so that two runs make the same objects.

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

const EXTENSIONS: &str = "extensions.gardener.cloud/v1alpha1";
const AZURE: &str = "azure.provider.extensions.gardener.cloud/v1alpha1";
/// Requests of gardenlet at a time.
const AT_ONCE: usize = 16;
/// As long as the scripts that Gardener writes.
const SCRIPT: usize = 8 * 1024;

/// How large a shoot is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) pools: usize,
    pub(crate) zones: usize,
    /// Machines of each pool, at least.
    pub(crate) machines: usize,
}

/// gardenlet, for many shoots.
#[derive(Clone)]
pub(crate) struct Gardenlet {
    pub(crate) client: Client,
    pub(crate) size: Size,
}

/// Name of the namespace of a shoot.
pub(crate) fn namespace(number: usize) -> String {
    format!("shoot--bench--{number:04}")
}

/// The resource of a kind.
pub(crate) fn resource(group_version: &str, kind: &str) -> ApiResource {
    let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

/// The resource of Workers.
pub(crate) fn workers() -> ApiResource {
    resource(EXTENSIONS, "Worker")
}

/// The resource of a kind of machine-controller-manager.
pub(crate) fn machine_kind(kind: &str) -> ApiResource {
    resource("machine.sapcloud.io/v1alpha1", kind)
}

impl Gardenlet {
    /// Makes namespaces with everything but the Worker.
    pub(crate) async fn prepare(&self, namespaces: &[String]) -> Result<()> {
        at_once(namespaces, async |namespace: String| {
            let document = json!({"metadata": {"name": namespace, "labels": {"gardener.cloud/role": "shoot"}}});
            let all: Api<Namespace> = Api::all(self.client.clone());
            all.create(&PostParams::default(), &serde_json::from_value(document)?).await?;
            self.create(cluster(&namespace)).await?;
            self.create(machine_controller_manager(&namespace)).await?;
            let scripts = (1..=self.size.pools).map(|pool| script(&namespace, pool));
            for secret in scripts.chain([credentials(&namespace)]) {
                self.create(secret).await?;
            }
            Ok(())
        })
        .await
    }

    /// Makes the Workers.
    pub(crate) async fn create_workers(&self, namespaces: &[String]) -> Result<()> {
        at_once(namespaces, async |namespace: String| self.create(worker(&namespace, self.size)).await).await
    }

    /// Asks for a reconciliation that changes nothing.
    pub(crate) async fn ask_again(&self, namespaces: &[String]) -> Result<()> {
        at_once(namespaces, async |namespace: String| self.patch_worker(&namespace, json!({})).await).await
    }

    /// Gives every pool another configuration of its nodes, which replaces all machines.
    pub(crate) async fn roll(&self, namespaces: &[String]) -> Result<()> {
        at_once(namespaces, async |namespace: String| {
            let mut pools = worker(&namespace, self.size)["spec"]["pools"].take();
            for pool in pools.as_array_mut().into_iter().flatten() {
                pool["nodeAgentSecretName"] = json!("gardener-node-agent-bench-rolled");
            }
            self.patch_worker(&namespace, json!({"spec": {"pools": pools}})).await
        })
        .await
    }

    async fn patch_worker(&self, namespace: &str, mut patch: Value) -> Result<()> {
        patch["metadata"]["annotations"]["gardener.cloud/operation"] = json!("reconcile");
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &workers());
        api.patch("worker", &PatchParams::default(), &Patch::Merge(patch)).await.context("changing a Worker")?;
        Ok(())
    }

    async fn create(&self, document: Value) -> Result<()> {
        let kind = document["kind"].as_str().unwrap_or_default().to_owned();
        let resource = resource(document["apiVersion"].as_str().unwrap_or_default(), &kind);
        let api: Api<DynamicObject> = match document["metadata"]["namespace"].as_str() {
            None => Api::all_with(self.client.clone(), &resource),
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
        };
        let object = serde_json::from_value(document)?;
        api.create(&PostParams::default(), &object).await.with_context(|| format!("creating a {kind}"))?;
        Ok(())
    }
}

async fn at_once<Work, Answer>(namespaces: &[String], work: Work) -> Result<()>
where
    Work: Fn(String) -> Answer,
    Answer: Future<Output = Result<()>>,
{
    let answers: Vec<_> = namespaces.iter().cloned().map(work).collect();
    stream::iter(answers).buffer_unordered(AT_ONCE).try_collect().await
}

fn cluster(namespace: &str) -> Value {
    json!({
        "apiVersion": EXTENSIONS, "kind": "Cluster", "metadata": {"name": namespace},
        "spec": {
            "cloudProfile": cloud_profile(),
            "seed": {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "metadata": {"name": "bench"}},
            "shoot": {
                "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
                "metadata": {"name": namespace.trim_start_matches("shoot--bench--"), "namespace": "garden-bench"},
                "spec": {"region": "swedencentral", "kubernetes": {"version": "1.34.3"}},
                "status": {"technicalID": namespace},
            },
        },
    })
}

/// 120 machine types and 24 versions of an image with four flavors each.
fn cloud_profile() -> Value {
    let architecture = |number: usize| if number % 4 == 3 { "arm64" } else { "amd64" };
    let types = (0..120).map(|number| {
        let capabilities = json!({"architecture": [architecture(number)], "azure-networking": ["accelerated", "basic"]});
        json!({
            "name": format!("Standard_D{number}s_v5"), "cpu": "4", "gpu": "0", "memory": "16Gi", "usable": true,
            "capabilities": capabilities,
        })
    });
    let versions = (0..24).map(|number| {
        let version = format!("12.{number}.0");
        let flavors = [("amd64", "accelerated"), ("amd64", "basic"), ("arm64", "accelerated"), ("arm64", "basic")];
        let flavors = flavors.map(|(architecture, networking)| {
            let image = format!("/CommunityGalleries/bench/Images/harborlinux-{architecture}-{networking}/Versions/{version}");
            json!({
                "capabilities": {"architecture": [architecture], "azure-networking": [networking]},
                "communityGalleryImageID": image,
            })
        });
        json!({"version": version, "capabilityFlavors": flavors})
    });
    json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "CloudProfile", "metadata": {"name": "azure-bench"},
        "spec": {
            "type": "azure",
            "machineCapabilities": [
                {"name": "architecture", "values": ["amd64", "arm64"]},
                {"name": "azure-networking", "values": ["accelerated", "basic"]},
            ],
            "machineTypes": types.collect::<Vec<_>>(),
            "providerConfig": {
                "apiVersion": AZURE, "kind": "CloudProfileConfig",
                "machineImages": [{"name": "harborlinux", "versions": versions.collect::<Vec<_>>()}],
            },
        },
    })
}

fn secret(namespace: &str, name: &str, data: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "type": "Opaque",
        "stringData": data,
    })
}

fn credentials(namespace: &str) -> Value {
    let ids = json!({"subscriptionID": "subscription", "tenantID": "tenant", "clientID": "client", "clientSecret": "none"});
    secret(namespace, "cloudprovider", ids)
}

fn script(namespace: &str, pool: usize) -> Value {
    let begin = format!("#!/bin/bash\n# pool {pool}\n");
    let script = format!("{begin}{}", "#".repeat(SCRIPT - begin.len()));
    secret(namespace, &format!("boot-{pool}"), json!({"script": script}))
}

fn machine_controller_manager(namespace: &str) -> Value {
    let labels = json!({"role": "machine-controller-manager"});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "machine-controller-manager", "namespace": namespace},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "none", "image": "none"}]}},
        },
    })
}

fn worker(namespace: &str, size: Size) -> Value {
    json!({
        "apiVersion": EXTENSIONS, "kind": "Worker",
        "metadata": {
            "name": "worker", "namespace": namespace, "annotations": {"gardener.cloud/operation": "reconcile"},
        },
        "spec": {
            "type": "azure", "region": "swedencentral",
            "secretRef": {"name": "cloudprovider", "namespace": namespace},
            "infrastructureProviderStatus": {
                "apiVersion": AZURE, "kind": "InfrastructureStatus", "zoned": true,
                "resourceGroup": {"name": namespace},
                "networks": {
                    "layout": "SingleSubnet", "vnet": {"name": namespace},
                    "subnets": [{"purpose": "nodes", "name": format!("{namespace}-nodes")}],
                },
            },
            "pools": (1..=size.pools).map(|number| pool(number, size)).collect::<Vec<_>>(),
        },
    })
}

fn pool(number: usize, size: Size) -> Value {
    let (machine_type, architecture) =
        if number.is_multiple_of(3) { ("Standard_D3s_v5", "arm64") } else { ("Standard_D4s_v5", "amd64") };
    json!({
        "name": format!("pool-{number}"), "architecture": architecture, "machineType": machine_type,
        "machineImage": {"name": "harborlinux", "version": "12.3.0"},
        "minimum": size.machines, "maximum": 2 * size.machines, "maxSurge": 1, "maxUnavailable": 0,
        "zones": (1..=size.zones).map(|zone| zone.to_string()).collect::<Vec<_>>(),
        "kubernetesVersion": "1.34.3",
        "labels": {"node.kubernetes.io/role": "node", "worker.gardener.cloud/pool": format!("pool-{number}")},
        "annotations": {"bench.example/pool": number.to_string()},
        "nodeTemplate": {"capacity": {"cpu": "4", "gpu": "0", "memory": "16Gi"}},
        "nodeAgentSecretName": "gardener-node-agent-bench",
        "userDataSecretRef": {"name": format!("boot-{number}"), "key": "script"},
        "volume": {"type": "Premium_LRS", "size": "64Gi"},
        "providerConfig": {"apiVersion": AZURE, "kind": "WorkerConfig", "volume": {"caching": "None"}},
    })
}
