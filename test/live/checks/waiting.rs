//! While machines are waited for, nothing is done unless something happens; and what happens is always seen.

use std::time::Duration;

use anyhow::{Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::cluster::{CONTROLLER, eventually};
use crate::history::History;
use crate::program;
use crate::requests::Table;
use crate::shoot::{Kind, SOON, Shoot, ensure_says};

/// Waits until the Worker says that it waits for machines that nobody makes.
async fn waits(shoot: &Shoot) -> Result<()> {
    eventually(SOON, "the Worker waits for machines", async || {
        let worker = shoot.worker().await?;
        ensure_says(&worker["status"]["lastOperation"]["description"], &["Waiting until machines", "0/3", "bow, stern"])
    })
    .await
}

#[tokio::test]
async fn a_waiting_worker_costs_nothing() -> Result<()> {
    let cluster = program::shared().await?;
    let audit = cluster.audit().await?;
    let shoot = Shoot::new(cluster, "idle").await?;
    shoot.create(|_| {}).await?;
    waits(&shoot).await?;
    let history = History::follow(&shoot.api(Kind::Worker)).await?;
    // A Worker that goes all its way is the clock: what the waiting one has caused until now is over after it.
    let first = Shoot::new(cluster, "clock").await?;
    let _machines = first.fake_machines(cluster, Duration::ZERO).await?;
    first.create(|_| {}).await?;
    first.succeeded().await?;

    let before = audit.mark().await?;
    let second = Shoot::new(cluster, "clock").await?;
    let _other_machines = second.fake_machines(cluster, Duration::from_secs(1)).await?;
    second.create(|_| {}).await?;
    second.succeeded().await?;
    let mut requests = audit.requests(CONTROLLER, before).await?;
    requests.retain(|request| request.namespace == shoot.namespace || request.name == shoot.namespace);
    ensure!(requests.is_empty(), "requests for a Worker where nothing happens:\n{}", Table::of(&requests));

    // Something happens that says nothing about machines: a look, but no word.
    let before = audit.mark().await?;
    for number in 0..20 {
        annotate(&shoot, number).await?;
    }
    let looks = eventually(SOON, "the program looks at the change", async || {
        let mut requests = audit.requests(CONTROLLER, before).await?;
        requests.retain(|request| request.namespace == shoot.namespace);
        ensure!(!requests.is_empty(), "it has not");
        Ok(Table::of(&requests))
    })
    .await?;
    println!("requests for 20 changes that say nothing about machines:\n{looks}");
    ensure!(history.versions().is_empty(), "the Worker was written: {:#?}", history.versions());
    Ok(())
}

#[tokio::test]
async fn a_worker_that_hears_much_is_looked_at_all_the_same() -> Result<()> {
    let cluster = program::shared().await?;
    let audit = cluster.audit().await?;
    let shoot = Shoot::new(cluster, "noise").await?;
    shoot.create(|_| {}).await?;
    waits(&shoot).await?;

    // Hundreds of machines that come and go change their objects without a pause.
    let noise = async {
        for number in 0.. {
            // Side by side, so that one slow answer makes no pause.
            futures::future::try_join_all((0..4).map(async |side| annotate(&shoot, 4 * number + side).await)).await?;
        }
        Ok(())
    };
    let looks = async {
        let before = audit.mark().await?;
        eventually(Duration::from_secs(10), "a look each second", async || {
            let requests = audit.requests(CONTROLLER, before).await?;
            let looks = requests.iter().filter(|request| {
                request.verb == "get" && request.resource == "clusters" && request.name == shoot.namespace
            });
            let looks = looks.count();
            ensure!(looks >= 10, "there were {looks}");
            Ok(())
        })
        .await
    };
    tokio::select! {
        stopped = noise => stopped,
        looked = looks => looked,
    }
}

/// Changes a machine deployment in a way that nobody waits for.
async fn annotate(shoot: &Shoot, number: u32) -> Result<()> {
    let name = format!("{}-bow-z1", shoot.namespace);
    let patch = json!({"metadata": {"annotations": {"live.example/number": number.to_string()}}});
    shoot.api(Kind::MachineDeployment).patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}
