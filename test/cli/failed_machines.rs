//! How many failed machines each machine deployment may preserve.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::binary::{command, outcome};

const WORKER: &str = include_str!("azure.yaml");

/// The maximum of each machine deployment of pool `workers`, which has three zones. The deployment in zone 1 already
/// exists with `live`.
fn rendered(of_pool: &str, live: i32) -> BTreeMap<String, Option<i64>> {
    let settings = format!("maxSurge: 2\n      machineControllerManager: {{{of_pool}}}\n");
    let worker = WORKER.replacen("maxSurge: 2\n", &settings, 1);
    let worker = worker.replace("  replicas: 5\n", &format!("  replicas: 5\n  autoPreserveFailedMachineMax: {live}\n"));
    let output = outcome(command(&["render", "-o", "json", "-"]), &worker).succeeded();
    let list: Value = serde_json::from_str(&output.stdout).unwrap();
    let deployments = list["items"].as_array().unwrap().iter().filter(|object| object["kind"] == "MachineDeployment");
    let maximum = |deployment: &Value| {
        let name = deployment["metadata"]["name"].as_str()?.strip_prefix("shoot--garden--prod-workers-")?;
        Some((name.to_owned(), deployment["spec"]["autoPreserveFailedMachineMax"].as_i64()))
    };
    deployments.filter_map(maximum).collect()
}

#[test]
fn zones_share_preserved_machines_on_azure() {
    let shares = |of_pool, live| rendered(of_pool, live).into_values().collect::<Vec<_>>();
    assert_eq!(shares("autoPreserveFailedMachineMax: 4", 2), [Some(2), Some(1), Some(1)]);
    assert_eq!(shares("autoPreserveFailedMachineMax: 2", 2), [Some(1), Some(1), None]);
    // A newer Go extension wrote 2.
    assert_eq!(shares("autoPreserveFailedMachineMax: 0", 2), [None, None, None]);
    assert_eq!(shares("", 2), [None, None, None]);
}

#[test]
fn preview_warns_of_rolls_that_preserve_failed_machines() {
    let folder = tempfile::tempdir().unwrap();
    let findings = |settings: &str| {
        let old = WORKER.replacen("maxSurge: 2\n", &format!("maxSurge: 2\n{settings}"), 1);
        let new = old.replace("kubernetesVersion: 1.35.1", "kubernetesVersion: 1.34.1");
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(path("old.yaml"), old).unwrap();
        std::fs::write(path("new.yaml"), new).unwrap();
        let output = outcome(command(&["preview", &path("old.yaml"), &path("new.yaml"), "-o", "json"]), "");
        let document: Value = serde_json::from_str(&output.stdout).unwrap();
        let findings = document["workers"][0]["findings"].as_array().unwrap().clone();
        let is_meant = |finding: &&Value| finding["kind"] == "preserves-failed-machines";
        findings.iter().filter(is_meant).map(|finding| finding["zone"].clone()).collect::<Vec<_>>()
    };
    let two = "      machineControllerManager: {autoPreserveFailedMachineMax: 2}\n";
    assert_eq!(findings(two), ["1", "2"]);
    assert!(findings("").is_empty());
}
