//! `forecast --live` reads Shoots and their profiles from a real API server, page by page.

use std::process::Output;

use anyhow::{Context as _, Result, ensure};
use gardener_extension_worker::api::gotext::yaml;
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::program;
use test_support::cluster::{ControlPlane, READER};
use test_support::garden::Garden;
use test_support::garden_objects::{azure_profile, azure_shoot};

/// The permissions that docs/versions.md requires.
fn rules_of_the_page() -> Result<Vec<PolicyRule>> {
    let page = include_str!("../../../docs/versions.md");
    let (_, rules) = page.split_once("```yaml\nrules:").context("no rules")?;
    let document = yaml::documents(&format!("rules:{}", rules.split("```").next().context("no end")?))?.remove(0);
    Ok(serde_json::from_value(document["rules"].clone())?)
}

async fn forecast(control_plane: &ControlPlane, arguments: &[&str]) -> Result<Output> {
    let mut command = Command::from(test_support::program::command());
    command.args(["forecast", "--live", "--at", "2026-02-01"]).args(arguments).kill_on_drop(true);
    control_plane.grant(READER, rules_of_the_page()?).await?;
    command.arg("--kubeconfig").arg(control_plane.kubeconfig_file(READER)?);
    command.output().await.context("running the binary")
}

#[tokio::test]
async fn all_shoots_of_a_garden_are_forecast() -> Result<()> {
    // More than one page.
    const SHOOTS: usize = 510;
    let (control_plane, _) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    let mut profile = azure_profile("forecast");
    profile["spec"]["kubernetes"] =
        json!({"versions": [{"version": "1.34.5"}, {"version": "1.33.6", "expirationDate": "2026-04-01T00:00:00Z"}]});
    garden.create(&profile).await?;
    let namespace = control_plane.namespace("garden-forecast").await?;
    let mut shoot = azure_shoot(&namespace);
    shoot["metadata"]["labels"] = json!({});
    shoot["spec"]["cloudProfile"] = json!({"kind": "CloudProfile", "name": "forecast"});
    shoot["spec"]["kubernetes"] = json!({"version": "1.33.6"});
    shoot["spec"]["maintenance"] = json!({"autoUpdate": {"kubernetesVersion": false, "machineImageVersion": false}});
    shoot["spec"]["provider"]["workers"] = json!([]);
    for number in 0..SHOOTS {
        shoot["metadata"]["name"] = format!("s{number:03}").into();
        garden.create(&shoot).await?;
    }
    let output = forecast(control_plane, &["-n", &namespace, "-o", "json"]).await?;
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.code() == Some(1), "{:?}: {message}", output.status);
    let document: Value = serde_json::from_slice(&output.stdout)?;
    let summary = &document["summary"];
    ensure!(summary["shoots"] == SHOOTS && summary["moving"] == SHOOTS && summary["stuck"] == 0, "{summary}");
    let step = &document["shoots"][SHOOTS - 1]["steps"][0];
    ensure!(step["moves"][0]["to"] == "1.34.5" && step["time"] == "2026-04-01T00:00:00Z", "{step}");
    ensure!(document["shoots"][0]["input"] == "garden", "{}", document["shoots"][0]);
    Ok(())
}

#[tokio::test]
async fn a_garden_that_is_not_there_is_an_error() -> Result<()> {
    let mut command = Command::from(test_support::program::command());
    let output = command.args(["forecast", "--live", "--kubeconfig", "no-such-file"]).output().await?;
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.code() == Some(3) && message.contains("no-such-file"), "{:?}: {message}", output.status);
    Ok(())
}
