//! A new Worker results in ready nodes, and publishes on the way what gardenlet waits for.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::history::History;
use crate::program;
use crate::requests::Table;
use test_support::cluster::{CONTROLLER, Deletion, MachineControllerManager};
use test_support::shoot::{Kind, Shoot};

#[tokio::test]
async fn a_new_worker_becomes_ready_nodes() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "create").await?;
    let _machines = MachineControllerManager::start(cluster, &shoot.namespace, Deletion::Hastened).await?;
    let history = History::follow(&shoot.api(Kind::Worker)).await?;
    let audit = cluster.audit().await?;
    let before = audit.mark().await?;
    shoot.create(|_| {}).await?;

    let worker = shoot.succeeded().await?;
    let last = &worker["status"]["lastOperation"];
    ensure!(last["type"] == "Create" && last["progress"] == 100, "{last}");
    ensure!(last["description"] == "Successfully reconciled Worker", "{last}");
    let finalizers = &worker["metadata"]["finalizers"];
    ensure!(*finalizers == json!(["extensions.gardener.cloud/worker"]), "{finalizers}");
    let nodes = shoot.ready_nodes().await?;
    ensure!(nodes.len() == 3, "three nodes are ready: {nodes:?}");

    let deployments = shoot.names(Kind::MachineDeployment).await?;
    ensure!(deployments.iter().eq(["bow-z1", "bow-z2", "stern-z3"]), "{deployments:?}");
    let (classes, secrets) = (shoot.names(Kind::MachineClass).await?, shoot.names(Kind::ClassSecret).await?);
    ensure!(classes.len() == 3 && classes == secrets, "{classes:?}, {secrets:?}");
    let deployment = shoot.get(Kind::MachineDeployment, &format!("{}-bow-z1", shoot.namespace)).await?;
    let managers = deployment.iter().flat_map(|live| live["metadata"]["managedFields"].as_array()).flatten();
    let managers: Vec<_> = managers.map(|entry| &entry["manager"]).collect();
    ensure!(managers.contains(&&json!("gardener-extension-worker")), "nobody knows who has written it: {managers:?}");
    let bounds = &worker["status"]["machineDeployments"];
    let bound = |name: &str, minimum: i32, maximum: i32| json!({"name": format!("{}-{name}", shoot.namespace), "minimum": minimum, "maximum": maximum});
    ensure!(*bounds == json!([bound("bow-z1", 1, 2), bound("bow-z2", 1, 2), bound("stern-z3", 1, 1)]), "{bounds}");
    let images = &worker["status"]["providerStatus"]["machineImages"];
    ensure!(images[0]["name"] == "harborlinux" && images[0]["version"] == "12.1.0", "{images}");

    let versions = history.versions();
    published_before_machines_are_ready(&versions)?;
    history.ensure_progress_only_grows()?;
    history.ensure_every_status_has_a_description()?;

    let mut requests = audit.requests(CONTROLLER, before).await?;
    requests.retain(|request| request.namespace == shoot.namespace || request.name == shoot.namespace);
    println!("requests until the Worker is Succeeded:\n{}", Table::of(&requests));
    for operation in history.operations() {
        println!("{operation}");
    }
    Ok(())
}

/// gardenlet deploys the cluster-autoscaler once the bounds are published, and must not have to wait for machines.
fn published_before_machines_are_ready(versions: &[Value]) -> Result<()> {
    let published = versions.iter().find(|version| !version["status"]["machineDeploymentsLastUpdateTime"].is_null());
    let status = published.map(|version| &version["status"]);
    ensure!(
        status.is_some_and(|status| status["lastOperation"]["state"] == "Processing"
            && status["machineDeployments"].as_array().is_some_and(|bounds| bounds.len() == 3)),
        "the first status with bounds is {status:?}"
    );
    Ok(())
}
