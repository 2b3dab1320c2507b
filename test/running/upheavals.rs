//! Changes around a running controller: its permissions, the process itself in the middle of a roll, the Worker's
//! owner, and proxies in the environment.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::controller::Controller;
use test_support::cluster::{CONTROLLER, ControlPlane, MACHINE_CONTROLLER_MANAGER, RESTRICTED, eventually};
use test_support::shoot::{Kind, SOON, Shoot, set_image};

/// Longer than any test, so a roll makes no progress.
const NEVER: Duration = Duration::from_secs(3600);
/// Prefix of annotations that only this program writes.
const OWN_PREFIX: &str = "gardener-extension-worker/";

/// Everything that the controller needs, without the verbs that change machine classes if they are `revoked`.
fn permissions(revoked: bool) -> Result<Vec<k8s_openapi::api::rbac::v1::PolicyRule>> {
    let all = json!(["*"]);
    let read = json!(["get", "list", "watch"]);
    let of_classes = if revoked { &read } else { &all };
    let rules = json!([
        {"apiGroups": ["machine.sapcloud.io"], "resources": ["machineclasses"], "verbs": of_classes},
        {"apiGroups": ["machine.sapcloud.io"], "resources": ["machinedeployments", "machines", "machinesets"], "verbs": all},
        {"apiGroups": ["extensions.gardener.cloud"], "resources": ["*"], "verbs": all},
        {"apiGroups": ["", "apps", "events.k8s.io", "coordination.k8s.io"], "resources": ["*"], "verbs": all},
    ]);
    Ok(serde_json::from_value(rules)?)
}

fn annotations(object: &Value) -> impl Iterator<Item = &String> {
    object["metadata"]["annotations"].as_object().into_iter().flat_map(|annotations| annotations.keys())
}

/// The templates of all machine deployments.
async fn templates(shoot: &Shoot) -> Result<Vec<Value>> {
    let deployments = shoot.list(Kind::MachineDeployment).await?;
    Ok(deployments.iter().map(|deployment| deployment["spec"]["template"].clone()).collect())
}

/// Requests a roll of the pool and waits until its machine deployments have new classes. Returns the old classes.
async fn begin_roll(shoot: &Shoot) -> Result<BTreeSet<String>> {
    let (before, old) = (templates(shoot).await?, shoot.names_of_pool(Kind::MachineClass, "bow").await?);
    shoot.change_worker(|worker| set_image(worker, "bow", "12.2.0")).await?;
    eventually(SOON, "the pool rolls", async || {
        let last = shoot.worker().await?["status"]["lastOperation"].take();
        let changed = templates(shoot).await?.iter().zip(&before).filter(|(now, before)| now != before).count();
        ensure!(changed == old.len() && last["state"] == "Processing", "{changed} of {}: {last}", old.len());
        let waits = last["description"].as_str().is_some_and(|text| text.contains("pools bow"));
        ensure!(waits, "{last}");
        Ok(())
    })
    .await?;
    Ok(old)
}

/// Checks that the roll was completed as it began.
async fn ensure_same_roll(shoot: &Shoot, templates_before: &[Value], old: &BTreeSet<String>) -> Result<()> {
    ensure!(templates(shoot).await? == templates_before, "a machine deployment has another template");
    let classes = shoot.names_of_pool(Kind::MachineClass, "bow").await?;
    ensure!(classes.len() == old.len() && classes.is_disjoint(old), "{old:?} became {classes:?}");
    Ok(())
}

#[tokio::test]
async fn revoked_permissions_fail_until_restored() -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    control_plane.grant(RESTRICTED, permissions(false)?).await?;
    let controller = Controller::start(&control_plane, "restricted", RESTRICTED, |program| program)?;
    controller.ready("ready\n").await?;
    let shoot = Shoot::new(&control_plane, "permissions").await?;
    let _machines = shoot.fake_machines(&control_plane, Duration::ZERO).await?;
    shoot.create(|_| {}).await?;
    shoot.succeeded().await?;
    let (before, old) = (templates(&shoot).await?, shoot.names_of_pool(Kind::MachineClass, "bow").await?);

    control_plane.grant(RESTRICTED, permissions(true)?).await?;
    shoot.change_worker(|worker| set_image(worker, "bow", "12.2.0")).await?;
    let worker = shoot
        .fails(|worker| {
            let error = worker["status"]["lastError"]["description"].as_str().unwrap_or_default();
            ensure!(error.contains("403") && error.contains("machineclasses"), "{error}");
            ensure!(!error.contains('\n'), "several lines: {error}");
            Ok(())
        })
        .await?;
    ensure!(worker["status"]["lastOperation"]["type"] == "Reconcile", "{}", worker["status"]);
    ensure!(templates(&shoot).await? == before, "a machine deployment refers to a class that does not exist");
    ensure!(old.is_subset(&shoot.names_of_pool(Kind::MachineClass, "bow").await?), "an old class is deleted");
    controller.process.ensure_running()?;

    control_plane.grant(RESTRICTED, permissions(false)?).await?;
    shoot.succeeded().await?;
    let new = shoot.names_of_pool(Kind::MachineClass, "bow").await?;
    ensure!(new.len() == old.len() && new.is_disjoint(&old), "{old:?} became {new:?}");
    controller.process.stop(Duration::from_secs(10)).await?;
    control_plane.stop().await
}

#[tokio::test]
async fn an_upgrade_continues_a_roll() -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    let namespace = control_plane.namespace("extension").await?;
    let start = |name, user| {
        Controller::start(&control_plane, name, user, |program| {
            program.flag("leader-election-namespace", &namespace).flag("leader-election-lease-seconds", "60")
        })
    };
    let before_upgrade = start("before-upgrade", CONTROLLER)?;
    before_upgrade.ready("ready\n").await?;
    let shoot = Shoot::new(&control_plane, "upgrade").await?;
    let machines = shoot.fake_machines(&control_plane, Duration::ZERO).await?;
    shoot.create(|_| {}).await?;
    shoot.succeeded().await?;
    drop(machines);
    let machines = shoot.fake_machines(&control_plane, NEVER).await?;
    let old = begin_roll(&shoot).await?;
    let during = templates(&shoot).await?;

    let after_upgrade = start("after-upgrade", MACHINE_CONTROLLER_MANAGER)?;
    after_upgrade.ready("standing by").await?;
    ensure!(templates(&shoot).await? == during, "the standby has written");
    before_upgrade.process.signal("TERM")?;
    before_upgrade.process.wait(SOON).await?;
    after_upgrade.ready("ready\n").await?;
    ensure!(old.is_subset(&shoot.names_of_pool(Kind::MachineClass, "bow").await?), "old machines lose their class");
    drop(machines);
    let _machines = shoot.fake_machines(&control_plane, Duration::ZERO).await?;
    shoot.succeeded().await?;
    ensure_same_roll(&shoot, &during, &old).await?;
    control_plane.stop().await
}

#[tokio::test]
async fn half_rolled_workers_change_owners() -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    let ours = Controller::start(&control_plane, "hands-back", CONTROLLER, |program| program)?;
    ours.ready("ready\n").await?;
    let shoot = Shoot::new(&control_plane, "half-rolled").await?;
    let machines = shoot.fake_machines(&control_plane, Duration::ZERO).await?;
    shoot.create(|_| {}).await?;
    shoot.succeeded().await?;
    drop(machines);
    let machines = shoot.fake_machines(&control_plane, NEVER).await?;
    let old = begin_roll(&shoot).await?;
    ours.process.stop(Duration::from_secs(10)).await?;

    // The Go extension finds what it would have written at this point of the roll, and its own finalizer only.
    let worker = shoot.worker().await?;
    ensure!(worker["metadata"]["finalizers"] == json!(["extensions.gardener.cloud/worker"]), "{}", worker["metadata"]);
    for kind in [Kind::MachineClass, Kind::ClassSecret] {
        let names = shoot.names_of_pool(kind, "bow").await?;
        ensure!(old.is_subset(&names) && names.len() == 2 * old.len(), "{kind:?}: {old:?}, {names:?}");
    }
    let during = templates(&shoot).await?;

    // The same objects without this program's annotations, as the Go extension leaves them at this point.
    for kind in [Kind::MachineDeployment, Kind::MachineClass, Kind::ClassSecret, Kind::Worker] {
        for object in shoot.list(kind).await? {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            shoot.change(kind, name, remove_own_annotations).await?;
        }
    }
    let ours = Controller::start(&control_plane, "adopts", CONTROLLER, |program| program)?;
    ours.ready("ready\n").await?;
    shoot.change_worker(|_| {}).await?;
    eventually(SOON, "the Worker is adopted", async || {
        for deployment in shoot.list(Kind::MachineDeployment).await? {
            ensure!(annotations(&deployment).any(|name| name.starts_with(OWN_PREFIX)), "{}", deployment["metadata"]);
        }
        Ok(())
    })
    .await?;
    ensure!(templates(&shoot).await? == during, "the adoption changes a template");
    drop(machines);
    let _machines = shoot.fake_machines(&control_plane, Duration::ZERO).await?;
    shoot.succeeded().await?;
    ensure_same_roll(&shoot, &during, &old).await?;
    control_plane.stop().await
}

fn remove_own_annotations(object: &mut Value) {
    let annotations = object["metadata"]["annotations"].as_object_mut();
    if let Some(annotations) = annotations {
        annotations.retain(|name, _| !name.starts_with(OWN_PREFIX));
    }
}

#[tokio::test]
async fn proxies_of_the_environment_are_not_used() -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    // No server listens on this port.
    const NOWHERE: &str = "http://127.0.0.1:9";
    let controller = Controller::start(&control_plane, "behind-proxy", CONTROLLER, |program| {
        ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]
            .into_iter()
            .fold(program, |program, variable| program.env(variable, NOWHERE))
            .env("NO_PROXY", "")
    })?;
    controller.ready("ready\n").await?;
    let shoot = Shoot::new(&control_plane, "proxies").await?;
    let _machines = shoot.fake_machines(&control_plane, Duration::ZERO).await?;
    shoot.create(|_| {}).await?;
    shoot.succeeded().await?;
    control_plane.stop().await
}
