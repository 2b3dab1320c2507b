//! Stalled responses: a request whose response stalls does not occupy its slot forever, unaffected Workers continue,
//! and a leader without responses hands over although its lease is renewed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use crate::controller::Controller;
use test_support::cluster::{CONTROLLER, ControlPlane, FAKER, Faker, Program, eventually};
use test_support::proxy::{Call, Proxy, Treatment};
use test_support::shoot::Shoot;

/// Default number of concurrent reconciles.
pub(crate) const SLOTS: usize = 6;
/// Request timeout; the rest is for busy machines.
const AFTER_A_STALL: Duration = Duration::from_secs(30 + 60);
/// A leader without responses gives up after twice the timeout.
const GIVEN_UP: Duration = Duration::from_secs(2 * 30 + 60);

/// Starts a controller whose requests pass through a proxy.
pub(crate) async fn start(
    control_plane: &ControlPlane,
    name: &str,
    change: impl FnOnce(Program) -> Program,
) -> Result<(Controller, Proxy)> {
    let proxy = Proxy::start_for_all(control_plane).await?;
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": proxy.server()}}],
        "users": [{"name": "test", "user": {"token": proxy.token()}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    });
    let file = control_plane.folder().join(format!("{name}.proxied"));
    std::fs::write(&file, kubeconfig.to_string())?;
    let controller = Controller::start_at(control_plane, name, &file, change)?;
    controller.ready("ready\n").await?;
    Ok((controller, proxy))
}

/// Stalls reads of the shoots' Clusters. Returns the requested ones.
fn stall_clusters(proxy: &Proxy, shoots: &[Shoot], stall: &Treatment) -> Arc<Mutex<BTreeSet<String>>> {
    let paths: BTreeSet<String> = shoots
        .iter()
        .map(|shoot| format!("/apis/extensions.gardener.cloud/v1alpha1/clusters/{}", shoot.namespace))
        .collect();
    let requested = Arc::<Mutex<BTreeSet<String>>>::default();
    let (stall, seen) = (stall.clone(), Arc::clone(&requested));
    proxy.set_faults(move |call| {
        if !paths.contains(&call.path) {
            return Treatment::Forward;
        }
        seen.lock().unwrap_or_else(PoisonError::into_inner).insert(call.path.clone());
        stall.clone()
    });
    requested
}

async fn healthy_workers_go_on(stall: Treatment) -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    let _machines = Faker::start(control_plane.client(FAKER).await?, None, Duration::ZERO);
    let (controller, proxy) = start(&control_plane, "stalled", |program| program).await?;
    let mut stalled = Vec::new();
    for _ in 0..SLOTS {
        stalled.push(Shoot::new(&control_plane, "stalled").await?);
    }
    let requested = stall_clusters(&proxy, &stalled, &stall);
    for shoot in &stalled {
        shoot.create(|_| {}).await?;
    }
    eventually(AFTER_A_STALL, "each slot waits for an answer", async || {
        let count = requested.lock().unwrap_or_else(PoisonError::into_inner).len();
        ensure!(count == SLOTS, "{count} of {SLOTS}");
        Ok(())
    })
    .await?;
    let healthy = Shoot::new(&control_plane, "healthy").await?;
    healthy.create(|_| {}).await?;
    succeeded(&healthy, AFTER_A_STALL).await?;
    controller.ready("ready\n").await?;

    proxy.clear_faults();
    for shoot in &stalled {
        shoot.change_worker(|_| {}).await?;
        succeeded(shoot, AFTER_A_STALL).await?;
    }
    Ok(())
}

pub(crate) async fn succeeded(shoot: &Shoot, deadline: Duration) -> Result<()> {
    eventually(deadline, &format!("the Worker in {} is Succeeded", shoot.namespace), async || {
        let last = &shoot.worker().await?["status"]["lastOperation"];
        ensure!(last["state"] == "Succeeded", "it is {last}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn missing_responses_delay_no_other_worker() -> Result<()> {
    healthy_workers_go_on(Treatment::NeverRespond).await
}

#[tokio::test]
async fn truncated_responses_delay_no_other_worker() -> Result<()> {
    healthy_workers_go_on(Treatment::Stall).await
}

#[tokio::test]
async fn leader_without_responses_releases_its_lease() -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    let _machines = Faker::start(control_plane.client(FAKER).await?, None, Duration::ZERO);
    let namespace = control_plane.namespace("extension").await?;
    // The lease would last for the whole test unless released.
    let elected = |program: Program| {
        let program = program.flag("leader-election-namespace", &namespace);
        program.flag("leader-election-lease-seconds", "900")
    };
    let (first, proxy) = start(&control_plane, "first", elected).await?;
    let second = Controller::start(&control_plane, "second", CONTROLLER, elected)?;
    second.ready("standing by").await?;
    let all_but_leases = |call: &Call| match call.path.starts_with("/apis/coordination.k8s.io/") {
        true => Treatment::Forward,
        false => Treatment::Stall,
    };
    proxy.set_faults(all_but_leases);
    let shoot = Shoot::new(&control_plane, "shoot").await?;
    shoot.create(|_| {}).await?;
    eventually(GIVEN_UP, "readiness tells that there are no answers", async || {
        let (status, text) = first.request("GET", "/readyz", "").await?;
        ensure!(status == 503 && text.contains("no request has been answered"), "{status} {text:?}");
        Ok(())
    })
    .await?;
    let status = first.process.wait(GIVEN_UP).await?;
    ensure!(!status.success(), "a leader that can't work has failed: {status}");
    second.ready("ready\n").await?;
    succeeded(&shoot, AFTER_A_STALL).await
}
