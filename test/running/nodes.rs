//! `--health-check`: counts the nodes of a shoot through its own API server, with the kubeconfig in gardenlet's Secret.

use std::net::TcpListener;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use test_support::cluster::{ADMIN, CONTROLLER, ControlPlane, FAKER, Faker, Process, eventually};
use test_support::shoot::{Kind, Shoot};

use crate::controller::Controller;

/// A failure is published after half a minute, and nodes are counted every quarter minute.
const LATER: Duration = Duration::from_secs(120);
const PLANTED: &str = "planted-token-of-a-shoot";

/// Creates gardenlet's Secret with a kubeconfig in the shoot's namespace.
async fn keep_kubeconfig(shoot: &Shoot, name: &str, kubeconfig: &str) -> Result<()> {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"kubeconfig": kubeconfig},
    });
    shoot.api(Kind::Secret).create(&PostParams::default(), &serde_json::from_value(secret)?).await?;
    Ok(())
}

fn kubeconfig_of(server: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "shoot",
        "clusters": [{"name": "shoot", "cluster": {"server": server}}],
        "users": [{"name": "shoot", "user": {"token": PLANTED}}],
        "contexts": [{"name": "shoot", "context": {"cluster": "shoot", "user": "shoot"}}],
    })
    .to_string()
}

/// Creates a node that reports ready.
async fn join(client: &Client, name: &str, annotations: Value) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let node = json!({"metadata": {"name": name, "annotations": annotations}});
    nodes.create(&PostParams::default(), &serde_json::from_value(node)?).await?;
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(&ready)).await?;
    Ok(())
}

/// Waits until the condition has a status, and a message with these words.
async fn condition_is(shoot: &Shoot, status: &str, words: &str) -> Result<()> {
    eventually(LATER, &format!("EveryNodeReady of {} is {status} {words:?}", shoot.namespace), async || {
        let worker = shoot.worker().await?;
        let mut conditions = worker["status"]["conditions"].as_array().into_iter().flatten();
        let condition = conditions.find(|one| one["type"] == "EveryNodeReady").context("no condition")?;
        let message = condition["message"].as_str().unwrap_or_default();
        ensure!(condition["status"] == status && message.contains(words), "{condition}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn missing_nodes_are_reported_until_they_are_ready() -> Result<()> {
    let (seed, of_shoot) = (ControlPlane::start().await?, ControlPlane::start().await?);
    let _machines = Faker::start(seed.client(FAKER).await?, None, Duration::ZERO);
    let _controller = Controller::start(&seed, "counting", CONTROLLER, |program| program.arg("--health-check"))?;
    let shoot = Shoot::new(&seed, "counted").await?;
    keep_kubeconfig(&shoot, "gardener-internal", &std::fs::read_to_string(of_shoot.kubeconfig_file(ADMIN)?)?).await?;
    shoot.create(|_| {}).await?;
    shoot.succeeded().await?;
    let expected: i64 =
        shoot.list(Kind::MachineDeployment).await?.iter().filter_map(|one| one["spec"]["replicas"].as_i64()).sum();
    condition_is(&shoot, "False", &format!("(0/{expected})")).await?;
    let client = of_shoot.client(ADMIN).await?;
    join(&client, "by-hand", json!({"node.machine.sapcloud.io/not-managed-by-mcm": "1"})).await?;
    for number in 0..expected {
        join(&client, &format!("node-{number}"), json!({})).await?;
    }
    condition_is(&shoot, "True", "All machine deployments are healthy").await?;
    let nodes: Api<Node> = Api::all(client);
    let cordoned = json!({"spec": {"unschedulable": true}});
    nodes.patch("node-0", &PatchParams::default(), &Patch::Merge(&cordoned)).await?;
    condition_is(&shoot, "Progressing", &format!("({}/{expected})", expected - 1)).await?;
    ensure!(nodes.list(&ListParams::default()).await?.items.len() as i64 == expected + 1, "a count changes nothing");
    Ok(())
}

#[tokio::test]
async fn unresponsive_shoots_disturb_no_other() -> Result<()> {
    let (seed, of_shoot) = (ControlPlane::start().await?, ControlPlane::start().await?);
    let _machines = Faker::start(seed.client(FAKER).await?, None, Duration::ZERO);
    let controller = Controller::start(&seed, "counting", CONTROLLER, |program| {
        program.arg("--health-check").env("RUST_LOG", test_support::program::DEBUG_LOG)
    })?;
    // Accepts connections, but never responds.
    let silent = TcpListener::bind("127.0.0.1:0")?;
    let silence = kubeconfig_of(&format!("https://{}", silent.local_addr()?));
    let shoots = try_join_all((0..24).map(|_| Shoot::new(&seed, "silent"))).await?;
    for shoot in &shoots {
        keep_kubeconfig(shoot, "gardener", &silence).await?;
    }
    try_join_all(shoots.iter().map(|shoot| shoot.create(|_| {}))).await?;
    try_join_all(shoots.iter().map(Shoot::succeeded)).await?;
    let well = Shoot::new(&seed, "counted").await?;
    keep_kubeconfig(&well, "gardener-internal", &std::fs::read_to_string(of_shoot.kubeconfig_file(ADMIN)?)?).await?;
    well.create(|_| {}).await?;
    well.succeeded().await?;
    condition_is(&well, "False", "(0/").await?;
    condition_is(&shoots[0], "Unknown", "failed to list shoot nodes: no answer within 5 s").await?;
    let bare = Shoot::new(&seed, "bare").await?;
    bare.create(|_| {}).await?;
    bare.succeeded().await?;
    condition_is(&bare, "Unknown", "neither Secret \"gardener-internal\" nor \"gardener\"").await?;
    ensure_unpublished(&controller.process, &shoots).await
}

/// Checks that neither logs nor statuses contain parts of a kubeconfig.
async fn ensure_unpublished(process: &Process, shoots: &[Shoot]) -> Result<()> {
    let log = std::fs::read_to_string(process.log())?;
    ensure!(!log.contains(PLANTED), "the token of a shoot is logged");
    for shoot in shoots {
        ensure!(!shoot.worker().await?.to_string().contains(PLANTED), "the token of a shoot is in a status");
    }
    Ok(())
}
