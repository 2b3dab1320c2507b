//! An operator's actions with the chart, step by step, alongside a Worker with machines.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use test_support::cluster::{ADMIN, ControlPlane, Deletion, MachineControllerManager, Mark, eventually};
use test_support::shoot::{Kind, Shoot, set_image};

use crate::chart::{Chart, Leader, Running};
use crate::images::{self, TAGS, image_name};
use crate::node::Node;

/// A lease lasts 15 s, and the kubelet needs a few more seconds to restart a container.
const TAKEN_OVER: Duration = Duration::from_secs(60);

/// Prints the duration of each step.
struct Figures(Instant);

impl Figures {
    fn step(&mut self, what: &str) {
        eprintln!("{:>7.1} s  {what}", self.0.elapsed().as_secs_f64());
        self.0 = Instant::now();
    }
}

/// Install, reconcile, upgrade, lose the leader twice, delete, uninstall.
pub(crate) async fn of_the_chart(images: &Path) -> Result<()> {
    let mut figures = Figures(Instant::now());
    let control_plane = ControlPlane::start_for_pods().await?;
    figures.step("etcd and kube-apiserver ready");
    let node = Node::start(&control_plane, &images::archives(images)).await?;
    figures.step("containerd with three images, kubelet, scheduler, controllers: the node is ready");
    let outcome = steps(&control_plane, &mut figures).await;
    let outcome = outcome.and_then(|()| node.ensure_running()).with_context(|| node.last_lines());
    node.stop().await?;
    control_plane.stop().await?;
    outcome
}

async fn steps(control_plane: &ControlPlane, figures: &mut Figures) -> Result<()> {
    prepare(control_plane).await?;
    let audit = control_plane.audit().await?;
    let mark = audit.mark().await?;
    let chart = Chart::new(control_plane).await?;
    let pods = chart.with_image(TAGS[0]).await?;
    figures.step("chart installed: two pods are ready");
    for pod in &pods {
        has_no_rights(pod)?;
    }
    leads(&chart, |_| true).await?;

    let (shoot, machines) = shoot_with_machines(control_plane).await?;
    figures.step("machine-controller-manager started");
    shoot.create(|documents| documents.of_kind("Deployment")["spec"]["paused"] = json!(true)).await?;
    shoot.succeeded().await?;
    nodes(&shoot, 3).await?;
    figures.step("Worker created: Succeeded with 3 nodes");

    upgrade(&chart, &shoot).await?;
    figures.step("chart upgraded to another image: two pods are ready, no machine object was touched");
    shoot.change_worker(|worker| set_image(worker, "bow", "12.2.0")).await?;
    shoot.succeeded().await?;
    figures.step("pool rolled to another image: Succeeded");

    loses_its_leader(control_plane, &chart, &shoot, figures).await?;

    shoot.api(Kind::Worker).delete("fleet", &DeleteParams::default()).await?;
    shoot.deleted().await?;
    figures.step("Worker deleted: nothing of it is left");
    machines.stop().await?;
    // Checked before the role is deleted, because terminating pods may still send requests.
    under_its_role(control_plane, &chart, &shoot, mark).await?;
    chart.uninstall().await?;
    figures.step("chart uninstalled: no pod and no process is left");
    Ok(())
}

/// Creates the objects of a seed that exist before an extension is installed.
async fn prepare(control_plane: &ControlPlane) -> Result<()> {
    let client = control_plane.client(ADMIN).await?;
    let class = json!({"metadata": {"name": "gardener-system-900"}, "value": 999_998_900});
    Api::<PriorityClass>::all(client).create(&PostParams::default(), &serde_json::from_value(class)?).await?;
    Ok(())
}

/// A shoot's namespace as gardenlet labels it, with the real machine-controller-manager.
async fn shoot_with_machines(control_plane: &ControlPlane) -> Result<(Shoot, MachineControllerManager)> {
    let shoot = Shoot::new(control_plane, "shoot--node").await?;
    let labels = Patch::Merge(json!({"metadata": {"labels": {"gardener.cloud/role": "shoot"}}}));
    let namespaces: Api<Namespace> = Api::all(shoot.client.clone());
    namespaces.patch(&shoot.namespace, &PatchParams::default(), &labels).await?;
    let machines = MachineControllerManager::start(control_plane, &shoot.namespace, Deletion::Hastened).await?;
    Ok((shoot, machines))
}

async fn nodes(shoot: &Shoot, count: usize) -> Result<()> {
    eventually(TAKEN_OVER, "the nodes are ready", async || {
        let nodes = shoot.ready_nodes().await?;
        ensure!(nodes.len() == count, "{nodes:?}");
        Ok(())
    })
    .await
}

/// Checks in `/proc/<pid>/status` that the user is not root, has no capabilities and can't gain any, and that system
/// calls are filtered.
fn has_no_rights(pod: &Running) -> Result<()> {
    let status = pod.status()?;
    let expected = [
        ("Uid", "65532 65532 65532 65532"),
        ("Gid", "65532 65532 65532 65532"),
        ("CapPrm", "0000000000000000"),
        ("CapEff", "0000000000000000"),
        ("CapBnd", "0000000000000000"),
        ("NoNewPrivs", "1"),
        ("Seccomp", "2"),
    ];
    for (member, value) in expected {
        ensure!(status[member] == value, "{}: {member} is {}, not {value}", pod.pod, status[member]);
    }
    eprintln!("           {} runs as user 65532 without capabilities, seccomp on; VmRSS {}", pod.pod, status["VmRSS"]);
    Ok(())
}

/// Waits until a matching process leads.
async fn leads(chart: &Chart, is_meant: impl Fn(&Leader) -> bool) -> Result<Leader> {
    eventually(TAKEN_OVER, "the leader is the one that is meant", async || {
        let leader = chart.leader().await?;
        ensure!(is_meant(&leader), "it is {leader:?}");
        Ok(leader)
    })
    .await
}

async fn upgrade(chart: &Chart, shoot: &Shoot) -> Result<()> {
    let before = machine_objects(shoot).await?;
    chart.with_image(TAGS[1]).await?;
    leads(chart, |now| now.running.image == image_name(TAGS[1])).await?;
    shoot.change_worker(|_| {}).await?;
    shoot.succeeded().await?;
    let after = machine_objects(shoot).await?;
    ensure!(before == after, "an upgrade has touched what machines are made of: {before:?}, then {after:?}");
    Ok(())
}

/// Versions of the classes, but only names of the machines, because their status keeps changing.
async fn machine_objects(shoot: &Shoot) -> Result<impl PartialEq + std::fmt::Debug + use<>> {
    Ok((shoot.versions(Kind::MachineClass).await?, shoot.names(Kind::Machine).await?))
}

/// Kills the leader's process, then deletes the leader's pod. Each time, another process continues the requested
/// operation. After the kill, that process may be in the same pod, because its container restarts before the lease
/// ends.
async fn loses_its_leader(
    control_plane: &ControlPlane,
    chart: &Chart,
    shoot: &Shoot,
    figures: &mut Figures,
) -> Result<()> {
    let leader = leads(chart, |_| true).await?;
    let killed = Command::new("kill").args(["-KILL", &leader.running.process()?.to_string()]).status()?;
    ensure!(killed.success(), "{killed}");
    shoot.change_worker(|_| {}).await?;
    leads(chart, |now| now.identity != leader.identity).await?;
    figures.step("process of the leader killed: another process leads");
    shoot.succeeded().await?;
    eventually(TAKEN_OVER, "the container runs again", async || {
        let pods = chart.ready().await?;
        let again = pods.iter().find(|pod| pod.pod == leader.running.pod).context("it is not ready")?;
        ensure!(again.restarts == leader.running.restarts + 1, "{again:?}");
        Ok(())
    })
    .await?;
    figures.step("what was asked meanwhile is answered; the killed container is ready again");

    let leader = leads(chart, |_| true).await?;
    let pods: Api<Pod> = Api::namespaced(control_plane.client(ADMIN).await?, &chart.namespace);
    pods.delete(&leader.running.pod, &DeleteParams::default()).await?;
    shoot.change_worker(|_| {}).await?;
    leads(chart, |now| now.running.pod != leader.running.pod).await?;
    figures.step("pod of the leader deleted: another pod leads");
    shoot.succeeded().await?;
    eventually(TAKEN_OVER, "there are two pods again", async || {
        let pods = chart.ready().await?;
        ensure!(pods.len() == 2, "{pods:?}");
        Ok(())
    })
    .await?;
    figures.step("what was asked meanwhile is answered; two pods are ready again");
    Ok(())
}

/// Ensures that the chart's service account sent the requests and that none of them was refused.
async fn under_its_role(control_plane: &ControlPlane, chart: &Chart, shoot: &Shoot, mark: Mark) -> Result<()> {
    let requests = control_plane.audit().await?.requests(&chart.account(), mark).await?;
    let refused: Vec<_> = requests.iter().filter(|request| [401, 403].contains(&request.code)).collect();
    ensure!(refused.is_empty(), "refused: {refused:?}");
    let writes = requests.iter().filter(|request| request.writes() && request.namespace == shoot.namespace).count();
    ensure!(writes > 0, "the service account has written nothing for the Worker");
    eprintln!(
        "           {} requests by the service account, {writes} of them writes for the Worker, none refused",
        requests.len()
    );
    Ok(())
}
