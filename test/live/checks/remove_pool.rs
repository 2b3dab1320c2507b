//! A pool less: what it had vanishes, and nobody touches the rest.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::program;
use test_support::shoot::{Kind, Shoot};

#[tokio::test]
async fn a_removed_pool_vanishes_and_the_others_are_not_touched() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "remove").await?;
    let _machines = shoot.fake_machines(cluster, Duration::ZERO).await?;
    shoot.create(|_| {}).await?;
    shoot.succeeded().await?;
    let mut before = Vec::new();
    for kind in Kind::OF_MACHINES {
        let mut versions = shoot.versions(kind).await?;
        versions.retain(|[name, ..]| name.contains("-bow-"));
        before.push((kind, versions));
    }

    shoot
        .change_worker(|worker| {
            let pools = worker["spec"]["pools"].as_array_mut().expect("pools are a list");
            pools.retain(|pool| pool["name"] != "stern");
        })
        .await?;
    let worker = shoot.succeeded().await?;

    for (kind, versions) in before {
        let after = shoot.versions(kind).await?;
        ensure!(after == versions, "{kind:?} of the pool that stays: {versions:?} became {after:?}");
    }
    let published = &worker["status"]["machineDeployments"];
    ensure!(published.as_array().is_some_and(|published| published.len() == 2), "published: {published}");
    Ok(())
}
