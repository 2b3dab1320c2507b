//! In-place updates with the real machine-controller-manager: nodes stay, the operation ends with the last of them, and
//! a machine's original class exists as long as the machine.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::checks::move_seed::{release, restored};
use crate::program;
use crate::requests::Table;
use test_support::cluster::{CONTROLLER, Deletion, MachineControllerManager, eventually};
use test_support::migration::{kept_machines, request, take_away};
use test_support::shoot::{Kind, SOON, Shoot, pool, set_image};

/// Node labels through which machine-controller-manager, users and gardener-node-agent communicate.
const SELECTED: &str = "node.machine.sapcloud.io/selected-for-update";
const RESULT: &str = "node.machine.sapcloud.io/update-result";

#[tokio::test]
async fn machines_are_updated_where_they_are() -> Result<()> {
    let (shoot, _machines) = updated_in_place("AutoInPlaceUpdate").await?;
    keeps_the_class_of_its_machine(&shoot).await
}

#[tokio::test]
async fn machines_are_updated_where_they_are_when_a_person_selects_them() -> Result<()> {
    let (shoot, _machines) = updated_in_place("ManualInPlaceUpdate").await?;
    keeps_the_class_of_its_machine(&shoot).await
}

/// The machines' original class is not created on the other seed, but machine-controller-manager needs a class to
/// delete machines.
#[tokio::test]
async fn a_shoot_whose_machines_were_updated_in_place_goes_after_it_has_moved() -> Result<()> {
    let (shoot, machines) = updated_in_place("AutoInPlaceUpdate").await?;
    let nodes = shoot.ready_nodes().await?;
    let kept = kept_machines(&shoot).await?;
    request(&shoot, "migrate").await?;
    let moved = release(&shoot).await?;
    machines.stop().await?;
    take_away(&shoot).await?;
    let _machines = restored(program::shared().await?, &shoot, &moved, &kept).await?;
    ensure!(shoot.ready_nodes().await? == nodes, "{nodes:?} became {:?}", shoot.ready_nodes().await?);
    shoot.api(Kind::Worker).delete("fleet", &DeleteParams::default()).await?;
    shoot.deleted().await
}

/// machine-controller-manager 0.63 also writes the new class into an updated machine (#1153). Here the test writes it.
#[tokio::test]
async fn keeps_only_the_class_of_patched_machines() -> Result<()> {
    let (shoot, _machines) = updated_in_place("AutoInPlaceUpdate").await?;
    let nodes = shoot.ready_nodes().await?;
    let deployments = shoot.list(Kind::MachineDeployment).await?;
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let deployment = deployments.iter().find(|one| name(one).contains("-stern-")).context("no deployment of stern")?;
    let new = deployment["spec"]["template"]["spec"]["class"]["name"].clone();
    let machines = shoot.list(Kind::Machine).await?;
    let machine = machines.iter().find(|one| name(one).contains("-stern-")).context("no machine of stern")?;
    ensure!(machine["spec"]["class"]["name"] != new, "0.62 does not write it");
    shoot.change(Kind::Machine, &name(machine), |machine| machine["spec"]["class"]["name"] = new.clone()).await?;

    let new = new.as_str().and_then(|new| new.strip_prefix(&format!("{}-", shoot.namespace))).context("a name")?;
    // The second reconcile must not delete the class in use.
    for _ in 0..2 {
        shoot.annotate_worker().await?;
        shoot.succeeded().await?;
        for kind in [Kind::MachineClass, Kind::ClassSecret] {
            eventually(SOON, "only the class in use is left", async || {
                let left = shoot.names_of_pool(kind, "stern").await?;
                ensure!(left.iter().eq([new]), "{left:?}");
                Ok(())
            })
            .await?;
        }
    }
    ensure!(shoot.ready_nodes().await? == nodes, "{nodes:?} became {:?}", shoot.ready_nodes().await?);
    shoot.api(Kind::Worker).delete("fleet", &DeleteParams::default()).await?;
    shoot.deleted().await
}

/// A shoot whose pool `stern` has been updated to another image on the same node.
async fn updated_in_place(strategy: &str) -> Result<(Shoot, MachineControllerManager)> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "in-place").await?;
    let machines = MachineControllerManager::start(cluster, &shoot.namespace, Deletion::Hastened).await?;
    shoot
        .create(|documents| {
            let stern = pool(documents.of_kind("Worker"), "stern");
            stern["updateStrategy"] = strategy.into();
            (stern["maxSurge"], stern["maxUnavailable"]) = (0.into(), 1.into());
        })
        .await?;
    shoot.succeeded().await?;
    let nodes = shoot.ready_nodes().await?;
    let old = shoot.names_of_pool(Kind::MachineClass, "stern").await?;

    shoot.change_worker(|worker| set_image(worker, "stern", "12.2.0")).await?;
    if strategy == "ManualInPlaceUpdate" {
        shoot.succeeded().await?;
        label(&shoot, &node_of_stern(&nodes), SELECTED, "true").await?;
    }
    be_node_agent(&shoot, &node_of_stern(&nodes)).await?;
    eventually(SOON, "the machine is of the new machine set, and the operation is done", async || {
        let of_new = new_set(&shoot, &old).await?;
        let machines = shoot.list(Kind::Machine).await?;
        let is_moved = machines.iter().any(|one| one["metadata"]["ownerReferences"][0]["name"] == of_new.as_str());
        ensure!(is_moved, "it is of the old one");
        let last = shoot.worker().await?["status"]["lastOperation"].clone();
        ensure!(last["state"] == "Succeeded", "{last}");
        Ok(())
    })
    .await?;

    // As gardener-resource-manager does once all critical components run on a node.
    let untainted = json!({"spec": {"taints": null}});
    self::nodes(&shoot).patch(&node_of_stern(&nodes), &PatchParams::default(), &Patch::Merge(&untainted)).await?;
    ensure!(shoot.ready_nodes().await? == nodes, "{nodes:?} became {:?}", shoot.ready_nodes().await?);
    Ok((shoot, machines))
}

/// Checks that the class stays until the machine is deleted, even after a no-op reconcile.
async fn keeps_the_class_of_its_machine(shoot: &Shoot) -> Result<()> {
    let audit = program::shared().await?.audit().await?;
    let classes = shoot.names_of_pool(Kind::MachineClass, "stern").await?;
    ensure!(classes.len() == 2, "the machine names the old one: {classes:?}");
    ensure!(shoot.names_of_pool(Kind::ClassSecret, "stern").await? == classes, "each has its Secret");
    let before = audit.mark().await?;
    shoot.annotate_worker().await?;
    shoot.succeeded().await?;
    let mut requests = audit.requests(CONTROLLER, before).await?;
    requests.retain(|request| request.namespace == shoot.namespace);
    let table = Table::of(&requests);
    ensure!(table.count("list", "machines") == 0, "a request that finds everything done begins nothing:\n{table}");

    shoot.api(Kind::Worker).delete("fleet", &DeleteParams::default()).await?;
    shoot.deleted().await
}

fn node_of_stern(nodes: &BTreeSet<String>) -> String {
    nodes.iter().find(|node| node.contains("-stern-")).cloned().unwrap_or_default()
}

/// The machine set of pool stern with a class other than these.
async fn new_set(shoot: &Shoot, old: &BTreeSet<String>) -> Result<String> {
    let sets = shoot.list(Kind::MachineSet).await?;
    let name = |set: &Value| set["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let is_new = |set: &&Value| {
        let class = set["spec"]["template"]["spec"]["class"]["name"].as_str().unwrap_or_default();
        name(set).contains("-stern-") && !old.iter().any(|old| class.ends_with(old))
    };
    let new = sets.iter().find(is_new).map(name);
    ensure!(new.is_some(), "there is none");
    Ok(new.unwrap_or_default())
}

/// gardener-node-agent updates the node after machine-controller-manager has drained it.
async fn be_node_agent(shoot: &Shoot, name: &str) -> Result<()> {
    eventually(SOON, "the node is ready for its update", async || {
        let nodes = nodes(shoot).list(&ListParams::default().fields(&format!("metadata.name={name}"))).await?;
        let conditions = nodes.iter().filter_map(|node| node.status.as_ref()?.conditions.as_ref()).flatten();
        let reasons: Vec<_> = conditions.filter(|one| one.type_ == "InPlaceUpdate").map(|one| &one.reason).collect();
        ensure!(reasons.iter().any(|reason| reason.as_deref() == Some("ReadyForUpdate")), "{reasons:?}");
        Ok(())
    })
    .await?;
    label(shoot, name, RESULT, "successful").await
}

async fn label(shoot: &Shoot, node: &str, key: &str, value: &str) -> Result<()> {
    let labels = json!({"metadata": {"labels": {key: value}}});
    nodes(shoot).patch(node, &PatchParams::default(), &Patch::Merge(&labels)).await?;
    Ok(())
}

fn nodes(shoot: &Shoot) -> Api<Node> {
    Api::all(shoot.client.clone())
}
