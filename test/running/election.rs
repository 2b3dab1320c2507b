//! Leader election between two processes. The standby completes what the leader does not finish. A leader that was
//! suspended while it lost the lease writes nothing after it resumes.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::Api;

use crate::controller::Controller;
use test_support::cluster::{self, ADMIN, CONTROLLER, ControlPlane, MACHINE_CONTROLLER_MANAGER, Program, eventually};
use test_support::shoot::{SOON, Shoot};

const LEASE: &str = "gardener-extension-worker-leader-election";

fn elected<'a>(namespace: &'a str, seconds: &'a str) -> impl FnOnce(Program) -> Program + use<'a> {
    move |program| program.flag("leader-election-namespace", namespace).flag("leader-election-lease-seconds", seconds)
}

async fn holder(control_plane: &ControlPlane, namespace: &str) -> Result<String> {
    let api: Api<Lease> = Api::namespaced(control_plane.client(ADMIN).await?, namespace);
    let spec = api.get(LEASE).await?.spec.context("a lease without content")?;
    Ok(spec.holder_identity.unwrap_or_default())
}

async fn renewed(control_plane: &ControlPlane, namespace: &str) -> Result<Option<String>> {
    let api: Api<Lease> = Api::namespaced(control_plane.client(ADMIN).await?, namespace);
    Ok(api.get(LEASE).await?.metadata.resource_version)
}

#[tokio::test]
async fn a_leader_that_stops_hands_over_at_once() -> Result<()> {
    let control_plane = cluster::ControlPlane::start().await?;
    let namespace = control_plane.namespace("extension").await?;
    // The lease would last for the whole test unless released.
    let first = Controller::start(&control_plane, "first", CONTROLLER, elected(&namespace, "60"))?;
    first.ready("ready\n").await?;
    ensure!(first.metrics().await?.contains("gardener_extension_worker_leader 1"), "the leader says that it leads");
    let second = Controller::start(&control_plane, "second", MACHINE_CONTROLLER_MANAGER, elected(&namespace, "60"))?;
    second.ready("standing by").await?;
    ensure!(second.metrics().await?.contains("gardener_extension_worker_leader 0"), "the other one does not");
    let leader = holder(&control_plane, &namespace).await?;

    let reported = Instant::now();
    first.process.signal("TERM")?;
    let status = first.process.wait(SOON).await?;
    let took = reported.elapsed();
    ensure!(status.success(), "{status}\n{}", first.process.last_lines(15));
    // The process ends within a second; the rest is for busy machines.
    ensure!(took < Duration::from_secs(5), "it took {took:?}");
    eventually(Duration::from_secs(30), "the other process leads", async || {
        let now = holder(&control_plane, &namespace).await?;
        ensure!(!now.is_empty() && now != leader, "the lease is held by {now:?}");
        Ok(())
    })
    .await?;
    second.ready("ready\n").await?;
    let shoot = Shoot::new(&control_plane, "later").await?;
    let _machines = shoot.fake_machines(&control_plane, Duration::ZERO).await?;
    shoot.create(|_| {}).await?;
    shoot.succeeded().await?;
    Ok(())
}

#[tokio::test]
async fn a_leader_that_was_suspended_writes_nothing() -> Result<()> {
    let control_plane = cluster::ControlPlane::start().await?;
    let audit = control_plane.audit().await?;
    let namespace = control_plane.namespace("extension").await?;
    let first = Controller::start(&control_plane, "first", CONTROLLER, elected(&namespace, "3"))?;
    first.ready("ready\n").await?;
    let shoot = Shoot::new(&control_plane, "shoot").await?;
    let _machines = shoot.fake_machines(&control_plane, Duration::from_secs(1)).await?;
    shoot.create(|_| {}).await?;
    shoot.succeeded().await?;
    let leader = holder(&control_plane, &namespace).await?;

    first.process.signal("STOP")?;
    // A change that it would process after it resumes.
    shoot.change_worker(|_| {}).await?;
    let second = Controller::start(&control_plane, "second", MACHINE_CONTROLLER_MANAGER, elected(&namespace, "3"))?;
    second.ready("ready\n").await?;
    shoot.succeeded().await?;
    let successor = holder(&control_plane, &namespace).await?;
    ensure!(successor != leader, "the suspended process still holds the lease");
    let awake = audit.mark().await?;
    shoot.change_worker(|_| {}).await?;
    first.process.signal("CONT")?;
    let status = first.process.wait(SOON).await?;
    ensure!(!status.success(), "losing the lease is an error: {status}");
    let writes: Vec<_> =
        audit.requests(CONTROLLER, awake).await?.into_iter().filter(cluster::Request::writes).collect();
    ensure!(writes.is_empty(), "written after it woke: {writes:?}");
    shoot.succeeded().await?;
    Ok(())
}

/// The restored API server never had the versions in the controller's caches.
#[tokio::test]
async fn a_leader_ends_when_a_backup_is_restored() -> Result<()> {
    let control_plane = cluster::ControlPlane::start().await?;
    let namespace = control_plane.namespace("extension").await?;
    let first = Controller::start(&control_plane, "first", CONTROLLER, elected(&namespace, "45"))?;
    first.ready("ready\n").await?;
    let shoot = Shoot::new(&control_plane, "shoot").await?;
    let machines = shoot.fake_machines(&control_plane, Duration::ZERO).await?;
    shoot.create(|_| {}).await?;
    shoot.succeeded().await?;

    let backup = control_plane.folder().join("backup");
    let before = renewed(&control_plane, &namespace).await?;
    control_plane.back_up(&backup)?;
    eventually(SOON, "the lease is renewed after the backup", async || {
        ensure!(renewed(&control_plane, &namespace).await? != before, "it is not");
        Ok(())
    })
    .await?;
    for _ in 0..3 {
        shoot.change_worker(|_| {}).await?;
        shoot.succeeded().await?;
    }
    drop(machines);
    control_plane.restore(&backup).await?;
    let status = first.process.wait(SOON).await?;
    let log = first.process.last_lines(15);
    ensure!(!status.success() && log.contains("restored from a backup"), "{status}\n{log}");

    let second = Controller::start(&control_plane, "second", CONTROLLER, elected(&namespace, "45"))?;
    second.ready("ready\n").await?;
    let _machines = shoot.fake_machines(&control_plane, Duration::ZERO).await?;
    shoot.change_worker(|_| {}).await?;
    shoot.succeeded().await?;
    Ok(())
}
