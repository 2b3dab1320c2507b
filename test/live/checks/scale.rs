//! Other bounds for a pool: the cluster-autoscaler owns the replicas within them, and no class changes.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::program;
use test_support::shoot::{Kind, Shoot, pool};

#[tokio::test]
async fn bounds_move_replicas_only_where_they_must() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "scale").await?;
    let _machines = shoot.fake_machines(cluster, Duration::ZERO).await?;
    shoot.create(|_| {}).await?;
    shoot.succeeded().await?;
    let classes = (shoot.versions(Kind::MachineClass).await?, shoot.versions(Kind::ClassSecret).await?);
    ensure!(replicas(&shoot).await? == [("bow-z1", 1), ("bow-z2", 1), ("stern-z3", 1)], "at first the minimum");

    // As the cluster-autoscaler does.
    let grown = format!("{}-bow-z1", shoot.namespace);
    shoot.change(Kind::MachineDeployment, &grown, |deployment| deployment["spec"]["replicas"] = json!(2)).await?;
    for (bounds, expected, why) in [
        ([2, 4], [2, 1, 1], "replicas within the bounds stay"),
        ([3, 6], [2, 1, 1], "the first zone has the odd one of the minimum already"),
        ([4, 6], [2, 2, 1], "less than the minimum is raised"),
        ([2, 3], [2, 1, 1], "more than the maximum is cut"),
        ([2, 2], [1, 1, 1], "without the autoscaler it is the minimum"),
    ] {
        shoot.change_worker(|worker| set_bounds(pool(worker, "bow"), bounds)).await?;
        let worker = shoot.succeeded().await?;
        let names = ["bow-z1", "bow-z2", "stern-z3"];
        let found = replicas(&shoot).await?;
        ensure!(found == BTreeMap::from_iter(names.into_iter().zip(expected)), "{why}: {bounds:?} gave {found:?}");
        let sum = |member: &str| -> i64 {
            let published = worker["status"]["machineDeployments"].as_array().into_iter().flatten();
            let of_pool =
                published.filter(|deployment| deployment["name"].as_str().is_some_and(|name| name.contains("-bow-")));
            of_pool.filter_map(|deployment| deployment[member].as_i64()).sum()
        };
        ensure!([sum("minimum"), sum("maximum")] == bounds, "published: {}", worker["status"]["machineDeployments"]);
    }
    let after = (shoot.versions(Kind::MachineClass).await?, shoot.versions(Kind::ClassSecret).await?);
    ensure!(after == classes, "classes or their secrets were written: {classes:?} became {after:?}");
    Ok(())
}

fn set_bounds(pool: &mut Value, [minimum, maximum]: [i64; 2]) {
    pool["minimum"] = json!(minimum);
    pool["maximum"] = json!(maximum);
}

/// Allows comparison with pairs of names and numbers.
#[derive(Debug)]
struct Replicas(BTreeMap<String, i64>);

impl<const N: usize> PartialEq<[(&str, i64); N]> for Replicas {
    fn eq(&self, other: &[(&str, i64); N]) -> bool {
        self.0.iter().map(|(name, count)| (name.as_str(), *count)).eq(other.iter().copied())
    }
}

impl PartialEq<BTreeMap<&str, i64>> for Replicas {
    fn eq(&self, other: &BTreeMap<&str, i64>) -> bool {
        self.0.iter().map(|(name, count)| (name.as_str(), *count)).eq(other.iter().map(|(name, count)| (*name, *count)))
    }
}

async fn replicas(shoot: &Shoot) -> Result<Replicas> {
    let deployments = shoot.list(Kind::MachineDeployment).await?;
    let short = |deployment: &Value| {
        let name = deployment["metadata"]["name"].as_str().unwrap_or_default();
        name.trim_start_matches(&shoot.namespace).trim_start_matches('-').to_owned()
    };
    let count = |deployment: &Value| deployment["spec"]["replicas"].as_i64().unwrap_or_default();
    Ok(Replicas(deployments.iter().map(|deployment| (short(deployment), count(deployment))).collect()))
}
