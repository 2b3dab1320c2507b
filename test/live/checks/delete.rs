//! Deleting a Worker deletes all of its objects, machines first.

use std::time::Duration;

use anyhow::{Result, ensure};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::history::History;
use crate::program;
use test_support::cluster::{Deletion, MachineControllerManager, eventually};
use test_support::shoot::{Kind, SOON, Shoot, ensure_reports};

const CREDENTIALS: &str = "cloudprovider";

#[tokio::test]
async fn a_deleted_worker_leaves_nothing() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "delete").await?;
    let _machines = MachineControllerManager::start(cluster, &shoot.namespace, Deletion::Hastened).await?;
    shoot.create(|_| {}).await?;
    shoot.succeeded().await?;
    eventually(SOON, "machine-controller-manager holds the credentials", async || {
        let finalizers = finalizers_of_credentials(&shoot).await?;
        ensure!(!finalizers.is_empty(), "nobody does");
        Ok(())
    })
    .await?;
    let history = History::follow(&shoot.api(Kind::Worker)).await?;

    shoot.api(Kind::Worker).delete("fleet", &DeleteParams::default()).await?;
    shoot.deleted().await?;

    ensure!(shoot.ready_nodes().await?.is_empty(), "nodes are left");
    let finalizers = finalizers_of_credentials(&shoot).await?;
    ensure!(finalizers.is_empty(), "the credentials are held by {finalizers:?}");
    ensure!(shoot.get(Kind::Secret, "boot").await?.is_some(), "gardenlet's secret is gone too");
    history.ensure_every_status_has_a_description()?;
    history.ensure_progress_only_grows()?;
    let operations = history.operations();
    let last = operations.last();
    ensure!(
        last.is_some_and(|last| last["type"] == "Delete" && last["state"] == "Succeeded"),
        "the last that was told: {last:?}"
    );
    for operation in operations {
        println!("{operation}");
    }
    Ok(())
}

#[tokio::test]
async fn a_worker_stays_until_its_credentials_are_released() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "delete-held").await?;
    let _machines = shoot.fake_machines(cluster, Duration::ZERO).await?;
    shoot.create(|_| {}).await?;
    shoot.succeeded().await?;
    let finalizer = "machine.sapcloud.io/machine-controller";
    shoot.change(Kind::Secret, CREDENTIALS, |secret| secret["metadata"]["finalizers"] = json!([finalizer])).await?;

    shoot.api(Kind::Worker).delete("fleet", &DeleteParams::default()).await?;
    eventually(SOON, "the Worker waits for its credentials", async || {
        let worker = shoot.worker().await?;
        ensure_reports(&worker["status"]["lastOperation"]["description"], &[CREDENTIALS, finalizer])
    })
    .await?;
    for kind in Kind::OF_MACHINES {
        ensure!(shoot.names(kind).await?.is_empty(), "{kind:?} are left");
    }
    shoot.change(Kind::Secret, CREDENTIALS, |secret| secret["metadata"]["finalizers"] = json!([])).await?;
    shoot.deleted().await
}

#[tokio::test]
async fn a_worker_that_never_had_machines_can_be_deleted() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "delete-unborn").await?;
    shoot
        .create(|documents| {
            for pool in documents.of_kind("Worker")["spec"]["pools"].as_array_mut().expect("pools are a list") {
                pool["machineType"] = "no-such-type".into();
            }
        })
        .await?;
    shoot.fails(|_| Ok(())).await?;
    shoot.api(Kind::Worker).delete("fleet", &DeleteParams::default()).await?;
    shoot.deleted().await
}

async fn finalizers_of_credentials(shoot: &Shoot) -> Result<Vec<Value>> {
    let credentials = shoot.get(Kind::Secret, CREDENTIALS).await?.unwrap_or_default();
    Ok(credentials["metadata"]["finalizers"].as_array().cloned().unwrap_or_default())
}
