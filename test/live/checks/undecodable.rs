//! An undecodable object does not affect others, and its error contains the path.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::program;
use test_support::cluster::eventually;
use test_support::shoot::{Kind, SOON, Shoot, ensure_reports, pool};

/// The custom resource definition accepts any string as a duration.
fn set_provision_time(worker: &mut Value, time: &str) {
    pool(worker, "stern")["clusterAutoscaler"] = json!({ "maxNodeProvisionTime": time });
}

#[tokio::test]
async fn an_undecodable_worker_is_reported_and_stops_no_other() -> Result<()> {
    let cluster = program::shared().await?;
    let bad = Shoot::new(cluster, "undecodable").await?;
    let _machines = bad.fake_machines(cluster, Duration::ZERO).await?;
    bad.create(|documents| set_provision_time(documents.of_kind("Worker"), "soon")).await?;
    let path = "spec.pools[1].clusterAutoscaler.maxNodeProvisionTime";
    let reported = |worker: &Value| {
        let error = &worker["status"]["lastError"];
        ensure!(error["codes"] == json!(["ERR_CONFIGURATION_PROBLEM"]), "{error}");
        ensure_reports(&error["description"], &[path])
    };
    // The controller cannot remove the operation annotation of a Worker that it cannot decode.
    eventually(SOON, "the status tells what is wrong", async || reported(&bad.worker().await?)).await?;
    eventually(SOON, "an event tells what is wrong", async || {
        let events = bad.list(Kind::Event).await?;
        let warning = events.iter().find(|event| event["type"] == "Warning" && event["regarding"]["name"] == "fleet");
        ensure_reports(&warning.cloned().unwrap_or_default()["note"], &[path])
    })
    .await?;

    let good = Shoot::new(cluster, "decodable").await?;
    let _other_machines = good.fake_machines(cluster, Duration::ZERO).await?;
    good.create(|_| {}).await?;
    good.succeeded().await?;

    bad.change_worker(|worker| set_provision_time(worker, "15m")).await?;
    bad.succeeded().await?;
    Ok(())
}

#[tokio::test]
async fn an_undecodable_cluster_is_reported_with_its_path() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "undecodable-cluster").await?;
    let _machines = shoot.fake_machines(cluster, Duration::ZERO).await?;
    let name = shoot.namespace.clone();
    shoot
        .create(|documents| documents.of_kind("Cluster")["spec"]["shoot"]["status"]["technicalID"] = json!(["a", "b"]))
        .await?;
    shoot
        .fails(|worker| {
            ensure_reports(
                &worker["status"]["lastError"]["description"],
                &["Cluster", &name, "spec.shoot.status.technicalID"],
            )
        })
        .await?;
    shoot
        .change(Kind::Cluster, &name, |cluster| cluster["spec"]["shoot"]["status"]["technicalID"] = json!(name))
        .await?;
    shoot.succeeded().await?;
    Ok(())
}
