//! While a Worker waits for machines, the controller is idle until an event, and it misses no event.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::history::History;
use crate::program;
use crate::requests::Table;
use test_support::cluster::{CONTROLLER, eventually};
use test_support::shoot::{Kind, SOON, Shoot, ensure_reports};

/// Waits until the Worker reports that it waits for machines. No program creates them here.
async fn waits(shoot: &Shoot) -> Result<()> {
    eventually(SOON, "the Worker waits for machines", async || {
        let worker = shoot.worker().await?;
        ensure_reports(
            &worker["status"]["lastOperation"]["description"],
            &["Waiting until machines", "0/3", "bow, stern"],
        )
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
    // A second Worker serves as a clock: when it is reconciled, all consequences of the first one's events are over.
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
    ensure!(history.versions().is_empty(), "the Worker was written: {:#?}", history.versions());

    // Of many changes, only one concerns machines, and only that is reported.
    let before = audit.mark().await?;
    for number in 0..20 {
        annotate(&shoot, number).await?;
    }
    set_available(&shoot, 1).await?;
    eventually(SOON, "the status has the change", async || reports_available(&shoot, 1).await).await?;
    let mut requests = audit.requests(CONTROLLER, before).await?;
    requests.retain(|request| request.namespace == shoot.namespace || request.name == shoot.namespace);
    let table = Table::of(&requests);
    println!("requests for 20 changes that say nothing about machines, and one that does:\n{table}");
    ensure!(table.total() == 1 && table.count("patch", "workers/status") == 1, "it costs more than the word:\n{table}");
    Ok(())
}

#[tokio::test]
async fn a_worker_with_many_events_is_still_reconciled() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "noise").await?;
    shoot.create(|_| {}).await?;
    waits(&shoot).await?;

    // Hundreds of machines that are created and deleted change their objects continuously.
    let noise = async {
        for number in 0.. {
            // Run concurrently, so that one slow response causes no pause.
            futures::future::try_join_all((0..4).map(async |side| annotate(&shoot, 4 * number + side).await)).await?;
        }
        Ok(())
    };
    let reconciles = async {
        for available in [1, 0, 1, 0] {
            set_available(&shoot, available).await?;
            let changed = Instant::now();
            eventually(Duration::from_secs(10), "the status has the change", async || {
                reports_available(&shoot, available).await
            })
            .await?;
            println!("in the status after {:?}", changed.elapsed());
        }
        Ok(())
    };
    tokio::select! {
        stopped = noise => stopped,
        reconciled = reconciles => reconciled,
    }
}

/// Changes a machine deployment in an irrelevant way.
async fn annotate(shoot: &Shoot, number: u32) -> Result<()> {
    let patch = json!({"metadata": {"annotations": {"live.example/number": number.to_string()}}});
    shoot.api(Kind::MachineDeployment).patch(&deployment(shoot), &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

/// Reports available machines as machine-controller-manager does, regardless of existing machines.
async fn set_available(shoot: &Shoot, available: u32) -> Result<()> {
    let name = deployment(shoot);
    let live = shoot.get(Kind::MachineDeployment, &name).await?.context("no deployment")?;
    let status = json!({"status": {
        "observedGeneration": live["metadata"]["generation"], "replicas": 1, "availableReplicas": available,
    }});
    shoot.api(Kind::MachineDeployment).patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}

async fn reports_available(shoot: &Shoot, available: u32) -> Result<()> {
    let worker = shoot.worker().await?;
    ensure_reports(&worker["status"]["lastOperation"]["description"], &[&format!("({available}/3 desired")])
}

fn deployment(shoot: &Shoot) -> String {
    format!("{}-bow-z1", shoot.namespace)
}
