//! A shoot whose control plane moves to another seed keeps its machines: their objects are deleted and restored, and
//! the nodes stay.

use anyhow::{Context as _, Result, ensure};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::program;
use test_support::cluster::{CONTROLLER, ControlPlane, Deletion, MachineControllerManager, eventually};
use test_support::migration::{kept_machines, machine_controller, packed, request, restored_worker, take_away};
use test_support::shoot::{Kind, SOON, Shoot, set_image};

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

    request(&shoot, "migrate").await?;
    let moved = release(&shoot).await?;
    ensure!(operation(&moved).is_null(), "the request is still there");
    let last = &moved["status"]["lastOperation"];
    ensure!(last["type"] == "Migrate" && last["state"] == "Succeeded" && last["progress"] == 100, "{last}");
    ensure!(identities_of_machines(&shoot).await? == identities, "migrate has touched the machines");
    machines.stop().await?;
    take_away(&shoot).await?;

    restored_worker(&shoot, &moved, &kept).await?;
    request(&shoot, "restore").await?;
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

/// No pool needs the class of machines that are not yet replaced, but machine-controller-manager cannot delete them
/// without it.
#[tokio::test]
async fn roll_continues_after_control_plane_migration() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "move-rolling").await?;
    let machines = MachineControllerManager::start(cluster, &shoot.namespace, Deletion::Hastened).await?;
    shoot.create(|_| {}).await?;
    shoot.succeeded().await?;
    let nodes = shoot.ready_nodes().await?;
    let old = shoot.names_of_pool(Kind::MachineClass, "bow").await?;
    machines.stop().await?;
    shoot.change_worker(|worker| set_image(worker, "bow", "12.2.0")).await?;
    eventually(SOON, "the roll has begun", async || {
        let classes = shoot.names_of_pool(Kind::MachineClass, "bow").await?;
        ensure!(classes.len() == 2 * old.len(), "{classes:?}");
        let last = shoot.worker().await?["status"]["lastOperation"].clone();
        ensure!(last["description"].as_str().is_some_and(|text| text.starts_with("Waiting until")), "{last}");
        Ok(())
    })
    .await?;
    let kept = kept_machines(&shoot).await?;
    request(&shoot, "migrate").await?;
    let moved = release(&shoot).await?;
    take_away(&shoot).await?;
    ensure!(shoot.names(Kind::MachineClass).await?.is_empty(), "the other seed has no classes");
    let _machines = restored(cluster, &shoot, &moved, &kept).await?;

    let now = shoot.ready_nodes().await?;
    let of_bow = |node: &&String| node.contains("-bow-");
    ensure!(now.len() == 3 && !now.iter().filter(of_bow).any(|node| nodes.contains(node)), "{nodes:?} became {now:?}");
    let classes = shoot.names_of_pool(Kind::MachineClass, "bow").await?;
    ensure!(classes.len() == 2 && classes.is_disjoint(&old), "{old:?} became {classes:?}");
    ensure!(shoot.names_of_pool(Kind::ClassSecret, "bow").await? == classes, "each has its Secret");
    Ok(())
}

/// The Worker once all finalizers are removed.
pub(crate) async fn release(shoot: &Shoot) -> Result<Value> {
    eventually(SOON, "the Worker is let go", async || {
        let worker = shoot.worker().await?;
        ensure!(worker["metadata"]["finalizers"].is_null(), "it is held by {}", worker["metadata"]["finalizers"]);
        Ok(worker)
    })
    .await
}

/// Restores a migrated Worker, and waits for completion with a machine-controller-manager that starts when it may.
pub(crate) async fn restored(
    cluster: &ControlPlane,
    shoot: &Shoot,
    moved: &Value,
    kept: &Value,
) -> Result<MachineControllerManager> {
    restored_worker(shoot, moved, kept).await?;
    request(shoot, "restore").await?;
    eventually(SOON, "machine-controller-manager may start", async || {
        let replicas = &machine_controller(shoot).await?["spec"]["replicas"];
        ensure!(replicas == 1, "it has {replicas} replicas");
        Ok(())
    })
    .await?;
    let machines = MachineControllerManager::start(cluster, &shoot.namespace, Deletion::Hastened).await?;
    eventually(SOON, "the shoot is restored", async || {
        let last = shoot.worker().await?["status"]["lastOperation"].clone();
        ensure!(last["type"] == "Restore" && last["state"] == "Succeeded", "{last}");
        Ok(())
    })
    .await?;
    Ok(machines)
}

/// No status is written to the restored deployments, because machine-controller-manager is scaled down with the shoot.
#[tokio::test]
async fn a_hibernated_shoot_stays_hibernated_when_it_moves() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = hibernated(cluster, "move-hibernated").await?;
    let audit = cluster.audit().await?;
    let mark = audit.mark().await?;

    request(&shoot, "restore").await?;
    let worker = shoot.succeeded().await?;

    let last = &worker["status"]["lastOperation"];
    ensure!(last["type"] == "Restore", "{last}");
    let sets = shoot.names(Kind::MachineSet).await?;
    ensure!(sets.iter().eq(["stern-z3-set"]), "machine sets {sets:?}");
    for deployment in shoot.list(Kind::MachineDeployment).await? {
        ensure!(deployment["spec"]["replicas"].as_i64().unwrap_or_default() == 0, "{}", deployment["spec"]);
    }
    let requests = audit.requests(CONTROLLER, mark).await?;
    let scaled = requests
        .iter()
        .any(|requested| requested.namespace == shoot.namespace && requested.resource == "deployments/scale");
    ensure!(!scaled, "machine-controller-manager was scaled");
    Ok(())
}

/// machine-controller-manager ignores a machine set whose deployment was deleted before its start, so the controller
/// must delete it.
#[tokio::test]
async fn restored_machine_set_is_deleted_with_its_pool() -> Result<()> {
    let cluster = program::shared().await?;
    for leaves in ["pool", "Worker"] {
        let shoot = hibernated(cluster, &format!("move-and-lose-{}", leaves.to_lowercase())).await?;
        request(&shoot, "restore").await?;
        shoot.succeeded().await?;
        ensure!(shoot.names(Kind::MachineSet).await?.len() == 1, "its machine set is back");
        if leaves == "pool" {
            shoot
                .change_worker(|worker| {
                    let pools = worker["spec"]["pools"].as_array_mut().expect("pools are a list");
                    pools.retain(|pool| pool["name"] != "stern");
                })
                .await?;
            shoot.succeeded().await?;
            let left = shoot.names(Kind::MachineSet).await?;
            ensure!(left.is_empty(), "left: {left:?}");
        }
        shoot.api(Kind::Worker).delete("fleet", &DeleteParams::default()).await?;
        shoot.deleted().await?;
    }
    Ok(())
}

/// The real machine-controller-manager sets a finalizer on such a set and keeps it until it is deleted.
#[tokio::test]
async fn deletes_ownerless_machine_sets() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "lost-set").await?;
    let _machines = MachineControllerManager::start(cluster, &shoot.namespace, Deletion::Hastened).await?;
    shoot.create(|_| {}).await?;
    shoot.succeeded().await?;
    let name = format!("{}-lost", shoot.namespace);
    let labels = json!({"name": name});
    let class = json!({"kind": "MachineClass", "name": "lost"});
    let lost = json!({
        "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "MachineSet", "metadata": {"name": name, "labels": labels},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels},
                 "template": {"metadata": {"labels": labels}, "spec": {"class": class}}},
    });
    shoot.api(Kind::MachineSet).create(&PostParams::default(), &serde_json::from_value(lost)?).await?;
    eventually(SOON, "machine-controller-manager holds it", async || {
        let set = shoot.get(Kind::MachineSet, &name).await?.context("it is gone")?;
        ensure!(set["metadata"]["finalizers"].is_array(), "{}", set["metadata"]);
        Ok(())
    })
    .await?;
    let others = shoot.names(Kind::MachineSet).await?.len() - 1;

    shoot.change_worker(|_| {}).await?;
    shoot.succeeded().await?;

    eventually(SOON, "it is gone", async || {
        ensure!(shoot.get(Kind::MachineSet, &name).await?.is_none(), "it is there");
        Ok(())
    })
    .await?;
    ensure!(shoot.names(Kind::MachineSet).await?.len() == others, "the others stay");
    Ok(())
}

/// A hibernated shoot with a machine set that has moved here and is not restored yet.
async fn hibernated(cluster: &ControlPlane, prefix: &str) -> Result<Shoot> {
    let shoot = Shoot::new(cluster, prefix).await?;
    shoot
        .create(|documents| {
            let shoot = &mut documents.of_kind("Cluster")["spec"]["shoot"];
            shoot["spec"]["hibernation"]["enabled"] = json!(true);
            shoot["status"]["isHibernated"] = json!(true);
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
    Ok(shoot)
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
