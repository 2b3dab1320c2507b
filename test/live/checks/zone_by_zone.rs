//! The zones of a pool roll one after the other, with the real machine-controller-manager.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::program;
use test_support::cluster::{Deletion, MachineControllerManager};
use test_support::shoot::{Kind, Shoot, pool, set_image};

pub(super) const ANNOTATION: &str = "gardener-extension-worker/zone-by-zone";
/// Machines of the pool in all zones.
const MACHINES: usize = 9;
const MACHINES_OF_ZONE: u64 = 3;
/// Time between two lists of the machines.
pub(super) const INTERVAL: Duration = Duration::from_millis(50);
/// Time limit for the whole roll.
pub(super) const LISTS: usize = 4_000;

/// Machines of the pool during a roll.
#[derive(Debug, Default)]
struct Observed {
    /// Highest target number of all machine sets together. It can exceed the number of the pool plus `maxSurge`,
    /// because machine-controller-manager counts the machines in the status of its machine sets, which can be outdated
    /// (`NewISNewReplicas`, v0.62.1).
    most: u64,
    /// Zones with a target number above their number of machines, one entry for each change.
    surging: Vec<BTreeSet<String>>,
    /// Lowest number of machines that run and stay.
    fewest: usize,
    /// Zones with machines of two classes, one entry for each change.
    rolling: Vec<BTreeSet<String>>,
}

impl Observed {
    fn add(&mut self, machine_sets: &[Value], machines: &[Value]) {
        let mut targets: BTreeMap<&str, u64> = BTreeMap::new();
        for set in machine_sets {
            *targets.entry(zone(set)).or_default() += set["spec"]["replicas"].as_u64().unwrap_or_default();
        }
        let stay = machines.iter().filter(|machine| machine["metadata"]["deletionTimestamp"].is_null());
        let run = stay.filter(|machine| machine["status"]["currentStatus"]["phase"] == "Running").count();
        self.most = self.most.max(targets.values().sum());
        self.fewest = self.fewest.min(run);
        let mut classes: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for machine in machines {
            classes
                .entry(zone(machine))
                .or_default()
                .insert(machine["spec"]["class"]["name"].as_str().unwrap_or_default());
        }
        let rolling = classes.into_iter().filter(|(_, classes)| classes.len() > 1);
        add_change(&mut self.rolling, rolling.map(|(zone, _)| zone.to_owned()).collect());
        let surging = targets.into_iter().filter(|(_, target)| *target > MACHINES_OF_ZONE);
        add_change(&mut self.surging, surging.map(|(zone, _)| zone.to_owned()).collect());
    }
}

fn add_change(zones: &mut Vec<BTreeSet<String>>, now: BTreeSet<String>) {
    if zones.last() != Some(&now) {
        zones.push(now);
    }
}

/// The MachineDeployment of a machine or machine set.
fn zone(object: &Value) -> &str {
    object["metadata"]["labels"]["name"].as_str().unwrap_or_default()
}

pub(super) async fn machines(shoot: &Shoot) -> Result<Vec<Value>> {
    let mut machines = shoot.list(Kind::Machine).await?;
    machines
        .retain(|machine| machine["metadata"]["labels"]["name"].as_str().is_some_and(|name| name.contains("-bow-")));
    Ok(machines)
}

pub(super) async fn machine_sets(shoot: &Shoot) -> Result<Vec<Value>> {
    let mut sets = shoot.list(Kind::MachineSet).await?;
    sets.retain(|set| set["metadata"]["name"].as_str().is_some_and(|name| name.contains("-bow-")));
    Ok(sets)
}

/// Spreads the pool `bow` over three zones.
pub(super) fn three_zones(worker: &mut Value, machines: usize) {
    let pool = pool(worker, "bow");
    pool["zones"] = json!(["1", "2", "3"]);
    [pool["minimum"], pool["maximum"]] = [json!(machines), json!(machines)];
    (pool["maxSurge"], pool["maxUnavailable"]) = (json!(1), json!(0));
}

#[tokio::test]
async fn zones_roll_one_at_a_time_without_a_missing_node() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "zones").await?;
    let _machines = MachineControllerManager::start(cluster, &shoot.namespace, Deletion::Hastened).await?;
    shoot
        .create(|documents| {
            documents.of_kind("Cluster")["spec"]["shoot"]["metadata"]["annotations"][ANNOTATION] = json!("bow");
            three_zones(documents.of_kind("Worker"), MACHINES);
        })
        .await?;
    shoot.succeeded().await?;
    let before = machines(&shoot).await?;
    ensure!(before.len() == MACHINES, "{} machines", before.len());

    shoot.change_worker(|worker| set_image(worker, "bow", "12.2.0")).await?;
    let mut observed = Observed { fewest: MACHINES, ..Observed::default() };
    let mut is_done = false;
    for _ in 0..LISTS {
        observed.add(&machine_sets(&shoot).await?, &machines(&shoot).await?);
        let worker = shoot.worker().await?;
        let is_requested = !worker["metadata"]["annotations"]["gardener.cloud/operation"].is_null();
        is_done = !is_requested && worker["status"]["lastOperation"]["state"] == "Succeeded";
        if is_done {
            break;
        }
        sleep(INTERVAL).await;
    }
    ensure!(is_done, "the roll does not end: {observed:?}");
    println!("at most {} machines, at least {} running; {:?}", observed.most, observed.fewest, observed.rolling);
    ensure!(observed.surging.iter().all(|zones| zones.len() < 2), "one zone at a time has more machines: {observed:?}");
    let surged: BTreeSet<&String> = observed.surging.iter().flatten().collect();
    ensure!(surged.len() == 3, "each zone has more machines while it rolls: {observed:?}");
    ensure!(observed.fewest == MACHINES, "no machine is missing: {observed:?}");
    ensure!(observed.rolling.iter().all(|zones| zones.len() < 2), "one zone at a time: {observed:?}");
    let rolled: Vec<&String> = observed.rolling.iter().flatten().collect();
    ensure!(rolled.len() == 3 && rolled.is_sorted(), "each zone once, in order: {observed:?}");
    let names = |machines: &[Value]| -> BTreeSet<String> {
        machines.iter().map(|machine| machine["metadata"]["name"].to_string()).collect()
    };
    let after = machines(&shoot).await?;
    ensure!(names(&after).is_disjoint(&names(&before)), "every machine is replaced");
    let worker = shoot.worker().await?;
    let conditions = worker["status"]["conditions"].as_array().context("no conditions")?;
    let held = conditions.iter().find(|condition| condition["type"] == "RollsHeld").context("no RollsHeld")?;
    ensure!(held["reason"] == "NothingHeld", "{held}");
    Ok(())
}
