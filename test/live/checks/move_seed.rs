//! A shoot whose control plane moves to another seed keeps its machines: their objects go and come back, the nodes stay.
//!
//! One control plane plays both seeds. The test does what gardenlet does: it keeps the machines, takes their objects away
//! after `migrate`, and asks for `restore` in the place where nothing of the shoot is left but its VMs.

use std::io::Write as _;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use flate2::Compression;
use flate2::write::GzEncoder;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::cluster::{CONTROLLER, Deletion, MachineControllerManager, eventually};
use crate::program;
use crate::shoot::{Kind, SOON, Shoot};

#[tokio::test]
async fn a_shoot_that_moves_to_another_seed_keeps_its_nodes() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "move").await?;
    let machines = MachineControllerManager::start(cluster, &shoot.namespace, Deletion::Hastened).await?;
    shoot.create(|_| {}).await?;
    shoot.succeeded().await?;
    let nodes = shoot.ready_nodes().await?;
    let identities = identities_of_machines(&shoot).await?;
    ensure!(nodes.len() == 3 && identities.len() == 3, "three machines: {nodes:?}, {identities:?}");
    let kept = kept_machines(&shoot).await?;

    ask(&shoot, "migrate").await?;
    let moved = eventually(SOON, "the Worker is let go", async || {
        let worker = shoot.worker().await?;
        ensure!(worker["metadata"]["finalizers"].is_null(), "it is held by {}", worker["metadata"]["finalizers"]);
        Ok(worker)
    })
    .await?;
    ensure!(operation(&moved).is_null(), "the request is still there");
    let last = &moved["status"]["lastOperation"];
    ensure!(last["type"] == "Migrate" && last["state"] == "Succeeded" && last["progress"] == 100, "{last}");
    ensure!(identities_of_machines(&shoot).await? == identities, "migrate has touched the machines");
    machines.stop().await?;
    take_away(&shoot).await?;

    restored_worker(&shoot, &moved, &kept).await?;
    ask(&shoot, "restore").await?;
    eventually(SOON, "machine-controller-manager may start", async || {
        let replicas = &machine_controller(&shoot).await?["spec"]["replicas"];
        ensure!(replicas == 1, "it has {replicas} replicas");
        Ok(())
    })
    .await?;
    ensure!(identities_of_machines(&shoot).await? == identities, "it starts before all machines are back");
    ensure!(shoot.list(Kind::MachineDeployment).await?.len() == 3, "it starts before all deployments are back");
    let _machines = MachineControllerManager::start(cluster, &shoot.namespace, Deletion::Hastened).await?;

    let worker = shoot.succeeded().await?;
    let last = &worker["status"]["lastOperation"];
    ensure!(last["type"] == "Restore", "{last}");
    ensure!(shoot.ready_nodes().await? == nodes, "{nodes:?} became {:?}", shoot.ready_nodes().await?);
    ensure!(identities_of_machines(&shoot).await? == identities, "other machines than before");
    Ok(())
}

/// Nobody sees the restored deployments, because machine-controller-manager sleeps with the shoot.
#[tokio::test]
async fn a_shoot_that_moves_asleep_stays_asleep() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "move-asleep").await?;
    shoot
        .create(|documents| {
            let sleeping = &mut documents.of_kind("Cluster")["spec"]["shoot"];
            sleeping["spec"]["hibernation"]["enabled"] = json!(true);
            sleeping["status"]["isHibernated"] = json!(true);
            documents.of_kind("Deployment")["spec"]["replicas"] = json!(0);
            let worker = documents.of_kind("Worker");
            worker["metadata"]["annotations"]["gardener.cloud/operation"] = json!("wait-for-state");
        })
        .await?;
    let name = format!("{}-stern-z3", shoot.namespace);
    let kept = packed(&json!({&name: {"replicas": 0, "machineSets": [{
        "metadata": {"name": format!("{name}-set"), "labels": {"name": name}},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"name": name}}},
    }]}}))?;
    let status = Patch::Merge(json!({"status": {"state": kept}}));
    shoot.api(Kind::Worker).patch_status("fleet", &PatchParams::default(), &status).await?;
    let audit = cluster.audit().await?;
    let mark = audit.mark().await?;

    ask(&shoot, "restore").await?;
    let worker = shoot.succeeded().await?;

    let last = &worker["status"]["lastOperation"];
    ensure!(last["type"] == "Restore", "{last}");
    let sets = shoot.names(Kind::MachineSet).await?;
    ensure!(sets.iter().eq(["stern-z3-set"]), "machine sets {sets:?}");
    for deployment in shoot.list(Kind::MachineDeployment).await? {
        ensure!(deployment["spec"]["replicas"].as_i64().unwrap_or_default() == 0, "{}", deployment["spec"]);
    }
    let requests = audit.requests(CONTROLLER, mark).await?;
    let scaled =
        requests.iter().any(|asked| asked.namespace == shoot.namespace && asked.resource == "deployments/scale");
    ensure!(!scaled, "machine-controller-manager was scaled");
    Ok(())
}

/// Asks for an operation as gardenlet does.
async fn ask(shoot: &Shoot, operation: &str) -> Result<()> {
    let annotate =
        |worker: &mut Value| worker["metadata"]["annotations"]["gardener.cloud/operation"] = json!(operation);
    shoot.change(Kind::Worker, "fleet", annotate).await?;
    Ok(())
}

fn operation(worker: &Value) -> &Value {
    &worker["metadata"]["annotations"]["gardener.cloud/operation"]
}

/// Name, VM and node of each machine.
async fn identities_of_machines(shoot: &Shoot) -> Result<Vec<[String; 3]>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let machines = shoot.list(Kind::Machine).await?;
    let mut identities: Vec<_> = machines
        .iter()
        .map(|machine| {
            [&machine["metadata"]["name"], &machine["spec"]["providerID"], &machine["metadata"]["labels"]["node"]]
                .map(text)
        })
        .collect();
    identities.sort();
    Ok(identities)
}

/// What gardenlet keeps of the machines, in the form of `status.state`.
async fn kept_machines(shoot: &Shoot) -> Result<Value> {
    let kept = |object: &Value| {
        let metadata = &object["metadata"];
        let [name, namespace, labels, annotations] =
            ["name", "namespace", "labels", "annotations"].map(|member| &metadata[member]);
        let metadata = json!({"name": name, "namespace": namespace, "labels": labels, "annotations": annotations});
        json!({"metadata": metadata, "spec": object["spec"]})
    };
    let (sets, machines) = (shoot.list(Kind::MachineSet).await?, shoot.list(Kind::Machine).await?);
    let mut deployments = json!({});
    for deployment in shoot.list(Kind::MachineDeployment).await? {
        let name = deployment["metadata"]["name"].as_str().context("a deployment has a name")?;
        let own = |object: &&Value| object["metadata"]["labels"]["name"] == name;
        deployments[name] = json!({
            "replicas": deployment["spec"]["replicas"],
            "machineSets": sets.iter().filter(own).map(kept).collect::<Vec<_>>(),
            "machines": machines.iter().filter(own).map(kept).collect::<Vec<_>>(),
        });
    }
    packed(&deployments)
}

fn packed(deployments: &Value) -> Result<Value> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    serde_json::to_writer(&mut gzip, &json!({"machineDeployments": deployments}))?;
    gzip.flush()?;
    Ok(json!({"state": base64::engine::general_purpose::STANDARD.encode(gzip.finish()?)}))
}

/// Removes all objects of the machines without anybody who could delete their VMs, and the Worker.
async fn take_away(shoot: &Shoot) -> Result<()> {
    let deployments = deployments_of_kubernetes(shoot);
    let asleep = Patch::Merge(json!({"spec": {"replicas": 0}}));
    deployments.patch_scale("machine-controller-manager", &PatchParams::default(), &asleep).await?;
    for kind in Kind::OF_MACHINES {
        for object in shoot.list(kind).await? {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            shoot.api(kind).patch(name, &PatchParams::default(), &free).await?;
            shoot.api(kind).delete(name, &DeleteParams::default()).await?;
        }
        ensure!(shoot.names(kind).await?.is_empty(), "{kind:?} are left");
    }
    shoot.api(Kind::Worker).delete("fleet", &DeleteParams::default()).await?;
    ensure!(shoot.get(Kind::Worker, "fleet").await?.is_none(), "the Worker is held");
    Ok(())
}

/// The Worker on its new seed: first without a request, then with what was kept in its status.
async fn restored_worker(shoot: &Shoot, moved: &Value, kept: &Value) -> Result<()> {
    let worker = json!({
        "apiVersion": moved["apiVersion"], "kind": moved["kind"], "spec": moved["spec"],
        "metadata": {
            "name": "fleet", "namespace": shoot.namespace, "annotations": {"gardener.cloud/operation": "wait-for-state"},
        },
    });
    shoot.api(Kind::Worker).create(&PostParams::default(), &serde_json::from_value(worker)?).await?;
    let status = Patch::Merge(json!({"status": {"state": kept, "providerStatus": moved["status"]["providerStatus"]}}));
    shoot.api(Kind::Worker).patch_status("fleet", &PatchParams::default(), &status).await?;
    Ok(())
}

fn deployments_of_kubernetes(shoot: &Shoot) -> kube::Api<k8s_openapi::api::apps::v1::Deployment> {
    kube::Api::namespaced(shoot.client.clone(), &shoot.namespace)
}

async fn machine_controller(shoot: &Shoot) -> Result<Value> {
    let deployment = deployments_of_kubernetes(shoot).get("machine-controller-manager").await?;
    Ok(serde_json::to_value(deployment)?)
}
