//! Pools of Shoots are refused where no machine could be made for them; everything else about a Shoot stays possible.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::program;
use test_support::garden::{Garden, refusal};
use test_support::garden_objects::{azure_profile, azure_shoot, labels, namespaced_profile};

#[tokio::test]
async fn a_pool_is_refused_with_every_problem_at_once() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    let namespace = control_plane.namespace("garden-shoots").await?;
    let mut shoot = azure_shoot(&namespace);
    garden.try_create(&shoot).await?;
    let pool = &mut shoot["spec"]["provider"]["workers"][0];
    pool["zones"] = json!(["1", "1"]);
    pool["volume"] = json!({"size": "50Gi", "type": "Premium_LRS", "encrypted": true});
    pool["providerConfig"] = json!({
        "apiVersion": "azure.provider.extensions.gardener.cloud/v1alpha1", "kind": "WorkerConfig",
        "volume": {"caching": "readonly"},
    });
    let message = refusal(garden.create(&shoot).await)?;
    for part in [
        &format!("Shoot {namespace}/s has 3 problems"),
        r#"spec.provider.workers[0].zones[1]: Invalid value: "1": must only be specified once per worker group"#,
        "spec.provider.workers[0].volume.encrypted: Unsupported value: true",
        r#"providerConfig.volume.caching: Unsupported value: "readonly": supported values: "None", "ReadOnly", "ReadWrite""#,
    ] {
        ensure!(message.contains(part), "{part:?} is missing in: {message}");
    }
    Ok(())
}

#[tokio::test]
async fn zones_may_only_be_added() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    let mut shoot = azure_shoot(&control_plane.namespace("garden-zones").await?);
    garden.create(&shoot).await?;
    shoot["spec"]["provider"]["workers"][0]["zones"] = json!(["1", "2"]);
    garden.patch(&shoot, &json!({"spec": shoot["spec"]})).await?;
    shoot["spec"]["provider"]["workers"][0]["zones"] = json!(["2", "1"]);
    let message = refusal(garden.patch(&shoot, &json!({"spec": shoot["spec"]})).await)?;
    ensure!(message.contains("workers[0].zones") && message.contains("it was [1, 2]"), "{message}");
    Ok(())
}

#[tokio::test]
async fn a_shoot_from_before_is_held_up_only_by_changes_of_its_pools() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    let mut shoot = azure_shoot(&control_plane.namespace("garden-before").await?);
    shoot["metadata"]["labels"] = json!({});
    shoot["spec"]["provider"]["workers"][0]["volume"] = json!({"size": "50Gi"});
    garden.create(&shoot).await?;
    garden.patch(&shoot, &json!({"metadata": {"labels": labels("azure")}})).await?;
    garden.patch(&shoot, &json!({"spec": {"hibernation": {"enabled": true}}})).await?;
    shoot["spec"]["provider"]["workers"][0]["maximum"] = 5.into();
    let message = refusal(garden.patch(&shoot, &json!({"spec": shoot["spec"]})).await)?;
    ensure!(message.contains("workers[0].volume.type: Required value"), "{message}");
    Ok(())
}

#[tokio::test]
async fn aws_has_its_own_rules() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    let mut shoot = azure_shoot(&control_plane.namespace("garden-aws").await?);
    shoot["metadata"]["labels"] = labels("aws");
    shoot["spec"]["provider"]["type"] = "aws".into();
    shoot["spec"]["provider"]["infrastructureConfig"] = json!({"networks": {"zones": [{"name": "eu-west-1a"}]}});
    shoot["spec"]["provider"]["workers"][0]["zones"] = json!(["eu-west-1b"]);
    shoot["spec"]["provider"]["workers"][0]["volume"]["type"] = "io1".into();
    let message = refusal(garden.create(&shoot).await)?;
    for part in [
        "workers[0].zones[0]: Invalid value: \"eu-west-1b\"",
        "it has eu-west-1a",
        "providerConfig.volume.iops: Required value",
    ] {
        ensure!(message.contains(part), "{part:?} is missing in: {message}");
    }
    Ok(())
}

#[tokio::test]
async fn a_machine_type_that_no_image_fits_is_refused_with_both_sides_and_a_way_out() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    let mut profile = azure_profile("fitting");
    profile["spec"]["machineTypes"][0]["capabilities"]["hypervisorType"] = json!(["gen1"]);
    let add =
        |list: &mut serde_json::Value, version: serde_json::Value| list.as_array_mut().expect("a list").push(version);
    let flavors = json!([{"capabilities": {"architecture": ["amd64"], "hypervisorType": ["gen1"]}, "urn": "a:b:c:4"}]);
    add(&mut profile["spec"]["machineImages"][0]["versions"], json!({"version": "1.1.0"}));
    let config = &mut profile["spec"]["providerConfig"]["machineImages"][0]["versions"];
    add(config, json!({"version": "1.1.0", "capabilityFlavors": flavors}));
    garden.create(&profile).await?;

    let mut shoot = azure_shoot(&control_plane.namespace("garden-fitting").await?);
    shoot["spec"]["cloudProfile"] = json!({"kind": "CloudProfile", "name": "fitting"});
    let machine = &mut shoot["spec"]["provider"]["workers"][0]["machine"];
    machine["image"] = json!({"name": "linux", "version": "1.0.0"});
    let message = refusal(garden.create(&shoot).await)?;
    for part in [
        "workers[0].machine.image.version: Invalid value: \"1.0.0\": no image of linux@1.0.0 fits machine type Standard_D4s_v5",
        "capabilityFlavors[0]: machine type requires hypervisorType=gen1; image supports gen2",
        "capabilityFlavors[1]: machine type requires architecture=amd64; image supports arm64",
        "Versions of linux that fit Standard_D4s_v5: 1.1.0",
    ] {
        ensure!(message.contains(part), "{part:?} is missing in: {message}");
    }
    shoot["spec"]["provider"]["workers"][0]["machine"]["image"]["version"] = "1.1.0".into();
    garden.create(&shoot).await?;

    // The same by the merged profile of a project.
    let namespace = shoot["metadata"]["namespace"].as_str().expect("a namespace").to_owned();
    let mut own = namespaced_profile(&namespace, "fitting");
    own["spec"]["machineImages"][0]["versions"][0]["version"] = "2.0.0".into();
    garden.create(&own).await?;
    let status = json!({"cloudProfileSpec": profile["spec"]});
    garden.patch_status(&own, &status).await?;
    shoot["metadata"]["name"] = "other".into();
    shoot["spec"]["cloudProfile"] = json!({"kind": "NamespacedCloudProfile", "name": "own"});
    shoot["spec"]["provider"]["workers"][0]["machine"]["image"]["version"] = "1.0.0".into();
    let message = refusal(garden.create(&shoot).await)?;
    ensure!(message.contains("no image of linux@1.0.0 fits machine type Standard_D4s_v5"), "{message}");

    // Without its profile a Shoot is not held up.
    shoot["spec"]["cloudProfile"] = json!({"kind": "CloudProfile", "name": "nobody"});
    garden.create(&shoot).await?;
    Ok(())
}
