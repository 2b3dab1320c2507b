//! `cloudprofile … --live` reads profiles from a real API server: one by name, one of a project, or all of them.

use std::process::Output;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::program;
use test_support::cluster::{ADMIN, ControlPlane};
use test_support::garden::Garden;
use test_support::garden_objects::{aws_profile, azure_profile, namespaced_profile};

/// Runs a command of the shipped binary against the garden.
async fn cloudprofile(control_plane: &ControlPlane, arguments: &[&str]) -> Result<Output> {
    let mut command = Command::from(test_support::program::command());
    command.arg("cloudprofile").args(arguments).arg("--live").env("NO_COLOR", "1").kill_on_drop(true);
    command.arg("--kubeconfig").arg(control_plane.kubeconfig_file(ADMIN)?);
    command.output().await.context("running the binary")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[tokio::test]
async fn a_profile_is_read_by_its_name() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    Garden::new(control_plane).await?.create(&azure_profile("live-a")).await?;
    let matrix = cloudprofile(control_plane, &["matrix", "live-a"]).await?;
    ensure!(matrix.status.success(), "{matrix:?}");
    ensure!(text(&matrix).contains("a:b:c:1") && text(&matrix).contains("Standard_D4s_v5"), "{}", text(&matrix));
    let nobody = cloudprofile(control_plane, &["matrix", "live-nobody"]).await?;
    let message = String::from_utf8_lossy(&nobody.stderr).into_owned();
    ensure!(nobody.status.code() == Some(3) && message.contains("CloudProfile \"live-nobody\""), "{message}");
    Ok(())
}

#[tokio::test]
async fn every_profile_of_the_garden_is_checked() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    let mut unknown = aws_profile("live-e");
    unknown["spec"]["type"] = "unheard-of".into();
    for profile in [azure_profile("live-b"), aws_profile("live-c"), unknown] {
        garden.create(&profile).await?;
    }
    let lint = cloudprofile(control_plane, &["lint", "-o", "json"]).await?;
    ensure!(lint.status.code() == Some(1), "{:?}: {}", lint.status, String::from_utf8_lossy(&lint.stderr));
    let found: Value = serde_json::from_str(&text(&lint))?;
    let profiles = found["profiles"].as_array().context("no profiles")?;
    let of = |name: &str| profiles.iter().find(|found| found["profile"] == name);
    // Other tests also create profiles.
    let names: Vec<&Value> = profiles.iter().map(|found| &found["profile"]).collect();
    ensure!(of("live-b").is_some(), "{names:?}");
    // Core's half is checked for every provider.
    for (name, paths) in [("live-c", &["spec.machineTypes"][..]), ("live-e", &["spec.machineTypes", "spec.type"])] {
        let findings = of(name).context("a profile is missing")?["findings"].as_array().context("no findings")?;
        for path in paths {
            ensure!(findings.iter().any(|finding| finding["path"] == *path), "{name}: {findings:#?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_profile_of_a_project_is_read_as_it_is_merged() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    let parent = azure_profile("live-d");
    garden.create(&parent).await?;
    let namespace = control_plane.namespace("garden-live").await?;
    let profile = namespaced_profile(&namespace, "live-d");
    let stored = garden.create(&profile).await?;
    let name = format!("{namespace}/own");
    let early = cloudprofile(control_plane, &["matrix", &name]).await?;
    let message = String::from_utf8_lossy(&early.stderr).into_owned();
    ensure!(early.status.code() == Some(3) && message.contains("no status.cloudProfileSpec"), "{message}");
    // Gardener's controller writes this status; the webhook adds the project's images.
    let mut spec = parent["spec"].clone();
    let of_project = profile["spec"]["machineImages"][0]["versions"][0].clone();
    spec["machineImages"][0]["versions"].as_array_mut().context("no versions")?.push(of_project);
    let generation = &stored["metadata"]["generation"];
    garden.patch_status(&profile, &json!({"observedGeneration": generation, "cloudProfileSpec": spec})).await?;
    let matrix = cloudprofile(control_plane, &["matrix", &name]).await?;
    ensure!(matrix.status.success() && text(&matrix).contains("a:b:c:3"), "{matrix:?}");
    Ok(())
}
