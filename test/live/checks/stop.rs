//! A roll zone by zone is stopped in the middle and continues, with the real machine-controller-manager.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::zone_by_zone::{ANNOTATION, INTERVAL, LISTS, machine_sets, machines, three_zones};
use crate::program;
use test_support::cluster::{Deletion, MachineControllerManager, eventually};
use test_support::shoot::{Kind, SOON, Shoot, set_image};

const STOP: &str = "gardener-extension-worker/stop-rolls";
const MARK: &str = "gardener-extension-worker/paused";
/// Machines of the pool in all zones. Five in each zone, so that the roll is stopped before a zone is done.
const MACHINES: usize = 15;
/// How many lists of machines the stop lasts, counted from the settled state. One replacement takes about a second.
const LISTS_OF_STOP: usize = 200;

fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

fn is_being_deleted(machine: &Value) -> bool {
    !machine["metadata"]["deletionTimestamp"].is_null()
}

/// Zones with machines of two classes.
fn rolling(machines: &[Value]) -> usize {
    let mut classes: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for machine in machines {
        let zone = machine["metadata"]["labels"]["name"].as_str().unwrap_or_default();
        classes.entry(zone).or_default().insert(machine["spec"]["class"]["name"].as_str().unwrap_or_default());
    }
    classes.values().filter(|classes| classes.len() > 1).count()
}

/// Sets or removes the annotation, without a request of gardenlet.
async fn stop(shoot: &Shoot, pools: Option<&str>) -> Result<()> {
    let annotate = |worker: &mut Value| match (pools, worker["metadata"]["annotations"].as_object_mut()) {
        (Some(pools), _) => worker["metadata"]["annotations"][STOP] = json!(pools),
        (None, Some(annotations)) => drop(annotations.remove(STOP)),
        (None, None) => {}
    };
    shoot.change(Kind::Worker, "fleet", annotate).await?;
    Ok(())
}

async fn condition(shoot: &Shoot) -> Result<Value> {
    let worker = shoot.worker().await?;
    let conditions = worker["status"]["conditions"].as_array().context("no conditions")?;
    let held = conditions.iter().find(|condition| condition["type"] == "RollsHeld");
    held.cloned().context("no RollsHeld")
}

/// Names of the paused MachineDeployments. Each has the mark of the controller.
async fn paused(shoot: &Shoot) -> Result<Vec<String>> {
    let mut paused = shoot.list(Kind::MachineDeployment).await?;
    paused.retain(|deployment| deployment["spec"]["paused"] == true);
    let marked = paused.iter().all(|deployment| deployment["metadata"]["annotations"][MARK] == "true");
    ensure!(marked, "without the mark: {paused:?}");
    Ok(paused.iter().map(name).collect())
}

/// Fails until machine-controller-manager has observed the pause, and each machine set has its target number of
/// machines. Then the changes that began before the pause are complete.
async fn settled(shoot: &Shoot) -> Result<()> {
    for deployment in shoot.list(Kind::MachineDeployment).await? {
        let observed = &deployment["status"]["observedGeneration"];
        ensure!(
            *observed == deployment["metadata"]["generation"],
            "{} is not observed",
            deployment["metadata"]["name"]
        );
    }
    let sets = machine_sets(shoot).await?;
    let machines = machines(shoot).await?;
    ensure!(!machines.iter().any(is_being_deleted), "a machine is still being deleted");
    for set in sets {
        let is_of_set = |machine: &&Value| machine["metadata"]["ownerReferences"][0]["name"] == set["metadata"]["name"];
        let count = machines.iter().filter(is_of_set).count();
        let target = set["spec"]["replicas"].as_u64().unwrap_or_default();
        ensure!(target == count as u64, "{} has {count} of {target} machines", name(&set));
    }
    Ok(())
}

#[tokio::test]
async fn stopped_roll_keeps_old_machines_and_continues() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "stopped").await?;
    let _machines = MachineControllerManager::start(cluster, &shoot.namespace, Deletion::Hastened).await?;
    shoot
        .create(|documents| {
            documents.of_kind("Cluster")["spec"]["shoot"]["metadata"]["annotations"][ANNOTATION] = json!("bow");
            three_zones(documents.of_kind("Worker"), MACHINES);
        })
        .await?;
    shoot.succeeded().await?;
    let before: BTreeSet<String> = machines(&shoot).await?.iter().map(name).collect();
    ensure!(before.len() == MACHINES, "{before:?}");

    let old = |machines: &[Value]| -> BTreeSet<String> {
        machines
            .iter()
            .filter(|machine| !is_being_deleted(machine))
            .map(name)
            .filter(|name| before.contains(name))
            .collect()
    };
    shoot.change_worker(|worker| set_image(worker, "bow", "12.2.0")).await?;
    let mut begun = false;
    for _ in 0..LISTS {
        let machines = machines(&shoot).await?;
        begun = rolling(&machines) > 0 && old(&machines).len() < MACHINES;
        if begun {
            break;
        }
        sleep(INTERVAL).await;
    }
    ensure!(begun, "no old machine is replaced");
    stop(&shoot, Some("*")).await?;
    eventually(SOON, "the roll is stopped", async || {
        let (held, paused) = (condition(&shoot).await?, paused(&shoot).await?);
        ensure!(held["reason"] == "Stopped" && paused.len() == 1, "{held} {paused:?}");
        settled(&shoot).await
    })
    .await?;

    let stopped = machines(&shoot).await?;
    let kept = old(&stopped);
    ensure!(rolling(&stopped) == 1 && kept.len() < MACHINES, "in the middle of a zone: {kept:?}");
    for _ in 0..LISTS_OF_STOP {
        let machines = machines(&shoot).await?;
        ensure!(old(&machines) == kept, "an old machine is removed while the roll is stopped: {kept:?}");
        ensure!(machines.len() == stopped.len(), "the number of machines changes: {machines:?}");
        sleep(INTERVAL).await;
    }
    println!("{} of {MACHINES} old machines stay while the roll is stopped: {}", kept.len(), condition(&shoot).await?);

    stop(&shoot, None).await?;
    shoot.succeeded().await?;
    let after: BTreeSet<String> = machines(&shoot).await?.iter().map(name).collect();
    ensure!(after.is_disjoint(&before), "every machine is replaced: {after:?}");
    ensure!(paused(&shoot).await?.is_empty(), "nothing is paused");
    let marks = shoot.list(Kind::MachineDeployment).await?;
    ensure!(marks.iter().all(|deployment| deployment["metadata"]["annotations"][MARK].is_null()), "{marks:?}");
    let held = condition(&shoot).await?;
    ensure!(held["reason"] == "NothingHeld", "{held}");
    Ok(())
}
