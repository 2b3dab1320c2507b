//! An operation only makes the requests that it needs for its writes and for fresh data.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::time::Instant;

use crate::program;
use crate::requests::Table;
use test_support::cluster::{CONTROLLER, ControlPlane, eventually};
use test_support::shoot::{Shoot, set_image};

/// How long the events of an operation may follow its status.
const EVENTS_TIMEOUT: Duration = Duration::from_secs(10);

/// The expected requests of an operation: verb, resource and number, without status writes.
type Expected<'a> = &'a [(&'a str, &'a str, usize)];

#[tokio::test]
async fn operation_sends_no_unneeded_request() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "few").await?;
    let _machines = shoot.fake_machines(cluster, Duration::ZERO).await?;
    let created: Expected<'_> = &[
        ("get", "clusters", 1),
        // The credentials, and the boot script of both pools.
        ("get", "secrets", 2),
        ("patch", "workers", 1),
        ("create", "secrets", 3),
        ("create", "machineclasses", 3),
        ("create", "machinedeployments", 3),
    ];
    // The bounds, and the success.
    requests_for(cluster, &shoot, created, 2, async || shoot.create(|_| {}).await).await.context("create")?;
    let rolled: Expected<'_> = &[
        ("get", "clusters", 1),
        ("get", "secrets", 2),
        ("patch", "workers", 1),
        ("create", "secrets", 2),
        ("create", "machineclasses", 2),
        ("patch", "machinedeployments", 2),
        // The pool rolls, and it is ready.
        ("create", "events", 2),
        // Objects that may still use the old classes.
        ("list", "machinedeployments", 1),
        ("list", "machinesets", 1),
        ("list", "machines", 1),
        ("delete", "machineclasses", 2),
        ("delete", "secrets", 2),
    ];
    // First, the status is set to Processing.
    let roll = async || shoot.change_worker(|worker| set_image(worker, "bow", "12.2.0")).await;
    requests_for(cluster, &shoot, rolled, 3, roll).await.context("roll")
}

/// Checks that an operation makes exactly these requests, and this number of status writes.
async fn requests_for(
    cluster: &ControlPlane,
    shoot: &Shoot,
    expected: Expected<'_>,
    statuses: usize,
    act: impl AsyncFn() -> Result<()>,
) -> Result<()> {
    let audit = cluster.audit().await?;
    let (before, began) = (audit.mark().await?, Instant::now());
    act().await?;
    shoot.succeeded().await?;
    let seconds = usize::try_from(began.elapsed().as_secs())? + 1;
    // Events are written in the background, so the last one may follow the status.
    eventually(EVENTS_TIMEOUT, "the requests of the operation", async || {
        let mut requests = audit.requests(CONTROLLER, before).await?;
        requests.retain(|request| request.namespace == shoot.namespace || request.name == shoot.namespace);
        let table = Table::of(&requests);
        for (verb, resource, count) in expected {
            ensure!(table.count(verb, resource) == *count, "{count} × {verb} {resource} are wanted:\n{table}");
        }
        let written = table.count("patch", "workers/status");
        ensure!((statuses..=statuses + seconds).contains(&written), "{written} statuses in {seconds} s:\n{table}");
        let all = expected.iter().map(|(_, _, count)| count).sum::<usize>() + written;
        ensure!(table.total() == all, "{all} requests are wanted:\n{table}");
        Ok(())
    })
    .await
}
