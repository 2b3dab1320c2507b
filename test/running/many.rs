//! A seed with many Workers: what the controller holds in memory once it has listed them.

use std::cell::Cell;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use crate::controller::Controller;
use test_support::cluster::{ADMIN, CONTROLLER, ControlPlane, eventually};
use test_support::shoot::Kind;

/// Pools of each Worker.
const POOLS: [&str; 3] = ["bow", "mast", "stern"];
/// A controller without a request for so long has done what there is.
const QUIET: Duration = Duration::from_secs(3);
/// Until then it has, on a busy machine too.
const LATEST: Duration = Duration::from_secs(300);

/// How large a seed is.
#[derive(Clone, Copy)]
struct Size {
    workers: usize,
    /// Of each pool; each has a machine deployment.
    zones: &'static [&'static str],
    /// Of each Worker.
    machines: usize,
    /// Most MiB from the start on.
    most_memory: f64,
}

/// A Worker of which nothing is requested, with its machine deployments and machines, in a namespace of its own.
async fn create(client: &Client, number: usize, size: Size) -> Result<()> {
    let namespace = format!("shoot--many--{number}");
    let document = serde_json::from_value(json!({"metadata": {"name": namespace}}))?;
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &document).await.context("a namespace")?;
    let api = |kind: Kind| -> Api<DynamicObject> { Api::namespaced_with(client.clone(), &namespace, &kind.resource()) };
    let deployments: Vec<(&str, String)> = POOLS
        .iter()
        .flat_map(|pool| {
            size.zones.iter().map(|zone| (*pool, format!("{namespace}-{pool}-z{zone}"))).collect::<Vec<_>>()
        })
        .collect();
    let pools = POOLS.map(|pool| {
        json!({
            "name": pool, "machineType": "Standard_F4s_v2", "minimum": 1, "maximum": 3, "maxSurge": 1, "maxUnavailable": 0,
            "machineImage": {"name": "harborlinux", "version": "12.1.0"}, "architecture": "amd64", "zones": size.zones,
            "userDataSecretRef": {"name": format!("gardener-node-agent-{pool}"), "key": "cloud_config"},
            "labels": labels(pool), "volume": {"type": "Premium_LRS", "size": "50Gi"},
        })
    });
    let spec = json!({
        "type": "azure", "region": "swedencentral", "secretRef": {"name": "cloudprovider", "namespace": namespace},
        "pools": pools,
    });
    let metadata = json!({"name": "fleet", "finalizers": ["extensions.gardener.cloud/worker"]});
    let condition = |name: &str, message: &str| {
        let time = "2026-01-01T00:00:00Z";
        json!({
            "type": name, "status": "True", "reason": "AllPoolsReady", "message": message,
            "lastTransitionTime": time, "lastUpdateTime": time,
        })
    };
    let status = json!({"status": {
        "observedGeneration": 1,
        "lastOperation": {
            "type": "Reconcile", "state": "Succeeded", "progress": 100, "description": "Successfully reconciled Worker",
            "lastUpdateTime": "2026-01-01T00:00:00Z",
        },
        "conditions": [
            condition("PoolsDeployed", "All 3 pools are deployed."), condition("ImageResolved", "All 3 pools have an image."),
            condition("PoolsReady", "All 3 pools are ready."), condition("EveryNodeReady", "All machine deployments are healthy."),
        ],
        "machineDeployments": deployments.iter().map(|(_, name)| json!({"name": name, "minimum": 1, "maximum": 3})).collect::<Vec<_>>(),
    }});
    let document = json!({
        "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Worker", "metadata": metadata, "spec": spec,
    });
    api(Kind::Worker).create(&PostParams::default(), &serde_json::from_value(document)?).await.context("a Worker")?;
    api(Kind::Worker)
        .patch_status("fleet", &PatchParams::default(), &Patch::Merge(status))
        .await
        .context("its status")?;
    for (pool, name) in &deployments {
        let document = serde_json::from_value(deployment(pool, name))?;
        let created = api(Kind::MachineDeployment).create(&PostParams::default(), &document).await;
        created.context("a machine deployment")?;
    }
    for (number, (pool, name)) in deployments.iter().cycle().take(size.machines).enumerate() {
        let (document, status) = machine(pool, name, &format!("{name}-5d4c8-{number}"));
        let machine = api(Kind::Machine).create(&PostParams::default(), &serde_json::from_value(document)?).await;
        let machine = machine.context("a machine")?.name_any();
        let written = api(Kind::Machine).patch_status(&machine, &PatchParams::default(), &Patch::Merge(status)).await;
        written.context("its status")?;
    }
    Ok(())
}

fn deployment(pool: &str, name: &str) -> Value {
    let template = json!({
        "metadata": {"labels": {"name": name}},
        "spec": {
            "class": {"kind": "MachineClass", "name": format!("{name}-0a1b2")},
            "nodeTemplate": {"metadata": {"labels": labels(pool)}, "spec": {}},
        },
    });
    json!({
        "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "MachineDeployment",
        "metadata": {
            "name": name, "labels": {"worker.gardener.cloud/pool": pool, "worker.gardener.cloud/name": "fleet"},
            "annotations": {"gardener-extension-worker/class-inputs": "0123456789abcdef".repeat(96)},
        },
        "spec": {
            "replicas": 1, "minReadySeconds": 500, "selector": {"matchLabels": {"name": name}}, "template": template,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        },
    })
}

/// A machine that runs, and its status.
fn machine(pool: &str, deployment: &str, name: &str) -> (Value, Value) {
    let time = "2026-01-01T00:00:00Z";
    let document = json!({
        "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "Machine",
        "metadata": {
            "name": name, "labels": {"name": deployment, "node": format!("{name}-node")}, "finalizers": ["machine.sapcloud.io/machine-controller"],
        },
        "spec": {
            "class": {"kind": "MachineClass", "name": format!("{deployment}-0a1b2")}, "providerID": format!("azure:///{name}"),
            "nodeTemplate": {"metadata": {"labels": labels(pool)}, "spec": {}},
        },
    });
    let condition = |name: &str| {
        json!({
            "type": name, "status": "False", "reason": "KubeletIsFine", "message": "nothing is wrong with the node",
            "lastHeartbeatTime": time, "lastTransitionTime": time,
        })
    };
    let conditions = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"].map(condition);
    let status = json!({"status": {
        "currentStatus": {"phase": "Running", "lastUpdateTime": time},
        "lastOperation": {"type": "HealthCheck", "state": "Successful", "description": "the node is healthy", "lastUpdateTime": time},
        "conditions": conditions,
    }});
    (document, status)
}

/// Requests of the controller whose series has that label.
fn requests(metrics: &str, label: &str) -> f64 {
    let series = metrics.lines().filter(|line| line.contains("requests_total") && line.contains(label));
    series.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).fold(0.0, |all, count| all + count)
}

fn labels(pool: &str) -> Value {
    json!({
        "networking.gardener.cloud/node-local-dns-enabled": "true", "node.kubernetes.io/role": "node",
        "worker.garden.sapcloud.io/group": pool, "worker.gardener.cloud/cri-name": "containerd",
        "worker.gardener.cloud/pool": pool, "worker.gardener.cloud/system-components": "true",
    })
}

#[tokio::test]
#[ignore = "7,000 Workers (WORKERS has another number); runs by name, for the figures of docs/performance.md"]
async fn a_start_with_thousands_of_workers_takes_bounded_memory() -> Result<()> {
    start(Size { workers: workers()?, zones: &["1"], machines: 0, most_memory: 250.0 }).await
}

#[tokio::test]
#[ignore = "7,000 Workers (WORKERS has another number) with 63,000 machine deployments and 49,000 machines; runs by name, for the figures of docs/performance.md"]
async fn a_start_with_the_largest_landscape_takes_bounded_memory() -> Result<()> {
    start(Size { workers: workers()?, zones: &["1", "2", "3"], machines: 7, most_memory: 500.0 }).await
}

fn workers() -> Result<usize> {
    Ok(std::env::var("WORKERS").map_or(Ok(7000), |count| count.parse())?)
}

/// Starts a controller on a seed of that size, until it asks for nothing any more.
#[allow(clippy::print_stdout, reason = "the figures are for who runs it")]
async fn start(size: Size) -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    let client = control_plane.client(ADMIN).await?;
    let created = (0..size.workers).map(|number| create(&client, number, size));
    stream::iter(created).buffer_unordered(16).try_collect::<Vec<_>>().await?;
    let began = Instant::now();
    let controller = Controller::start(&control_plane, "many", CONTROLLER, |program| program)?;
    controller.ready("ready\n").await?;
    // Each Worker is reconciled once; then nothing is asked for any more.
    let last = Cell::new((0.0, Instant::now()));
    eventually(LATEST, "the controller asks for nothing", async || {
        let asked = requests(&controller.metrics().await?, "");
        if asked != last.get().0 {
            last.set((asked, Instant::now()));
        }
        ensure!(last.get().1.elapsed() > QUIET, "{asked} requests, the last of them just now");
        Ok(())
    })
    .await?;
    let known = last.get().1.duration_since(began);
    let memory = controller.peak_memory().await?;
    let lists = requests(&controller.metrics().await?, "verb=\"list\"");
    let Size { workers, zones, machines, most_memory } = size;
    println!(
        "{workers} Workers with {} machine deployments and {machines} machines each: all known after {known:.1?}, {memory:.1} MiB at most, \
         {lists} lists",
        POOLS.len() * zones.len()
    );
    ensure!(memory <= most_memory, "{memory:.1} MiB");
    Ok(())
}
