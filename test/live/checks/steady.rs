//! Between operations: machines that a user selects for update trigger a reconcile, and the node condition is updated.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::program;
use crate::requests::Table;
use test_support::cluster::{CONTROLLER, eventually};
use test_support::shoot::{Kind, SOON, Shoot, ensure_reports, pool, set_image};

#[tokio::test]
async fn selecting_a_machine_for_update_reconciles_its_worker() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "by-hand").await?;
    let machines = shoot.fake_machines(cluster, Duration::ZERO).await?;
    shoot
        .create(|documents| {
            let stern = pool(documents.of_kind("Worker"), "stern");
            stern["updateStrategy"] = json!("ManualInPlaceUpdate");
        })
        .await?;
    let before = shoot.succeeded().await?;
    // From here on, the test acts as machine-controller-manager.
    drop(machines);
    let deployment = format!("{}-stern-z3", shoot.namespace);
    let sets = shoot.list(Kind::MachineSet).await?;
    let old = sets.iter().find(|set| set["metadata"]["ownerReferences"][0]["name"] == deployment.as_str());
    let old = old.context("pool stern has no machine set")?;
    create_machine(&shoot, old).await?;
    set_status(&shoot, Kind::MachineSet, &name(old), json!({"replicas": 1})).await?;

    shoot.change_worker(|worker| set_image(worker, "stern", "12.2.0")).await?;
    let class = |deployment: &Value| deployment["spec"]["template"]["spec"]["class"]["name"].clone();
    let changed = eventually(SOON, "the deployment of pool stern has a new class", async || {
        let live = shoot.get(Kind::MachineDeployment, &deployment).await?.context("it is gone")?;
        ensure!(class(&live) != class(old), "it has {}", class(&live));
        Ok(live)
    })
    .await?;
    let mut new = old.clone();
    new["metadata"] = json!({
        "name": "stern-new", "namespace": shoot.namespace,
        "labels": old["metadata"]["labels"], "ownerReferences": old["metadata"]["ownerReferences"],
    });
    new["spec"]["template"]["spec"]["class"]["name"] = class(&changed);
    shoot.api(Kind::MachineSet).create(&PostParams::default(), &serde_json::from_value(new)?).await?;
    set_updated(&shoot, &deployment, &changed, 0).await?;

    let rests = shoot.succeeded().await?;
    ensure_reports(&condition(&rests, "PoolsReady")["message"], &["wait for a person", "stern"])?;
    let hash = |worker: &Value| worker["status"]["inPlaceUpdates"]["workerPoolToHashMap"]["stern"].clone();
    ensure!(hash(&rests) == hash(&before), "the hash of an update that nobody has made is recorded");

    set_in_place(&shoot, "SelectedForUpdate").await?;
    eventually(SOON, "the Worker waits for the selected machine", async || {
        let last = &shoot.worker().await?["status"]["lastOperation"];
        ensure!(last["state"] == "Processing" && last["type"] == "Reconcile", "{last}");
        ensure_reports(&last["description"], &["Waiting until 1 old machines are updated"])
    })
    .await?;

    // The machine is updated, and its old machine set is deleted. It still names its original class.
    let of_new = |machine: &mut Value| machine["metadata"]["ownerReferences"][0]["name"] = json!("stern-new");
    shoot.change(Kind::Machine, "stern-machine", of_new).await?;
    set_in_place(&shoot, "UpdateSuccessful").await?;
    shoot.api(Kind::MachineSet).delete(&name(old), &DeleteParams::default()).await?;
    set_updated(&shoot, &deployment, &changed, 1).await?;
    eventually(SOON, "the update is recorded", async || {
        let worker = shoot.worker().await?;
        ensure!(worker["status"]["lastOperation"]["state"] == "Succeeded", "{}", worker["status"]["lastOperation"]);
        ensure!(hash(&worker) != hash(&before), "the hash is still {}", hash(&before));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn node_conditions_follow_machines_between_operations() -> Result<()> {
    let cluster = program::shared().await?;
    let audit = cluster.audit().await?;
    let shoot = Shoot::new(cluster, "steady").await?;
    let machines = shoot.fake_machines(cluster, Duration::ZERO).await?;
    shoot.create(|_| {}).await?;
    let well = shoot.succeeded().await?;
    ensure!(condition(&well, "EveryNodeReady")["status"] == "True", "{}", well["status"]["conditions"]);
    drop(machines);

    // A condition that an older extension wrote.
    let mut conditions = well["status"]["conditions"].clone();
    let left_behind = json!({
        "type": "ControlPlaneHealthy", "status": "True", "reason": "R", "message": "M",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z",
    });
    conditions.as_array_mut().context("no conditions")?.push(left_behind);
    set_status(&shoot, Kind::Worker, "fleet", json!({"conditions": conditions})).await?;
    eventually(SOON, "what was left behind is removed", async || {
        let worker = shoot.worker().await?;
        ensure!(condition(&worker, "ControlPlaneHealthy").is_null(), "{}", worker["status"]["conditions"]);
        Ok(())
    })
    .await?;

    let before = audit.mark().await?;
    let deployment = format!("{}-bow-z1", shoot.namespace);
    let failed = json!([{
        "name": "bow-z1-broken", "lastOperation": {"description": "the quota is exceeded", "type": "Create"},
    }]);
    set_status(&shoot, Kind::MachineDeployment, &deployment, json!({"failedMachines": failed})).await?;
    eventually(SOON, "the failed machine is told", async || {
        let worker = shoot.worker().await?;
        let nodes = condition(&worker, "EveryNodeReady");
        ensure!(nodes["status"] == "False" && nodes["reason"] == "HealthCheckUnsuccessful", "{nodes}");
        ensure_reports(&nodes["message"], &["bow-z1-broken", "the quota is exceeded"])?;
        ensure!(nodes["codes"] == json!(["ERR_INFRA_QUOTA_EXCEEDED"]), "{nodes}");
        ensure!(worker["status"]["lastOperation"] == well["status"]["lastOperation"], "no operation has begun");
        Ok(())
    })
    .await?;
    set_status(&shoot, Kind::MachineDeployment, &deployment, json!({"failedMachines": null})).await?;
    eventually(SOON, "all nodes are ready again", async || {
        let worker = shoot.worker().await?;
        ensure!(condition(&worker, "EveryNodeReady")["status"] == "True", "{}", worker["status"]["conditions"]);
        Ok(())
    })
    .await?;
    let mut requests = audit.requests(CONTROLLER, before).await?;
    requests.retain(|request| request.namespace == shoot.namespace || request.name == shoot.namespace);
    let table = Table::of(&requests);
    ensure!(table.total() == 2 && table.count("patch", "workers/status") == 2, "more than the two words:\n{table}");
    Ok(())
}

#[tokio::test]
async fn the_health_check_of_another_controller_is_left_alone() -> Result<()> {
    let cluster = program::shared().await?;
    let audit = cluster.audit().await?;
    let shoot = Shoot::new(cluster, "theirs").await?;
    let _machines = shoot.fake_machines(cluster, Duration::ZERO).await?;
    shoot.create(|_| {}).await?;
    let well = shoot.succeeded().await?;
    // The other health check also counts nodes, and reports a failure that ours does not.
    let mut conditions = well["status"]["conditions"].clone();
    for condition in conditions.as_array_mut().context("no conditions")? {
        if condition["type"] == "EveryNodeReady" {
            condition["status"] = "False".into();
            condition["message"] = "not enough nodes are registered".into();
        }
    }
    set_status(&shoot, Kind::Worker, "fleet", json!({"conditions": conditions})).await?;
    let before = audit.mark().await?;
    // A change that this controller's health check would evaluate.
    let deployment = format!("{}-bow-z1", shoot.namespace);
    shoot
        .change(Kind::MachineDeployment, &deployment, |object| object["metadata"]["labels"]["seen"] = json!("1"))
        .await?;
    shoot.annotate_worker().await?;
    let done = shoot.succeeded().await?;
    let theirs = condition(&done, "EveryNodeReady");
    ensure!(theirs["message"] == "not enough nodes are registered", "{theirs}");
    let mut requests = audit.requests(CONTROLLER, before).await?;
    requests.retain(|request| request.namespace == shoot.namespace);
    let table = Table::of(&requests);
    ensure!(table.count("patch", "workers/status") == 1, "more than the answer:\n{table}");
    Ok(())
}

fn condition(worker: &Value, name: &str) -> Value {
    let mut conditions = worker["status"]["conditions"].as_array().into_iter().flatten();
    conditions.find(|condition| condition["type"] == name).cloned().unwrap_or_default()
}

fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

/// Creates one machine of an old machine set, not yet selected for update.
async fn create_machine(shoot: &Shoot, set: &Value) -> Result<()> {
    let machine = json!({
        "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "Machine",
        "metadata": {
            "name": "stern-machine", "namespace": shoot.namespace,
            "labels": set["spec"]["template"]["metadata"]["labels"],
            "ownerReferences": [{
                "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "MachineSet",
                "name": set["metadata"]["name"], "uid": set["metadata"]["uid"],
            }],
        },
        "spec": {"class": set["spec"]["template"]["spec"]["class"]},
    });
    shoot.api(Kind::Machine).create(&PostParams::default(), &serde_json::from_value(machine)?).await?;
    set_in_place(shoot, "CandidateForUpdate").await
}

async fn set_in_place(shoot: &Shoot, reason: &str) -> Result<()> {
    let condition = json!({"type": "InPlaceUpdate", "status": "True", "reason": reason});
    set_status(shoot, Kind::Machine, "stern-machine", json!({"conditions": [condition]})).await
}

/// Writes the status of a deployment with one machine as machine-controller-manager does.
async fn set_updated(shoot: &Shoot, deployment: &str, seen: &Value, updated: u32) -> Result<()> {
    let status = json!({
        "observedGeneration": seen["metadata"]["generation"], "replicas": 1, "updatedReplicas": updated,
        "readyReplicas": 1, "availableReplicas": 1, "unavailableReplicas": 0,
    });
    set_status(shoot, Kind::MachineDeployment, deployment, status).await
}

async fn set_status(shoot: &Shoot, kind: Kind, name: &str, status: Value) -> Result<()> {
    let patch = Patch::Merge(json!({"status": status}));
    let patched = shoot.api(kind).patch_status(name, &PatchParams::default(), &patch).await;
    patched.map(drop).with_context(|| format!("the status of {kind:?} {name}"))
}
