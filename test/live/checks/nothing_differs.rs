//! A request without changes only writes the result of the operation.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::program;
use crate::requests::Table;
use test_support::cluster::{CONTROLLER, ControlPlane, eventually};
use test_support::shoot::{Kind, SOON, Shoot};

#[tokio::test]
async fn second_reconcile_writes_only_the_result() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "nothing").await?;
    let _machines = shoot.fake_machines(cluster, Duration::ZERO).await?;
    shoot.create(|_| {}).await?;
    shoot.succeeded().await?;
    for requester in [Requester::Gardenlet, Requester::Person] {
        responses_only(cluster, &shoot, requester).await.with_context(|| format!("{requester:?} asks"))?;
    }
    Ok(())
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Requester {
    /// With a timestamp.
    Gardenlet,
    /// Without a timestamp.
    Person,
}

/// Requests a reconcile without changes: only the result is written, and few requests are made.
pub(super) async fn responses_only(cluster: &ControlPlane, shoot: &Shoot, requester: Requester) -> Result<()> {
    let audit = cluster.audit().await?;
    let before = audit.mark().await?;
    match requester {
        Requester::Gardenlet => shoot.change_worker(|_| {}).await?,
        Requester::Person => shoot.annotate_worker().await?,
    }
    let worker = shoot.succeeded().await?;

    ensure!(worker["status"]["lastOperation"]["type"] == "Reconcile", "{}", worker["status"]["lastOperation"]);
    let mut requests = audit.requests(CONTROLLER, before).await?;
    requests.retain(|request| request.namespace == shoot.namespace || request.name == shoot.namespace);
    let table = Table::of(&requests);
    for request in requests.iter().filter(|request| request.writes()) {
        let is_response = request.verb == "patch" && ["workers", "workers/status"].contains(&request.resource.as_str());
        ensure!(is_response, "it writes: {request:?}");
    }
    ensure!(table.count("patch", "workers") == 1, "one patch takes the request off");
    ensure!(table.count("patch", "workers/status") == 1, "nothing is in work, so only Succeeded is said:\n{table}");
    // Other requests read the Cluster, the credentials and the boot script. Machine objects come from the cache.
    ensure!(table.total() <= 5, "it asks for more than what may have changed:\n{table}");
    Ok(())
}

/// The state after a process ended between removing the annotation and writing the result.
#[tokio::test]
async fn completes_a_pending_request() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "unanswered").await?;
    let _machines = shoot.fake_machines(cluster, Duration::ZERO).await?;
    shoot.create(|_| {}).await?;
    shoot.succeeded().await?;
    // A clock that is ahead, so that no earlier result can be mistaken for this one's.
    let requested = Timestamp::now() + SignedDuration::from_secs(20);
    let requested = requested.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let take_off = |worker: &mut Value| {
        worker["metadata"]["annotations"]["gardener.cloud/timestamp"] = json!(requested);
    };
    shoot.change(Kind::Worker, "fleet", take_off).await?;
    eventually(SOON, "the answer", async || {
        let last = &shoot.worker().await?["status"]["lastOperation"];
        ensure!(last["state"] == "Succeeded" && last["lastUpdateTime"] == json!(requested), "{last}");
        Ok(())
    })
    .await
}
