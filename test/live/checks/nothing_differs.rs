//! A request that changes nothing writes nothing but the answer.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::cluster::CONTROLLER;
use crate::program;
use crate::requests::Table;
use crate::shoot::Shoot;

#[tokio::test]
async fn a_second_reconcile_writes_only_the_answer() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "nothing").await?;
    let _machines = shoot.fake_machines(cluster, Duration::ZERO).await?;
    shoot.create(|_| {}).await?;
    shoot.succeeded().await?;
    let audit = cluster.audit().await?;
    let before = audit.mark().await?;

    shoot.change_worker(|_| {}).await?;
    let worker = shoot.succeeded().await?;

    ensure!(worker["status"]["lastOperation"]["type"] == "Reconcile", "{}", worker["status"]["lastOperation"]);
    let mut requests = audit.requests(CONTROLLER, before).await?;
    requests.retain(|request| request.namespace == shoot.namespace || request.name == shoot.namespace);
    let table = Table::of(&requests);
    println!("requests of a reconcile of two pools (three machine classes) that changes nothing:\n{table}");
    for request in requests.iter().filter(|request| request.writes()) {
        let is_answer = request.verb == "patch" && ["workers", "workers/status"].contains(&request.resource.as_str());
        ensure!(is_answer, "it writes: {request:?}");
    }
    ensure!(table.count("patch", "workers") == 1, "one patch takes the request off");
    ensure!(table.count("patch", "workers/status") == 2, "Processing and Succeeded");
    // Besides these the Cluster, the credentials and the one boot script; machine objects are known from watches.
    ensure!(table.total() <= 6, "it asks for more than what may have changed:\n{table}");
    Ok(())
}
