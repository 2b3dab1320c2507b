//! The cloud rejects the creation of machines: the Worker reports which and why, and recovers when it succeeds.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::command_line::run;
use crate::program;
use test_support::cluster::{CONTROLLER, ControlPlane, Deletion, MachineControllerManager};
use test_support::leaks::ensure_no_secrets;
use test_support::shoot::{Kind, Shoot, ensure_reports, pool};

/// A label of a pool becomes a tag of its machines, and this tag makes the fake cloud fail.
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
    let reported = |worker: &Value| {
        let error = &worker["status"]["lastError"];
        ensure!(error["codes"] == json!(["ERR_INFRA_RESOURCES_DEPLETED"]), "{error}");
        ensure_reports(&error["description"], &["\"stern\"", &machine_of_stern, "asks for this failure"])
    };
    shoot.fails(reported).await?;
    let classes = shoot.names(Kind::MachineClass).await?;
    ensure_commands_report(cluster, &shoot.namespace, &classes).await?;

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

/// `diagnose` and `explain --live` read the cluster, but only the names of Secrets.
async fn ensure_commands_report(cluster: &ControlPlane, namespace: &str, classes: &BTreeSet<String>) -> Result<()> {
    let kubeconfig = cluster.kubeconfig_file(CONTROLLER)?;
    let diagnosed = run(&kubeconfig, &["diagnose", namespace]).await?;
    let output = String::from_utf8_lossy(&diagnosed.stdout).into_owned();
    ensure!(diagnosed.status.code() == Some(1), "it is not ready: {diagnosed:?}");
    for word in
        ["stern: 1 machine can't be created", "ERR_INFRA_RESOURCES_DEPLETED", "asks for this failure", "→ Choose"]
    {
        ensure!(output.contains(word), "no {word:?} in {output}");
    }
    let explained = run(&kubeconfig, &["explain", "--live", namespace, "-o", "json"]).await?;
    ensure!(explained.status.code() == Some(0), "{explained:?}");
    let explained = String::from_utf8_lossy(&explained.stdout).into_owned();
    for class in classes {
        ensure!(explained.contains(class), "{class} is not explained: {explained}");
    }
    ensure_no_secrets("the output", &format!("{output}{explained}"))?;
    Ok(())
}
