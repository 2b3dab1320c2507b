//! A seed with many Workers: what the controller holds in memory once it has listed them.

use std::cell::Cell;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::controller::Controller;
use test_support::cluster::{ADMIN, CONTROLLER, ControlPlane, eventually};
use test_support::shoot::Kind;

/// Machine deployments of each Worker.
const POOLS: [&str; 3] = ["bow", "mast", "stern"];
/// Without a request for so long a controller rests.
const QUIET: Duration = Duration::from_secs(3);
/// Most memory from the start on.
const MOST_MEMORY: f64 = 250.0;

/// A Worker of which nothing is requested, with its machine deployments, in a namespace of its own.
async fn create(client: &Client, number: usize) -> Result<()> {
    let namespace = format!("shoot--many--{number}");
    let document = serde_json::from_value(json!({"metadata": {"name": namespace}}))?;
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &document).await.context("a namespace")?;
    let api = |kind: Kind| -> Api<DynamicObject> { Api::namespaced_with(client.clone(), &namespace, &kind.resource()) };
    let name = |pool: &str| format!("{namespace}-{pool}-z1");
    let pools = POOLS.map(|pool| {
        json!({
            "name": pool, "machineType": "Standard_F4s_v2", "minimum": 1, "maximum": 3, "maxSurge": 1, "maxUnavailable": 0,
            "machineImage": {"name": "harborlinux", "version": "12.1.0"}, "architecture": "amd64", "zones": ["1"],
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
        "machineDeployments": POOLS.map(|pool| json!({"name": name(pool), "minimum": 1, "maximum": 3})),
    }});
    let document = json!({
        "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Worker", "metadata": metadata, "spec": spec,
    });
    api(Kind::Worker).create(&PostParams::default(), &serde_json::from_value(document)?).await.context("a Worker")?;
    api(Kind::Worker)
        .patch_status("fleet", &PatchParams::default(), &Patch::Merge(status))
        .await
        .context("its status")?;
    for pool in POOLS {
        let template = json!({
            "metadata": {"labels": {"name": name(pool)}},
            "spec": {
                "class": {"kind": "MachineClass", "name": format!("{}-0a1b2", name(pool))},
                "nodeTemplate": {"metadata": {"labels": labels(pool)}, "spec": {}},
            },
        });
        let document = json!({
            "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "MachineDeployment",
            "metadata": {
                "name": name(pool),
                "labels": {"worker.gardener.cloud/pool": pool, "worker.gardener.cloud/name": "fleet"},
                "annotations": {"gardener-extension-worker/class-inputs": "0123456789abcdef".repeat(96)},
            },
            "spec": {
                "replicas": 1, "minReadySeconds": 500, "selector": {"matchLabels": {"name": name(pool)}}, "template": template,
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            },
        });
        let created =
            api(Kind::MachineDeployment).create(&PostParams::default(), &serde_json::from_value(document)?).await;
        created.context("a machine deployment")?;
    }
    Ok(())
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
    let count: usize = std::env::var("WORKERS").map_or(Ok(7000), |count| count.parse())?;
    let control_plane = ControlPlane::start().await?;
    let client = control_plane.client(ADMIN).await?;
    let created = (0..count).map(|number| create(&client, number));
    stream::iter(created).buffer_unordered(16).try_collect::<Vec<_>>().await?;
    let controller = Controller::start(&control_plane, "many", CONTROLLER, |program| program)?;
    controller.ready("ready\n").await?;
    // Each Worker is reconciled once; then nothing is asked for any more.
    let last = Cell::new((0.0, Instant::now()));
    eventually(Duration::from_secs(300), "the controller comes to rest", async || {
        let asked = requests(&controller.metrics().await?, "");
        if asked != last.get().0 {
            last.set((asked, Instant::now()));
        }
        ensure!(last.get().1.elapsed() > QUIET, "{asked} requests, the last of them just now");
        Ok(())
    })
    .await?;
    let memory = controller.peak_memory().await?;
    let lists = requests(&controller.metrics().await?, "verb=\"list\"");
    println!("{count} Workers with {} machine deployments each: {memory:.1} MiB at most, {lists} lists", POOLS.len());
    ensure!(memory <= MOST_MEMORY, "{memory:.1} MiB");
    Ok(())
}
