//! A controller of another class reconciles on changes, without the operation annotation (`--extension-classes`,
//! `--ignore-operation-annotation`).

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::program;
use crate::requests::Table;
use test_support::cluster::{CONTROLLER, eventually};
use test_support::shoot::{Kind, SOON, Shoot, pool};

const CLASS: &str = "self-hosted";

#[tokio::test]
async fn a_controller_of_another_class_reconciles_when_a_worker_or_its_cluster_changes() -> Result<()> {
    let cluster = program::shared().await?;
    let audit = cluster.audit().await?;
    let shoot = Shoot::new(cluster, "unasked").await?;
    let _machines = shoot.fake_machines(cluster, Duration::ZERO).await?;
    shoot
        .create(|documents| {
            let worker = documents.of_kind("Worker");
            worker["spec"]["class"] = json!(CLASS);
            worker["metadata"]["annotations"] = json!({});
        })
        .await?;
    let arguments = ["--extension-classes", CLASS, "--ignore-operation-annotation"];
    let _program = program::start_with(cluster, "controller-of-another-class", &arguments)?;
    done(&shoot, 1).await?;
    ensure!(minimum(&shoot, "stern").await? == 1, "the Worker is not as it was asked");

    // A new generation, as written by a client other than gardenlet.
    shoot.change(Kind::Worker, "fleet", |worker| pool(worker, "stern")["maximum"] = json!(5)).await?;
    eventually(SOON, "a new generation is followed", async || {
        let worker = shoot.worker().await?;
        let bounds = worker["status"]["machineDeployments"].as_array().cloned().unwrap_or_default();
        ensure!(bounds.iter().any(|bound| bound["maximum"] == 5), "{bounds:?}");
        Ok(())
    })
    .await?;
    done(&shoot, 2).await?;

    // A Cluster change unrelated to machines starts no operation; a relevant one does.
    let before = audit.mark().await?;
    let resting = shoot.worker().await?;
    for number in 0..3 {
        let patch = json!({"metadata": {"annotations": {"live.example/number": number.to_string()}}});
        let cluster = shoot.api(Kind::Cluster);
        cluster.patch(&shoot.namespace, &PatchParams::default(), &Patch::Merge(patch)).await?;
    }
    eventually(SOON, "the changed Cluster was read", async || {
        let requests = audit.requests(CONTROLLER, before).await?;
        ensure!(requests.iter().any(|request| request.name == shoot.namespace), "{}", Table::of(&requests));
        Ok(())
    })
    .await?;
    shoot
        .change(Kind::Cluster, &shoot.namespace, |cluster| {
            cluster["spec"]["shoot"]["spec"]["hibernation"] = json!({"enabled": true});
        })
        .await?;
    eventually(SOON, "the shoot is hibernated", async || {
        let worker = shoot.worker().await?;
        ensure!(worker["status"]["lastOperation"]["state"] == "Succeeded", "{}", worker["status"]["lastOperation"]);
        let replicas: Vec<Value> =
            shoot.list(Kind::MachineDeployment).await?.iter().map(|live| live["spec"]["replicas"].clone()).collect();
        ensure!(replicas.len() == 3 && replicas.iter().all(|number| *number == 0), "replicas {replicas:?}");
        Ok(())
    })
    .await?;
    let mut requests = audit.requests(CONTROLLER, before).await?;
    requests.retain(|request| request.namespace == shoot.namespace);
    let begun = Table::of(&requests).count("patch", "workers");
    ensure!(begun == 0, "there is no request to take off: {}", Table::of(&requests));
    ensure!(
        shoot.worker().await?["metadata"]["generation"] == resting["metadata"]["generation"],
        "nobody has changed the Worker"
    );
    Ok(())
}

/// Waits until that generation of the Worker is reconciled.
async fn done(shoot: &Shoot, generation: i64) -> Result<()> {
    eventually(SOON, &format!("generation {generation} is done"), async || {
        let worker = shoot.worker().await?;
        let status = &worker["status"];
        ensure!(status["lastOperation"]["state"] == "Succeeded", "{}", status["lastOperation"]);
        ensure!(status["observedGeneration"] == generation, "generation {} is", status["observedGeneration"]);
        Ok(())
    })
    .await
}

async fn minimum(shoot: &Shoot, pool: &str) -> Result<i64> {
    let worker = shoot.worker().await?;
    let bounds = worker["status"]["machineDeployments"].as_array().cloned().unwrap_or_default();
    let of_pool = bounds.iter().find(|bound| bound["name"].as_str().is_some_and(|name| name.contains(pool)));
    of_pool.and_then(|bound| bound["minimum"].as_i64()).context("nothing is published")
}
