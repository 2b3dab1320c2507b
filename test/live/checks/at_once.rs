//! The next request takes effect immediately, not after the wait, whatever the Worker waits for.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::program;
use test_support::cluster::eventually;
use test_support::shoot::{Kind, SOON, Shoot, ensure_reports, pool};

/// Far less than any of the waits, and far more than a busy machine needs.
const AT_ONCE: Duration = Duration::from_secs(10);

#[tokio::test]
async fn new_requests_interrupt_waiting() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "at-once").await?;
    // There is no machine-controller-manager here.
    shoot.create(|_| {}).await?;
    waits_for(&shoot, "Waiting until machines are available").await?;

    shoot.change_worker(|worker| pool(worker, "stern")["maximum"] = json!(7)).await?;
    let changed = takes_effect("a new generation", async || {
        let worker = shoot.worker().await?;
        let bounds = worker["status"]["machineDeployments"].as_array().cloned().unwrap_or_default();
        ensure!(bounds.iter().any(|bound| bound["maximum"] == 7), "{bounds:?}");
        Ok(())
    })
    .await?;
    waits_for(&shoot, "Waiting until machines are available").await?;

    shoot
        .change(Kind::Cluster, &shoot.namespace, |cluster| {
            cluster["spec"]["shoot"]["spec"]["hibernation"] = json!({"enabled": true});
        })
        .await?;
    shoot.change_worker(|_| {}).await?;
    let hibernated = takes_effect("a hibernation", async || {
        let deployments = shoot.list(Kind::MachineDeployment).await?;
        ensure!(deployments.len() == 3, "{} deployments", deployments.len());
        ensure!(deployments.iter().all(|live| live["spec"]["replicas"] == 0), "{}", replicas(&deployments));
        Ok(())
    })
    .await?;
    waits_for(&shoot, "have been hibernated").await?;

    shoot.api(Kind::Worker).delete("fleet", &DeleteParams::default()).await?;
    let deleted = takes_effect("a deletion", async || {
        let deployments = shoot.list(Kind::MachineDeployment).await?;
        ensure!(deployments.is_empty(), "{} deployments are left", deployments.len());
        Ok(())
    })
    .await?;
    // No object has finalizers, so each deletion triggers the next.
    let removed = takes_effect("the end of it", async || {
        let worker = shoot.get(Kind::Worker, "fleet").await?;
        ensure!(worker.is_none(), "{}", worker.unwrap_or_default()["status"]["lastOperation"]);
        Ok(())
    })
    .await?;
    println!(
        "took effect: new generation {changed:?}, hibernation {hibernated:?}, deletion {deleted:?}, and all of it {removed:?}"
    );
    shoot.deleted().await
}

async fn waits_for(shoot: &Shoot, what: &str) -> Result<()> {
    eventually(SOON, &format!("the Worker says {what:?}"), async || {
        let worker = shoot.worker().await?;
        ensure_reports(&worker["status"]["lastOperation"]["description"], &[what])
    })
    .await
}

/// Returns the duration.
async fn takes_effect(what: &str, check: impl AsyncFn() -> Result<()>) -> Result<Duration> {
    let requested = Instant::now();
    eventually(AT_ONCE, &format!("{what} takes effect"), || check()).await.with_context(|| what.to_owned())?;
    Ok(requested.elapsed())
}

fn replicas(deployments: &[Value]) -> String {
    let replicas = deployments.iter().map(|live| live["spec"]["replicas"].to_string());
    replicas.collect::<Vec<_>>().join(", ")
}
