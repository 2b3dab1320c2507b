//! Removing a pool deletes its objects and changes no others. The pool may return.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::program;
use test_support::cluster::eventually;
use test_support::shoot::{Kind, SOON, Shoot, ensure_reports};

#[tokio::test]
async fn a_removed_pool_vanishes_and_the_others_are_not_touched() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "remove").await?;
    let _machines = shoot.fake_machines(cluster, Duration::ZERO).await?;
    shoot.create(|_| {}).await?;
    shoot.succeeded().await?;
    let mut before = Vec::new();
    for kind in Kind::OF_MACHINES {
        let mut versions = shoot.versions(kind).await?;
        versions.retain(|[name, ..]| name.contains("-bow-"));
        before.push((kind, versions));
    }

    shoot
        .change_worker(|worker| {
            let pools = worker["spec"]["pools"].as_array_mut().expect("pools are a list");
            pools.retain(|pool| pool["name"] != "stern");
        })
        .await?;
    let worker = shoot.succeeded().await?;

    for (kind, versions) in before {
        let after = shoot.versions(kind).await?;
        ensure!(after == versions, "{kind:?} of the pool that stays: {versions:?} became {after:?}");
    }
    let published = &worker["status"]["machineDeployments"];
    ensure!(published.as_array().is_some_and(|published| published.len() == 2), "published: {published}");
    Ok(())
}

/// Its class is only used after recreation, because machine-controller-manager can remove the old one's finalizer at
/// any moment.
#[tokio::test]
async fn returning_pool_waits_for_its_class_deletion() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "returns").await?;
    let _machines = shoot.fake_machines(cluster, Duration::ZERO).await?;
    shoot.create(|_| {}).await?;
    let classes = with_deleted_classes(&shoot).await?;
    shoot
        .fails(|worker| ensure_reports(&worker["status"]["lastError"]["description"], &["stern", "is being deleted"]))
        .await?;
    let made = shoot.names_of_pool(Kind::MachineDeployment, "stern").await?;
    ensure!(made.is_empty(), "{made:?} are there, and no class");
    hold(&shoot, &classes, &[]).await?;
    shoot.succeeded().await?;
    for class in classes_of_stern(&shoot).await? {
        ensure!(class["metadata"]["deletionTimestamp"].is_null(), "{} goes", class["metadata"]);
    }
    ensure!(classes_of_stern(&shoot).await?.len() == classes.len(), "the classes are there");
    Ok(())
}

/// In a hibernated shoot, no machine-controller-manager would remove the finalizer.
#[tokio::test]
async fn a_pool_that_comes_back_does_not_wait_without_machine_controller_manager() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "stopped").await?;
    let _machines = shoot.fake_machines(cluster, Duration::ZERO).await?;
    shoot.create(|documents| documents.of_kind("Deployment")["spec"]["replicas"] = json!(0)).await?;
    with_deleted_classes(&shoot).await?;
    shoot.succeeded().await?;
    for class in classes_of_stern(&shoot).await? {
        ensure!(!class["metadata"]["deletionTimestamp"].is_null(), "{} has gone", class["metadata"]);
    }
    Ok(())
}

/// Removes pool `stern` and adds it again while its classes (returned) are being deleted and have finalizers.
async fn with_deleted_classes(shoot: &Shoot) -> Result<Vec<Value>> {
    let worker = shoot.succeeded().await?;
    let pools = &worker["spec"]["pools"];
    let classes = classes_of_stern(shoot).await?;
    ensure!(!classes.is_empty(), "pool stern has classes");
    hold(shoot, &classes, &["example.org/held"]).await?;
    shoot.change_worker(|worker| worker["spec"]["pools"] = json!([pools[0]])).await?;
    eventually(SOON, "the classes go", async || {
        for class in classes_of_stern(shoot).await? {
            ensure!(!class["metadata"]["deletionTimestamp"].is_null(), "nobody has deleted {}", class["metadata"]);
        }
        let left = shoot.names_of_pool(Kind::MachineDeployment, "stern").await?;
        ensure!(left.is_empty(), "{left:?} are left");
        Ok(())
    })
    .await?;
    shoot.change_worker(|worker| worker["spec"]["pools"] = pools.clone()).await?;
    Ok(classes)
}

async fn classes_of_stern(shoot: &Shoot) -> Result<Vec<Value>> {
    let mut classes = shoot.list(Kind::MachineClass).await?;
    classes.retain(|class| class["metadata"]["name"].as_str().is_some_and(|name| name.contains("-stern-")));
    Ok(classes)
}

async fn hold(shoot: &Shoot, classes: &[Value], finalizers: &[&str]) -> Result<()> {
    let patch = Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
    for class in classes {
        let name = class["metadata"]["name"].as_str().context("a class has a name")?;
        shoot.api(Kind::MachineClass).patch(name, &PatchParams::default(), &patch).await?;
    }
    Ok(())
}
