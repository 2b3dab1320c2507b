//! `preview --live` and `why` read the cluster that the controller writes to.

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::program;
use test_support::cluster::CONTROLLER;
use test_support::shoot::{Shoot, set_image};

#[tokio::test]
async fn a_roll_is_seen_before_it_happens_and_explained_after_it() -> Result<()> {
    let cluster = program::shared().await?;
    let shoot = Shoot::new(cluster, "commands").await?;
    let _machines = shoot.fake_machines(cluster, Duration::ZERO).await?;
    shoot.create(|_| {}).await?;
    let worker = shoot.succeeded().await?;
    let kubeconfig = cluster.kubeconfig_file(CONTROLLER)?;

    let live = ["preview", "--live", "--namespace", &shoot.namespace];
    let unchanged = run(&kubeconfig, &live).await?;
    ensure!(unchanged.status.code() == Some(0), "what was just made needs no change: {unchanged:?}");

    let mut wanted = worker.clone();
    set_image(&mut wanted, "bow", IMAGE);
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("after.json");
    // Only the Worker: what lies around it stays as it is in the cluster.
    std::fs::write(&file, wanted.to_string())?;
    let file = file.to_str().context("the folder's name is no text")?;
    let rolling = run(&kubeconfig, &[&live[..], &[file]].concat()).await?;
    let shown = String::from_utf8_lossy(&rolling.stdout);
    ensure!(rolling.status.code() == Some(5), "another image rolls: {rolling:?}");
    for word in ["bow", "ROLL", "nodeAgentSecretName"] {
        ensure!(shown.contains(word), "no {word} in {shown}");
    }

    shoot.change_worker(|worker| set_image(worker, "bow", IMAGE)).await?;
    shoot.succeeded().await?;
    let deployment = format!("{0}/{0}-bow-z1", shoot.namespace);
    let told = run(&kubeconfig, &["why", &deployment]).await?;
    let shown = String::from_utf8_lossy(&told.stdout);
    ensure!(told.status.code() == Some(0), "{told:?}");
    for word in ["nodeAgentSecretName", "machineImage"] {
        ensure!(shown.contains(word), "no {word} in {shown}");
    }
    Ok(())
}

/// The image that shoot.yaml offers besides the one in use.
const IMAGE: &str = "12.2.0";

pub(super) async fn run(kubeconfig: &Path, arguments: &[&str]) -> Result<Output> {
    let mut command = tokio::process::Command::from(test_support::program::command());
    command.args(arguments).arg("--kubeconfig").arg(kubeconfig);
    command.output().await.with_context(|| format!("{arguments:?}"))
}
