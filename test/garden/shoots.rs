//! Shoots in a real garden: responses to users who edit them, and Gardener's maintenance alongside our webhooks.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use test_support::cluster::eventually;

use crate::project::Project;
use crate::stage::{self, Stage, command};

/// A version of the minor after that of Shoots, in the example for Azure.
const NEXT_MINOR: &str = "1.34.2";

/// Requests immediate maintenance with an annotation.
fn request_maintenance(shoot: &mut Value) {
    shoot["metadata"]["annotations"]["gardener.cloud/operation"] = "maintain".into();
}

/// Versions of a Shoot: control plane, then the image of each pool.
fn versions(shoot: &Value) -> Vec<Value> {
    let pools = shoot["spec"]["provider"]["workers"].as_array().cloned().unwrap_or_default();
    let images = pools.iter().map(|pool| pool["machine"]["image"]["version"].clone());
    [shoot["spec"]["kubernetes"]["version"].clone()].into_iter().chain(images).collect()
}

/// Requests maintenance, waits until the controller has completed it, and returns the Shoot.
async fn maintained(project: &Project, name: &str) -> Result<Value> {
    project.edit(name, false, request_maintenance).await?.taken()?;
    eventually(Duration::from_secs(60), "the Shoot is maintained", async || {
        let shoot = project.stored(name).await?;
        let last = &shoot["status"]["lastMaintenance"];
        ensure!(!last.is_null() && last["state"] != "Processing", "{}", shoot["status"]);
        ensure!(shoot["metadata"]["annotations"]["gardener.cloud/operation"] != "maintain", "it is still asked for");
        Ok(shoot)
    })
    .await
}

/// Removes the expiration dates from the example's versions, because they would pass some day.
fn lasting(profile: &mut Value) {
    for version in [
        "/spec/kubernetes/versions/0",
        "/spec/kubernetes/versions/1",
        "/spec/machineImages/0/versions/0",
        "/spec/machineImages/0/versions/1",
        "/spec/machineImages/0/versions/2",
    ] {
        if let Some(version) = profile.pointer_mut(version).and_then(Value::as_object_mut) {
            version.remove("expirationDate");
        }
    }
}

/// Sets the expiration date of an image version in the profile to yesterday.
async fn expire(project: &Project, version: &str) -> Result<()> {
    let mut profile = project.profile().await?;
    let yesterday = Timestamp::now() - SignedDuration::from_hours(24);
    let versions = profile["spec"]["machineImages"][0]["versions"].as_array_mut().context("no versions")?;
    let expiring = versions.iter_mut().find(|known| known["version"] == version).context("no such version")?;
    expiring["expirationDate"] = yesterday.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into();
    let images = &profile["spec"]["machineImages"];
    project.garden.patch(&profile, &json!({"spec": {"machineImages": images}})).await?;
    Ok(())
}

#[tokio::test]
async fn an_edit_of_a_shoot_gets_warnings_about_its_nodes() -> Result<()> {
    let project = Project::new(stage::with_webhooks().await?, "warned", lasting).await?;
    project.create(&project.shoot("s")).await?.taken()?;
    let edited = async |dry_run, change: fn(&mut Value)| project.edit("s", dry_run, change).await?.taken();
    let set_image = |shoot: &mut Value| {
        shoot["spec"]["provider"]["workers"][0]["machine"]["image"]["version"] = "1877.3.0".into();
    };
    let expected = "pool web: its 2 to 6 nodes roll, because machine.image changed; 1 at a time";
    for dry_run in [true, false] {
        let response = edited(dry_run, set_image).await?;
        ensure!(response.warnings.iter().any(|warning| warning == expected), "dry run {dry_run}: {response:?}");
    }
    let response = edited(false, |shoot| shoot["spec"]["provider"]["workers"][0]["maximum"] = 7.into()).await?;
    ensure!(!response.warnings.iter().any(|warning| warning.contains("roll")), "{response:?}");
    let response = edited(false, |shoot| {
        if let Some(pools) = shoot["spec"]["provider"]["workers"].as_array_mut() {
            pools.truncate(1);
        }
    })
    .await?;
    let deleted = "pool batch: its 2 to 6 nodes are deleted";
    ensure!(response.warnings.iter().any(|warning| warning == deleted), "{response:?}");
    Ok(())
}

#[tokio::test]
async fn a_pool_that_gets_no_machines_is_denied_with_its_field() -> Result<()> {
    let project = Project::new(stage::with_webhooks().await?, "refused", lasting).await?;
    let mut shoot = project.shoot("s");
    shoot["spec"]["provider"]["workers"][1]["providerConfig"] = json!({
        "apiVersion": "azure.provider.extensions.gardener.cloud/v1alpha1", "kind": "WorkerConfig",
        "volume": {"caching": "readonly"},
    });
    let response = project.create(&shoot).await?;
    ensure!(response.status == 422, "{response:?}");
    let field = "spec.provider.workers[1].providerConfig.volume.caching";
    ensure!(response.message().contains(field), "{}", response.message());
    let causes = response.body["details"]["causes"].as_array().context("kubectl prints causes")?;
    ensure!(causes.iter().any(|cause| cause["field"] == field), "{causes:?}");
    shoot["spec"]["provider"]["workers"][1]["providerConfig"]["volume"]["caching"] = "ReadOnly".into();
    project.create(&shoot).await?.taken()?;
    Ok(())
}

#[tokio::test]
async fn maintenance_does_what_the_forecast_predicts() -> Result<()> {
    let project = Project::new(stage::with_webhooks().await?, "maintained", lasting).await?;
    project.create(&project.shoot("s")).await?.taken()?;
    expire(&project, "1592.9.0").await?;
    let forecast = json!({
        "apiVersion": "v1", "kind": "List", "items": [project.profile().await?, project.stored("s").await?],
    });
    let output = command(&["forecast", "-", "-o", "json"], &forecast.to_string()).await?;
    let forecast: Value =
        serde_json::from_slice(&output.stdout).with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    let shoot = maintained(&project, "s").await?;
    let moved = versions(&shoot);
    ensure!(moved == ["1.33.6", "1877.3.0", "1877.3.0"], "{moved:?}, {}", shoot["status"]["lastMaintenance"]);
    let step = &forecast["shoots"][0]["steps"][0];
    let moves: Vec<[&Value; 3]> = step["moves"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| ["pool", "from", "to"].map(|member| &one[member]))
        .collect();
    let expected = ["web", "batch"].map(|pool| [json!(pool), json!("1592.9.0"), json!("1877.3.0")]);
    ensure!(moves.len() == 2 && expected.iter().all(|one| moves.contains(&one.each_ref())), "{forecast:#}");
    Ok(())
}

#[tokio::test]
async fn maintenance_of_a_shoot_is_not_held_up_by_what_was_wrong_before() -> Result<()> {
    let mut stage = Stage::without_webhooks().await?;
    let project = Project::new(&stage, "stored", lasting).await?;
    let mut shoot = project.shoot("s");
    shoot["spec"]["provider"]["workers"][0]["volume"]["encrypted"] = true.into();
    project.create(&shoot).await?.taken()?;
    stage.install_webhooks().await?;
    shoot["metadata"]["name"] = "later".into();
    ensure!(project.create(&shoot).await?.status == 422, "the webhooks take an encrypted volume");
    expire(&project, "1592.9.0").await?;
    let response = project
        .edit("s", true, |shoot| {
            for pool in shoot["spec"]["provider"]["workers"].as_array_mut().into_iter().flatten() {
                pool["machine"]["image"]["version"] = "1877.3.0".into();
            }
        })
        .await?
        .taken()?;
    let standing = "spec.provider.workers[0].volume.encrypted: Unsupported value";
    ensure!(response.warnings.iter().any(|warning| warning.starts_with(standing)), "{:?}", response.warnings);
    let shoot = maintained(&project, "s").await?;
    ensure!(shoot["status"]["lastMaintenance"]["state"] == "Succeeded", "{}", shoot["status"]["lastMaintenance"]);
    ensure!(versions(&shoot) == ["1.33.6", "1877.3.0", "1877.3.0"], "{:?}", versions(&shoot));
    Ok(())
}

/// The forecast does not promise an update that ShootValidator refuses.
#[tokio::test]
async fn what_the_forecast_calls_refused_is_refused() -> Result<()> {
    let change = |profile: &mut Value| {
        lasting(profile);
        let versions = profile["spec"]["machineImages"][0]["versions"].as_array_mut().into_iter().flatten();
        let constrained = versions.filter(|version| version["version"] == "1592.9.0");
        constrained.for_each(|version| version["kubeletVersionConstraint"] = "< 1.34".into());
    };
    let project = Project::new(stage::with_webhooks().await?, "validated", change).await?;
    project.create(&project.shoot("s")).await?.taken()?;
    let newer = |shoot: &mut Value| shoot["spec"]["kubernetes"]["version"] = NEXT_MINOR.into();
    let response = project.edit("s", true, newer).await?;
    let refusal = "does not support kubelet version";
    ensure!(response.status == 403 && response.message().contains(refusal), "{response:?}");
    // The control plane has to leave its minor version, and the image has to change with it.
    let mut profile = project.profile().await?;
    profile["spec"]["kubernetes"]["versions"] = json!([{"version": NEXT_MINOR}]);
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [profile, project.stored("s").await?]});
    let output = command(&["forecast", "-", "-o", "json"], &objects.to_string()).await?;
    let forecast: Value =
        serde_json::from_slice(&output.stdout).with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    let stuck = forecast["shoots"][0]["stuck"].to_string();
    ensure!(stuck.contains(refusal), "{forecast:#}");
    Ok(())
}
