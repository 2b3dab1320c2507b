//! The cloud refuses to make machines: the Worker says which and why, and recovers when it may.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::program;
use test_support::cluster::{Deletion, MachineControllerManager};
use test_support::shoot::{Kind, Shoot, ensure_says, pool};

/// A label of a pool becomes a tag of its machines, and this tag makes the cloud of the tests fail.
const LABEL: &str = "demo.fail";

#[tokio::test]
async fn errors_of_the_cloud_are_reported_with_pool_and_machine() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "refused").await?;
    let _machines = MachineControllerManager::start(cluster, &shoot.namespace, Deletion::Hastened).await?;
    shoot
        .create(|documents| pool(documents.of_kind("Worker"), "stern")["labels"][LABEL] = json!("ResourceExhausted"))
        .await?;

    let machine_of_stern = format!("{}-stern-z3-", shoot.namespace);
    let told = |worker: &Value| {
        let error = &worker["status"]["lastError"];
        ensure!(error["codes"] == json!(["ERR_INFRA_RESOURCES_DEPLETED"]), "{error}");
        ensure_says(&error["description"], &["\"stern\"", &machine_of_stern, "asks for this failure"])
    };
    shoot.fails(told).await?;
    let classes = shoot.names(Kind::MachineClass).await?;

    shoot
        .change_worker(|worker| {
            pool(worker, "stern")["labels"].as_object_mut().expect("labels are a map").remove(LABEL);
        })
        .await?;
    shoot.succeeded().await?;
    ensure!(shoot.names(Kind::MachineClass).await? == classes, "a label is no reason for a new class");
    ensure!(shoot.ready_nodes().await?.len() == 3, "all nodes are ready");
    Ok(())
}
