//! Another image for a pool replaces its machines and nothing else.

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::history::History;
use crate::program;
use test_support::cluster::{Deletion, MachineControllerManager, eventually};
use test_support::shoot::{Kind, SOON, Shoot, ensure_reports, set_image};

#[tokio::test]
async fn an_image_change_replaces_the_machines_of_that_pool() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "roll").await?;
    let _machines = MachineControllerManager::start(cluster, &shoot.namespace, Deletion::Hastened).await?;
    shoot.create(|_| {}).await?;
    shoot.succeeded().await?;
    let nodes_before = shoot.ready_nodes().await?;
    let old_classes = shoot.names_of_pool(Kind::MachineClass, "bow").await?;
    let stern_before = versions_of_pool(&shoot, "stern").await?;
    let history = History::follow(&shoot.api(Kind::Worker)).await?;

    shoot.change_worker(|worker| set_image(worker, "bow", "12.2.0")).await?;
    let worker = shoot.succeeded().await?;

    // The old ones exist until machine-controller-manager removes its finalizers.
    eventually(SOON, "the old classes and Secrets are deleted", async || {
        let new_classes = shoot.names_of_pool(Kind::MachineClass, "bow").await?;
        let is_replaced = new_classes.len() == 2 && new_classes.is_disjoint(&old_classes);
        ensure!(is_replaced, "{old_classes:?} became {new_classes:?}");
        let secrets = shoot.names_of_pool(Kind::ClassSecret, "bow").await?;
        ensure!(secrets == new_classes, "secrets {secrets:?} for classes {new_classes:?}");
        Ok(())
    })
    .await?;
    ensure!(versions_of_pool(&shoot, "stern").await? == stern_before, "class or secret of the other pool was written");

    let nodes = shoot.ready_nodes().await?;
    let of_pool = |name: &&String| name.contains("-bow-");
    ensure!(nodes.len() == 3, "three nodes are ready: {nodes:?}");
    ensure!(!nodes.iter().filter(of_pool).any(|node| nodes_before.contains(node)), "{nodes_before:?} became {nodes:?}");
    ensure!(nodes.iter().filter(|node| !of_pool(node)).all(|node| nodes_before.contains(node)), "stern has new nodes");
    for machine in shoot.list(Kind::Machine).await? {
        let class = machine["spec"]["class"]["name"].as_str().unwrap_or_default();
        ensure!(!old_classes.iter().any(|old| class.ends_with(old)), "a machine of the old class {class}");
    }

    ensure!(worker["status"]["lastOperation"]["type"] == "Reconcile", "{}", worker["status"]["lastOperation"]);
    let images = worker["status"]["providerStatus"]["machineImages"].as_array().cloned().unwrap_or_default();
    let versions: Vec<_> = images.iter().filter_map(|image| image["version"].as_str()).collect();
    ensure!(versions == ["12.2.0", "12.1.0"], "the status keeps the images {versions:?}");
    history.ensure_every_status_has_a_description()?;
    history.ensure_progress_only_grows()?;
    let operations = history.operations();
    let waits = |last: &Value| ensure_reports(&last["description"], &["Waiting until machines", "pools bow"]).is_ok();
    ensure!(operations.iter().any(waits), "no status told that pool bow is waited for");
    for operation in operations {
        println!("{operation}");
    }
    Ok(())
}

async fn versions_of_pool(shoot: &Shoot, pool: &str) -> Result<Vec<[String; 3]>> {
    let mut versions = Vec::new();
    for kind in [Kind::MachineClass, Kind::ClassSecret] {
        let own = format!("{}-{pool}-", shoot.namespace);
        versions.extend(shoot.versions(kind).await?.into_iter().filter(|[name, ..]| name.starts_with(&own)));
    }
    Ok(versions)
}
