//! Facts about machine-controller-manager on which docs/rollouts-specification.md is based. Each test creates a
//! MachineDeployment of its own, without a Worker.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::program;
use test_support::cluster::{Deletion, MachineControllerManager, eventually};
use test_support::shoot::{Kind, SOON, Shoot};

/// Name of the MachineDeployment.
const NAME: &str = "web";
/// Class whose machines the cloud creates.
const OLD: &str = "old";
/// Another class whose machines the cloud creates.
const NEW: &str = "new";
/// Class whose machines the cloud rejects, so that a roll to it never ends.
const FAILING: &str = "failing";

struct Rollout {
    shoot: Shoot,
    _machines: MachineControllerManager,
}

impl Rollout {
    /// A MachineDeployment with ready machines of the old class, and members of its spec that differ from the default.
    async fn begin(name: &str, spec: Value) -> Result<Self> {
        let cluster = program::shared().await?;
        let shoot = Shoot::new(cluster, name).await?;
        let machines = MachineControllerManager::start(cluster, &shoot.namespace, Deletion::Hastened).await?;
        let mut deployment = json!({
            "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "MachineDeployment", "metadata": {"name": NAME},
            "spec": {
                "replicas": 4, "selector": {"matchLabels": {"name": NAME}},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
                "template": {
                    "metadata": {"labels": {"name": NAME}}, "spec": {"class": {"kind": "MachineClass", "name": OLD}},
                },
            },
        });
        json_patch::merge(&mut deployment["spec"], &spec);
        let user_data = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "boot"}, "stringData": {"userData": "#!/bin/sh"},
        });
        let classes = [(OLD, json!({})), (NEW, json!({})), (FAILING, json!({"demo.fail": "Internal"}))];
        let classes = classes.map(|(name, tags)| class(&shoot.namespace, name, &tags));
        shoot.create_these([vec![user_data], classes.to_vec(), vec![deployment]].concat()).await?;
        let rollout = Self { shoot, _machines: machines };
        let count = rollout.deployment().await?["spec"]["replicas"].as_u64().context("replicas")?;
        rollout.reaches(&[(OLD, count)]).await?;
        // machine-controller-manager adds `maxSurge` to the number of machines in the status, so an outdated status
        // would give a roll more machines.
        eventually(SOON, "all nodes are ready, also in the status", async || {
            let nodes = rollout.shoot.ready_nodes().await?;
            ensure!(nodes.len() as u64 == count, "{nodes:?}");
            let status = &rollout.deployment().await?["status"];
            ensure!(status["replicas"] == count && status["availableReplicas"] == count, "{status}");
            Ok(())
        })
        .await?;
        Ok(rollout)
    }

    async fn deployment(&self) -> Result<Value> {
        self.shoot.get(Kind::MachineDeployment, NAME).await?.context("no MachineDeployment")
    }

    async fn patch(&self, spec: Value) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": spec}));
        self.shoot.api(Kind::MachineDeployment).patch(NAME, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    async fn set_class(&self, name: &str) -> Result<()> {
        self.patch(json!({"template": {"spec": {"class": {"name": name}}}})).await
    }

    /// Waits until each class has exactly this number of machines, and no other machine exists.
    async fn reaches(&self, counts: &[(&str, u64)]) -> Result<()> {
        eventually(SOON, &format!("machines by class are {counts:?}"), async || {
            let machines = self.shoot.list(Kind::Machine).await?;
            let of_class =
                |name: &str| machines.iter().filter(|machine| machine["spec"]["class"]["name"] == name).count();
            let found: Vec<_> = counts.iter().map(|(name, _)| (*name, of_class(name) as u64)).collect();
            let total: u64 = counts.iter().map(|(_, count)| count).sum();
            ensure!(found == counts && machines.len() as u64 == total, "{found:?} of {}", machines.len());
            Ok(())
        })
        .await
    }

    /// Waits until this number of nodes has the taint of a roll.
    async fn has_taints(&self, count: usize) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.shoot.client.clone());
        eventually(SOON, &format!("{count} nodes have the taint"), async || {
            let mut tainted = Vec::new();
            for name in self.shoot.ready_nodes().await? {
                let spec = nodes.get(&name).await?.spec.unwrap_or_default();
                if spec
                    .taints
                    .iter()
                    .flatten()
                    .any(|taint| taint.key == "deployment.machine.sapcloud.io/prefer-no-schedule")
                {
                    tainted.push(name);
                }
            }
            ensure!(tainted.len() == count, "{tainted:?}");
            Ok(())
        })
        .await
    }

    async fn machines(&self) -> Result<BTreeSet<String>> {
        self.shoot.names(Kind::Machine).await
    }
}

fn class(namespace: &str, name: &str, tags: &Value) -> Value {
    json!({
        "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "MachineClass", "metadata": {"name": name},
        "provider": "Azure", "providerSpec": {"tags": tags},
        "secretRef": {"name": "boot", "namespace": namespace},
        "nodeTemplate": {
            "architecture": "amd64", "capacity": {"cpu": "4", "memory": "8Gi", "gpu": "0"}, "instanceType": "any", "region": "any",
            "zone": "any",
        },
    })
}

#[tokio::test]
async fn paused_deployment_scales_without_rolling() -> Result<()> {
    let rollout = Rollout::begin("fact-paused", json!({"replicas": 2})).await?;
    rollout.patch(json!({"paused": true})).await?;
    rollout.set_class(NEW).await?;
    rollout.patch(json!({"replicas": 3})).await?;
    rollout.reaches(&[(OLD, 3)]).await?;
    eventually(SOON, "Progressing is Unknown", async || {
        let deployment = rollout.deployment().await?;
        let conditions = deployment["status"]["conditions"].as_array().context("no conditions")?;
        let progressing = conditions.iter().find(|condition| condition["type"] == "Progressing");
        ensure!(progressing.is_some_and(|condition| condition["status"] == "Unknown"), "{conditions:?}");
        Ok(())
    })
    .await?;
    rollout.patch(json!({"paused": false})).await?;
    rollout.reaches(&[(NEW, 3)]).await
}

#[tokio::test]
async fn paused_roll_adds_new_class_up_to_surge() -> Result<()> {
    let rollout = Rollout::begin("fact-surge", json!({})).await?;
    rollout.set_class(FAILING).await?;
    rollout.reaches(&[(OLD, 4), (FAILING, 1)]).await?;
    rollout.patch(json!({"paused": true})).await?;
    rollout.patch(json!({"replicas": 6})).await?;
    rollout.reaches(&[(OLD, 4), (FAILING, 3)]).await?;
    // Deletion does not wait for the end of the pause.
    rollout.shoot.api(Kind::MachineDeployment).delete(NAME, &DeleteParams::default()).await?;
    rollout.reaches(&[]).await
}

#[tokio::test]
async fn scale_out_in_roll_adds_only_new_class() -> Result<()> {
    let rollout = Rollout::begin("fact-scale", json!({})).await?;
    rollout.set_class(FAILING).await?;
    rollout.reaches(&[(OLD, 4), (FAILING, 1)]).await?;
    rollout.patch(json!({"replicas": 6})).await?;
    rollout.reaches(&[(OLD, 4), (FAILING, 3)]).await
}

#[tokio::test]
async fn scale_in_of_roll_affects_both_classes() -> Result<()> {
    let strategy = json!({"rollingUpdate": {"maxSurge": 3}});
    let rollout = Rollout::begin("fact-shrink", json!({"replicas": 6, "strategy": strategy})).await?;
    rollout.set_class(FAILING).await?;
    rollout.reaches(&[(OLD, 6), (FAILING, 3)]).await?;
    rollout.patch(json!({"paused": true})).await?;
    rollout.patch(json!({"replicas": 3})).await?;
    rollout.reaches(&[(OLD, 4), (FAILING, 2)]).await
}

#[tokio::test]
async fn earlier_template_takes_up_its_machines() -> Result<()> {
    let rollout = Rollout::begin("fact-return", json!({"replicas": 2})).await?;
    let machines = rollout.machines().await?;
    let sets = rollout.shoot.names(Kind::MachineSet).await?;
    rollout.set_class(FAILING).await?;
    rollout.reaches(&[(OLD, 2), (FAILING, 1)]).await?;
    rollout.has_taints(2).await?;
    rollout.set_class(OLD).await?;
    rollout.reaches(&[(OLD, 2)]).await?;
    rollout.has_taints(0).await?;
    ensure!(rollout.machines().await? == machines, "machines were replaced");
    let with_machines = rollout.shoot.list(Kind::MachineSet).await?;
    let with_machines = with_machines.iter().filter(|set| set["spec"]["replicas"].as_u64().unwrap_or_default() > 0);
    let names: BTreeSet<_> = with_machines.filter_map(|set| set["metadata"]["name"].as_str()).collect();
    ensure!(names.iter().eq(sets.iter()), "{sets:?} became {names:?}");
    Ok(())
}

#[tokio::test]
async fn zero_surge_and_unavailable_removes_first() -> Result<()> {
    let strategy = json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}});
    let rollout = Rollout::begin("fact-zero", json!({"replicas": 2, "strategy": strategy})).await?;
    rollout.set_class(FAILING).await?;
    rollout.reaches(&[(OLD, 1), (FAILING, 1)]).await
}

#[tokio::test]
async fn node_template_labels_reach_running_nodes() -> Result<()> {
    let rollout = Rollout::begin("fact-labels", json!({"replicas": 2})).await?;
    let before = rollout.machines().await?;
    let metadata = json!({"labels": {"worker.gardener.cloud/gardener-node-agent-secret-name": "another"}});
    rollout.patch(json!({"template": {"spec": {"nodeTemplate": {"metadata": metadata}}}})).await?;
    let nodes: Api<Node> = Api::all(rollout.shoot.client.clone());
    eventually(SOON, "all nodes have the label", async || {
        for name in rollout.shoot.ready_nodes().await? {
            let labels = nodes.get(&name).await?.metadata.labels.unwrap_or_default();
            let key = labels.get("worker.gardener.cloud/gardener-node-agent-secret-name");
            ensure!(key.is_some_and(|key| key == "another"), "{name}: {labels:?}");
        }
        Ok(())
    })
    .await?;
    ensure!(rollout.machines().await? == before, "machines were replaced");
    Ok(())
}

#[tokio::test]
async fn roll_ignores_minimum_ready_time() -> Result<()> {
    let rollout = Rollout::begin("fact-minimum", json!({"replicas": 2, "minReadySeconds": 3600})).await?;
    rollout.set_class(NEW).await?;
    rollout.reaches(&[(NEW, 2)]).await
}
