//! Mutations of every field of a pool.

use serde_json::{Value, json};

use crate::mutation::{Mutation, editing, setting};

/// All mutations of one pool.
pub(crate) fn of_pool(index: usize, pool: &str) -> Vec<Mutation> {
    let at = format!("/spec/pools/{index}");
    let field = |name: &str| format!("spec.pools[{pool}].{name}");
    let mut all = Vec::new();
    for (name, value) in scalars() {
        let (name, pointer) = match name.split_once('[') {
            None => (name.to_owned(), name.replace('.', "/")),
            Some((map, key)) => {
                let key = key.trim_end_matches(']');
                (name.to_owned(), format!("{}/{}", map.replace('.', "/"), key.replace('/', "~1")))
            }
        };
        all.push(setting("Worker", field(&name), format!("{at}/{pointer}"), value));
    }
    let lists = [("dataVolumes", "d1", "/dataVolumes/1"), ("dataVolumes", "d2", "/dataVolumes/0")];
    for (list, entry, pointer) in lists {
        for (member, value) in [
            ("size", json!("33Gi")),
            ("type", json!("StandardSSD_LRS")),
            ("type", json!(null)),
            ("encrypted", json!(true)),
        ] {
            all.push(setting(
                "Worker",
                field(&format!("{list}[{entry}].{member}")),
                format!("{at}{pointer}/{member}"),
                value,
            ));
        }
        let deleted = entry.to_owned();
        all.push(editing("Worker", field(&format!("{list}[{entry}]")), format!("{at}/{list}"), move |items| {
            items.retain(|item| item["name"] != *deleted);
        }));
    }
    all.push(setting("Worker", field("dataVolumes[1].name"), format!("{at}/dataVolumes/1/name"), json!("d0")));
    all.push(editing("Worker", field("dataVolumes[d9]"), format!("{at}/dataVolumes"), |items| {
        items.push(json!({"name": "d9", "size": "9Gi"}));
    }));
    all.push(editing("Worker", field("dataVolumes"), format!("{at}/dataVolumes"), |items| items.reverse()));
    all.push(setting(
        "Worker",
        field("taints[dedicated/NoSchedule].value"),
        format!("{at}/taints/0/value"),
        json!("y"),
    ));
    all.push(setting("Worker", field("taints[0].effect"), format!("{at}/taints/0/effect"), json!("NoExecute")));
    all.push(editing("Worker", field("taints[new/NoExecute]"), format!("{at}/taints"), |items| {
        items.insert(0, json!({"key": "new", "effect": "NoExecute"}));
    }));
    all.push(editing("Worker", field("taints[cold/PreferNoSchedule]"), format!("{at}/taints"), |items| {
        drop(items.remove(1))
    }));
    all.push(editing("Worker", field("taints"), format!("{at}/taints"), |items| items.reverse()));
    all.push(editing("Worker", field("zones"), format!("{at}/zones"), |items| items.push(json!("4"))));
    all.push(editing("Worker", field("zones"), format!("{at}/zones"), |items| drop(items.pop())));
    all.push(editing("Worker", field("zones"), format!("{at}/zones"), |items| items.reverse()));
    all.push(setting("Worker", field("providerConfig"), format!("{at}/providerConfig"), json!(null)));
    let image = "providerConfig.dataVolumes[d1].imageRef";
    all.push(setting(
        "Worker",
        field(&format!("{image}.id")),
        format!("{at}/providerConfig/dataVolumes/0/imageRef/id"),
        json!("/j"),
    ));
    all.push(setting(
        "Worker",
        field(&format!("{image}.urn")),
        format!("{at}/providerConfig/dataVolumes/0/imageRef/urn"),
        json!("a:b:c:d"),
    ));
    all.push(editing("Worker", format!("spec.pools[{pool}]"), "/spec/pools", {
        let deleted = pool.to_owned();
        move |items| items.retain(|item| item["name"] != *deleted)
    }));
    all.push(editing("Worker", "spec.pools[gamma]", "/spec/pools", move |items| {
        let mut another = items[index].clone();
        another["name"] = json!("gamma");
        items.push(another);
    }));
    let secret = format!("gardener-node-agent-{pool}");
    all.push(Mutation {
        object: "Secret",
        field: secret.clone(),
        apply: Box::new(move |world| world.secrets[&secret]["cloud_config"] = json!("#!/bin/bash\necho changed")),
    });
    all
}

/// Fields of a pool with other values.
fn scalars() -> Vec<(&'static str, Value)> {
    let mut all: Vec<(&str, Value)> = vec![
        ("machineType", json!("Standard_D8s_v5")),
        ("machineType", json!("Standard_DC4as_v5")),
        ("machineType", json!("Standard_Unknown")),
        ("machineImage.version", json!("1877.4.0")),
        ("machineImage.version", json!("0.0.0")),
        ("machineImage.name", json!("suse-chost")),
        ("architecture", json!("arm64")),
        ("architecture", json!(null)),
        ("volume.size", json!("80Gi")),
        ("volume.size", json!("50GB")),
        ("volume.type", json!("StandardSSD_LRS")),
        ("volume.type", json!(null)),
        ("volume", json!(null)),
        ("volume.encrypted", json!(true)),
        ("nodeAgentSecretName", json!("gardener-node-agent-x-0011223344556677")),
        ("nodeAgentSecretName", json!(null)),
        ("userDataSecretRef.name", json!("other-script")),
        ("userDataSecretRef.key", json!("second")),
        ("userDataSecretRef.key", json!("missing")),
        ("labels[team]", json!("two")),
        ("labels[team]", json!(null)),
        ("labels[example.com/new]", json!("1")),
        ("annotations[note]", json!("y")),
        ("annotations[example.com/new]", json!("1")),
        ("priority", json!(7)),
        ("kubeletDataVolumeName", json!("d1")),
        ("providerConfig.volume.caching", json!("ReadOnly")),
        ("providerConfig.volume", json!(null)),
        ("providerConfig.nodeTemplate.capacity[memory]", json!("14Gi")),
        ("providerConfig.nodeTemplate.capacity[memory]", json!("15360Mi")),
        ("providerConfig.nodeTemplate.virtualCapacity[x.y/z]", json!("6")),
        ("providerConfig.nodeTemplate.virtualCapacity[x.y/w]", json!("1")),
        ("providerConfig.nodeTemplate", json!(null)),
        ("providerConfig.diagnosticsProfile.enabled", json!(false)),
        ("providerConfig.diagnosticsProfile.storageURI", json!("https://e")),
        ("providerConfig.diagnosticsProfile", json!(null)),
        ("providerConfig.capacityReservation.capacityReservationGroupID", json!("/h")),
        ("providerConfig.unknown", json!("x")),
        ("nodeTemplate.capacity[cpu]", json!("8")),
        ("nodeTemplate.capacity[gpu]", json!("1")),
        ("nodeTemplate.virtualCapacity[x.y/v]", json!("2")),
        ("kubeletConfig.kubeReserved.cpu", json!("100m")),
        ("kubeletConfig.kubeReserved.cpu", json!("0.08")),
        ("kubeletConfig.kubeReserved.pid", json!("1k")),
        ("kubeletConfig.evictionHard.memoryAvailable", json!("5%")),
        ("kubeletConfig.evictionHard.imageFSAvailable", json!("5%")),
        ("kubeletConfig.cpuManagerPolicy", json!("static")),
        ("kubeletConfig.maxPods", json!(200)),
        ("kubeletConfig", json!(null)),
    ];
    let numbers = [
        ("minimum", json!(2)),
        ("minimum", json!(5)),
        ("maximum", json!(12)),
        ("maximum", json!(4)),
        ("maximum", json!(2)),
    ];
    all.extend(numbers);
    for name in ["maxSurge", "maxUnavailable"] {
        all.extend([json!(2), json!(0), json!("50%"), json!("10%"), json!("x")].map(|value| (name, value)));
    }
    all.extend(["1.34.9", "1.33.1", "1.35.0", "1.36.2", "x"].map(|version| ("kubernetesVersion", json!(version))));
    let strategies = ["AutoRollingUpdate", "AutoInPlaceUpdate", "ManualInPlaceUpdate"];
    all.extend(strategies.map(|strategy| ("updateStrategy", json!(strategy))));
    all.extend([
        ("clusterAutoscaler.scaleDownUtilizationThreshold", json!("0.5")),
        ("clusterAutoscaler.scaleDownGpuUtilizationThreshold", json!("0.6")),
        ("clusterAutoscaler.scaleDownUnneededTime", json!("20m0s")),
        ("clusterAutoscaler.scaleDownUnneededTime", json!("1800s")),
        ("clusterAutoscaler.scaleDownUnreadyTime", json!("20m0s")),
        ("clusterAutoscaler.maxNodeProvisionTime", json!("20m0s")),
        ("clusterAutoscaler", json!(null)),
        ("machineControllerManager.machineDrainTimeout", json!("2h0m0s")),
        ("machineControllerManager.machineHealthTimeout", json!("10m0s")),
        ("machineControllerManager.machineCreationTimeout", json!("10m0s")),
        ("machineControllerManager.inPlaceUpdateTimeout", json!("10m0s")),
        ("machineControllerManager.disableHealthTimeout", json!(true)),
        ("machineControllerManager.maxEvictRetries", json!(9)),
        ("machineControllerManager.nodeConditions", json!(["Disk", "Network"])),
        ("machineControllerManager", json!(null)),
    ]);
    all
}
