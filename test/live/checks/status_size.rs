//! During a cloud outage every machine fails with a different error. The Worker reports that in a status that fits into
//! etcd, shortened further if less space is left.

use anyhow::{Context as _, Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use test_support::shoot::{Kind, Shoot, ensure_reports};

use crate::program;

/// Failed machines of each of the three pools.
const MACHINES: usize = 400;
/// Length of the cloud's error for each machine.
const RESPONSE: usize = 2000;
/// etcd's size limit for one object.
const MOST_OF_ETCD: usize = 1_536 * 1024;
/// Remaining space for the status: too small for unshortened texts.
const ROOM: usize = 12 * 1024;

#[tokio::test]
async fn a_status_with_a_thousand_failed_machines_is_stored() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "large-status").await?;
    let machines = shoot.fake_machines(cluster, std::time::Duration::ZERO).await?;
    shoot.create(|_| {}).await?;
    shoot.succeeded().await?;
    // From here on, the test acts as machine-controller-manager.
    drop(machines);

    fail_all(&shoot, MACHINES).await?;
    shoot.change_worker(|_| {}).await?;
    let worker = shoot.fails(reports_all).await?;
    let size = serde_json::to_string(&worker["status"])?.len();
    ensure!(size < 256 * 1024, "the status has {size} bytes");
    let bounds = worker["status"]["machineDeployments"].as_array().map(Vec::len);
    ensure!(bounds == Some(3), "the autoscaler reads {bounds:?} of 3 deployments");

    fail_all(&shoot, 0).await?;
    shoot.change_worker(|_| {}).await?;
    fill_up(&shoot, shoot.succeeded().await?).await?;
    fail_all(&shoot, MACHINES).await?;
    shoot.change_worker(|_| {}).await?;
    let shorter = shoot.fails(reports_all).await?;
    let length = |worker: &Value| worker["status"]["lastError"]["description"].as_str().map(str::len);
    ensure!(length(&shorter) < length(&worker), "{:?} instead of {:?}", length(&shorter), length(&worker));
    ensure!(shorter["status"]["machineDeployments"] == worker["status"]["machineDeployments"], "bounds were shortened");
    Ok(())
}

fn reports_all(worker: &Value) -> Result<()> {
    let error = &worker["status"]["lastError"];
    ensure_reports(&error["description"], &["failed while waiting", &format!("{MACHINES} errors occurred"), "more"])?;
    ensure!(error["codes"] == json!(["ERR_INFRA_QUOTA_EXCEEDED"]), "{}", error["codes"]);
    Ok(())
}

/// Reports failed machines as machine-controller-manager does.
async fn fail_all(shoot: &Shoot, count: usize) -> Result<()> {
    for deployment in shoot.list(Kind::MachineDeployment).await? {
        let name = deployment["metadata"]["name"].as_str().context("a name")?;
        let failed = (0..count).map(|machine| {
            let words = format!("request {machine}: the quota is exceeded. ");
            let description: String = words.chars().cycle().take(RESPONSE).collect();
            json!({"name": format!("{name}-{machine:05}"), "lastOperation": {"description": description, "type": "Create"}})
        });
        let failed: Vec<Value> = failed.collect();
        let status = json!({"status": {
            "failedMachines": if failed.is_empty() { Value::Null } else { json!(failed) },
            "observedGeneration": deployment["metadata"]["generation"],
        }});
        let api = shoot.api(Kind::MachineDeployment);
        api.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.context("failing machines")?;
    }
    Ok(())
}

/// Leaves little space in the Worker, as the machine state of a large shoot does.
async fn fill_up(shoot: &Shoot, worker: Value) -> Result<()> {
    let taken = serde_json::to_string(&worker)?.len();
    let state = json!({"status": {"state": {"filler": "x".repeat(MOST_OF_ETCD - ROOM - taken)}}});
    let api = shoot.api(Kind::Worker);
    api.patch_status("fleet", &PatchParams::default(), &Patch::Merge(state)).await.context("filling the Worker")?;
    Ok(())
}
