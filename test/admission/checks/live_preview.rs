//! `preview --live` reads the stored Shoot and its CloudProfile from a real API server.

use std::process::Output;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::program;
use test_support::cluster::{ADMIN, ControlPlane};
use test_support::garden::Garden;
use test_support::garden_objects::{azure_profile, azure_shoot};

async fn preview(control_plane: &ControlPlane, arguments: &[&str]) -> Result<Output> {
    let mut command = Command::from(test_support::program::command());
    command.args(["preview", "--live", "-o", "json"]).args(arguments).kill_on_drop(true);
    command.arg("--kubeconfig").arg(control_plane.kubeconfig_file(ADMIN)?);
    command.output().await.context("running the binary")
}

#[tokio::test]
async fn a_manifest_is_compared_with_the_stored_shoot() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    let profile = azure_profile("preview");
    garden.create(&profile).await?;
    let namespace = control_plane.namespace("garden-preview").await?;
    let mut shoot = azure_shoot(&namespace);
    shoot["spec"]["cloudProfile"] = json!({"kind": "CloudProfile", "name": "preview"});
    shoot["spec"]["kubernetes"] = json!({"version": "1.33.1"});
    let pool = "/spec/provider/workers/0";
    *shoot.pointer_mut(&format!("{pool}/machine")).context("no machine")? =
        json!({"type": "Standard_D4s_v5", "image": {"name": "linux", "version": "1.0.0"}});
    garden.create(&shoot).await?;

    let folder = tempfile::tempdir()?;
    let file = folder.path().join("shoot.json");
    let path = file.to_str().context("the folder's name is no text")?;
    let show = async |shoot: &Value, more: &[&str]| -> Result<(Option<i32>, Value)> {
        std::fs::write(&file, shoot.to_string())?;
        let output = preview(control_plane, &[&[path], more].concat()).await?;
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok((output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_else(|_| message.into())))
    };
    let same = show(&shoot, &[]).await?;
    ensure!(same.0 == Some(0), "{same:?}");
    let mut edited = shoot.clone();
    edited.pointer_mut(pool).context("no pool")?["volume"]["size"] = "60Gi".into();
    let rolls = show(&edited, &["-n", &namespace]).await?;
    ensure!(rolls.0 == Some(5), "{rolls:?}");
    let cause = &rolls.1["workers"][0]["placements"][0]["causes"][0];
    ensure!(cause["object"] == "Shoot" && cause["field"] == "spec.provider.workers[a].volume.size", "{cause}");
    let elsewhere = show(&edited, &["-n", "elsewhere"]).await?;
    ensure!(elsewhere.0 == Some(3) && elsewhere.1.to_string().contains("no Shoot in NEW"), "{elsewhere:?}");
    // A CloudProfile from a file describes the state after the change.
    let mut changed = profile;
    changed["spec"]["providerConfig"]["machineImages"][0]["versions"][0]["capabilityFlavors"][0]["urn"] =
        "a:b:c:9".into();
    let profile_file = folder.path().join("profile.json");
    std::fs::write(&profile_file, changed.to_string())?;
    let differs = show(&shoot, &["--profiles", profile_file.to_str().context("no text")?]).await?;
    ensure!(differs.0 == Some(4), "{differs:?}");
    let mut new = shoot;
    new["metadata"]["name"] = "new".into();
    let created = show(&new, &[]).await?;
    ensure!(created.0 == Some(1) && created.1["total"]["placements"]["CREATE"] == 1, "{created:?}");
    Ok(())
}
