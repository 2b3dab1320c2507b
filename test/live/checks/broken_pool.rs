//! A pool that cannot be resolved is reported and keeps its objects, and other pools are unaffected.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::program;
use test_support::cluster::{Deletion, MachineControllerManager, eventually};
use test_support::shoot::{Kind, SOON, Shoot, ensure_reports, pool, set_image};

fn blames_bow(worker: &Value) -> Result<()> {
    let error = &worker["status"]["lastError"];
    ensure!(error["codes"] == json!(["ERR_CONFIGURATION_PROBLEM"]), "{error}");
    ensure_reports(&error["description"], &["bow", "harborlinux", "99.0.0"])?;
    ensure!(!error["description"].to_string().contains("stern"), "the healthy pool is blamed: {error}");
    ensure_reports(&worker["status"]["lastOperation"]["description"], &["bow", "99.0.0"])
}

#[tokio::test]
async fn a_healthy_pool_gets_nodes_beside_a_broken_one() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "broken-new").await?;
    let _machines = MachineControllerManager::start(cluster, &shoot.namespace, Deletion::Hastened).await?;
    shoot.create(|documents| set_image(documents.of_kind("Worker"), "bow", "99.0.0")).await?;

    let worker = shoot.fails(blames_bow).await?;
    ensure!(worker["status"]["lastOperation"]["type"] == "Create", "{}", worker["status"]["lastOperation"]);
    eventually(SOON, "the healthy pool has its node", async || {
        let nodes = shoot.ready_nodes().await?;
        ensure!(nodes.len() == 1 && nodes.iter().all(|node| node.contains("-stern-")), "ready: {nodes:?}");
        Ok(())
    })
    .await?;
    let published = &shoot.worker().await?["status"]["machineDeployments"];
    let expected = json!([{"name": format!("{}-stern-z3", shoot.namespace), "minimum": 1, "maximum": 1}]);
    ensure!(*published == expected, "published: {published}");

    mend(&shoot).await?;
    shoot.succeeded().await?;
    let nodes = shoot.ready_nodes().await?;
    ensure!(nodes.len() == 3, "all three nodes: {nodes:?}");
    Ok(())
}

#[tokio::test]
async fn a_pool_that_breaks_keeps_all_it_has() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "broken-later").await?;
    let _machines = MachineControllerManager::start(cluster, &shoot.namespace, Deletion::Hastened).await?;
    shoot.create(|_| {}).await?;
    let published = shoot.succeeded().await?["status"]["machineDeployments"].clone();
    let before = objects_of_bow(&shoot).await?;
    let nodes_before = shoot.ready_nodes().await?;

    // At the same time the healthy pool rolls, so that there are objects to clean up.
    shoot
        .change_worker(|worker| {
            set_image(worker, "bow", "99.0.0");
            set_image(worker, "stern", "12.2.0");
            pool(worker, "bow")["maximum"] = json!(8);
        })
        .await?;
    shoot.fails(blames_bow).await?;
    eventually(SOON, "the healthy pool has rolled", async || {
        let classes = shoot.names_of_pool(Kind::MachineClass, "stern").await?;
        let nodes = shoot.ready_nodes().await?;
        ensure!(classes.len() == 1, "classes {classes:?}");
        ensure!(nodes.iter().any(|node| node.contains("-stern-") && !nodes_before.contains(node)), "ready: {nodes:?}");
        Ok(())
    })
    .await?;
    let worker = shoot.fails(blames_bow).await?;
    ensure!(objects_of_bow(&shoot).await? == before, "{before:?} became {:?}", objects_of_bow(&shoot).await?);
    ensure!(worker["status"]["machineDeployments"] == published, "bounds: {}", worker["status"]["machineDeployments"]);
    let kept = |node: &&String| node.contains("-bow-");
    let nodes = shoot.ready_nodes().await?;
    ensure!(nodes.iter().filter(kept).eq(nodes_before.iter().filter(kept)), "{nodes_before:?} became {nodes:?}");

    mend(&shoot).await?;
    let worker = shoot.succeeded().await?;
    ensure!(worker["status"]["machineDeployments"][0]["maximum"] == 4, "{}", worker["status"]["machineDeployments"]);
    Ok(())
}

/// Adds the missing version to the CloudProfile; the controller retries on its own.
async fn mend(shoot: &Shoot) -> Result<()> {
    let versions = "/spec/cloudProfile/spec/providerConfig/machineImages/0/versions";
    let add = |cluster: &mut Value| {
        let versions = cluster.pointer_mut(versions).and_then(Value::as_array_mut).expect("the image has versions");
        let mut version = versions[0].clone();
        version["version"] = json!("99.0.0");
        versions.push(version);
    };
    shoot.change(Kind::Cluster, &shoot.namespace, add).await?;
    Ok(())
}

/// Versions of classes and Secrets, and deployments without their status.
async fn objects_of_bow(shoot: &Shoot) -> Result<Vec<String>> {
    let mut objects = Vec::new();
    for kind in [Kind::MachineClass, Kind::ClassSecret] {
        let versions = shoot.versions(kind).await?;
        objects
            .extend(versions.into_iter().filter(|[name, ..]| name.contains("-bow-")).map(|version| version.join(" ")));
    }
    let deployments = shoot.list(Kind::MachineDeployment).await?;
    let of_bow = deployments.iter().filter(|deployment| deployment["metadata"]["name"].to_string().contains("-bow-"));
    objects.extend(of_bow.map(|deployment| format!("{} {}", deployment["metadata"]["uid"], deployment["spec"])));
    Ok(objects)
}
