//! gardenlet waits for a later publication time, which must follow every request, whatever happened in between.

use std::time::Duration;

use anyhow::{Result, ensure};
use jiff::{SignedDuration, Timestamp};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::program;
use test_support::shoot::{Kind, Shoot};

#[tokio::test]
async fn republishes_bounds_after_a_failed_first_reconcile() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "publication").await?;
    let _machines = shoot.fake_machines(cluster, Duration::ZERO).await?;
    shoot.create(|_| {}).await?;
    shoot.succeeded().await?;
    // As left by a controller whose clock is ahead of gardenlet's.
    let ahead = Timestamp::now().round(jiff::Unit::Second)?.checked_add(SignedDuration::from_secs(40))?;
    let status = Patch::Merge(json!({"status": {"machineDeploymentsLastUpdateTime": ahead}}));
    shoot.api(Kind::Worker).patch_status("fleet", &PatchParams::default(), &status).await?;

    set_technical_id(&shoot, json!(["a", "b"])).await?;
    shoot.change_worker(|_| {}).await?;
    let failed = shoot.fails(|_| Ok(())).await?;
    ensure!(published(&failed)? == ahead, "nothing can be published without the Cluster: {}", failed["status"]);
    set_technical_id(&shoot, json!(shoot.namespace)).await?;
    let worker = shoot.succeeded().await?;
    ensure!(published(&worker)? > ahead, "gardenlet waits for ever: {}", worker["status"]);
    Ok(())
}

async fn set_technical_id(shoot: &Shoot, id: Value) -> Result<()> {
    let change = |cluster: &mut Value| cluster["spec"]["shoot"]["status"]["technicalID"] = id.clone();
    shoot.change(Kind::Cluster, &shoot.namespace, change).await?;
    Ok(())
}

fn published(worker: &Value) -> Result<Timestamp> {
    Ok(serde_json::from_value(worker["status"]["machineDeploymentsLastUpdateTime"].clone())?)
}
