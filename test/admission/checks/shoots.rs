//! Pools of Shoots are refused where no machine could be made for them; everything else about a Shoot stays possible.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::garden::{Garden, refusal};
use crate::objects::{azure_shoot, labels};
use crate::program;

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
