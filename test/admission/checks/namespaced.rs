//! NamespacedCloudProfiles are reviewed against their parent, their flavors are kept, and their document is merged into
//! the status.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::program;
use test_support::garden::{Garden, refusal};
use test_support::garden_objects::{azure_profile, namespaced_profile};

#[tokio::test]
async fn additions_are_accepted_and_their_flavors_kept() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    garden.create(&azure_profile("parent-a")).await?;
    let mut profile = namespaced_profile(&control_plane.namespace("garden-a").await?, "parent-a");
    profile["spec"]["machineImages"][0]["versions"][0].as_object_mut().expect("an object").remove("capabilityFlavors");
    let stored = garden.create(&profile).await?;
    let flavors = &stored["spec"]["machineImages"][0]["versions"][0]["capabilityFlavors"];
    ensure!(*flavors == json!([{"architecture": ["amd64"]}]), "{stored}");
    Ok(())
}

#[tokio::test]
async fn what_the_parent_has_already_and_what_lacks_an_image_is_refused() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    garden.create(&azure_profile("parent-b")).await?;
    let namespace = control_plane.namespace("garden-b").await?;
    let mut profile = namespaced_profile(&namespace, "parent-b");
    profile["spec"]["machineImages"][0]["versions"] = json!([{"version": "2.0.0"}, {"version": "3.0.0"}]);
    let version = profile["spec"]["providerConfig"]["machineImages"][0]["versions"][0].clone();
    profile["spec"]["providerConfig"]["machineImages"][0]["versions"] =
        json!([version, {"version": "1.0.0", "urn": "a:b:c:d"}]);
    let message = refusal(garden.create(&profile).await)?;
    for part in [
        &format!("NamespacedCloudProfile {namespace}/own has"),
        "machine image version linux@3.0.0 is not defined in the NamespacedCloudProfile providerConfig",
        "machine image version linux@1.0.0 is already defined in the parent CloudProfile",
    ] {
        ensure!(message.contains(part), "{part:?} is missing in: {message}");
    }
    Ok(())
}

#[tokio::test]
async fn a_parent_must_exist_and_be_a_cloud_profile() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    let namespace = control_plane.namespace("garden-c").await?;
    let message = refusal(garden.create(&namespaced_profile(&namespace, "nobody")).await)?;
    ensure!(message.contains(r#"spec.parent.name: Invalid value: "nobody": no such CloudProfile exists"#), "{message}");
    // A name must not redirect the request to another path.
    let message = refusal(garden.create(&namespaced_profile(&namespace, "../../../../api/v1/secrets")).await)?;
    ensure!(message.contains("must be the name of a CloudProfile"), "{message}");
    let mut profile = namespaced_profile(&namespace, "nobody");
    profile["spec"]["parent"]["kind"] = "NamespacedCloudProfile".into();
    let message = refusal(garden.create(&profile).await)?;
    ensure!(message.contains(r#"spec.parent.kind: Unsupported value: "NamespacedCloudProfile""#), "{message}");
    Ok(())
}

#[tokio::test]
async fn the_merged_status_has_the_images_of_both_once() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    let parent = azure_profile("parent-d");
    garden.create(&parent).await?;
    let profile = namespaced_profile(&control_plane.namespace("garden-d").await?, "parent-d");
    let stored = garden.create(&profile).await?;
    // Gardener's controller writes the parent's document, which the webhook completes.
    let written = |generation: i64| {
        let spec = json!({"type": "azure", "providerConfig": parent["spec"]["providerConfig"]});
        json!({"observedGeneration": generation, "cloudProfileSpec": spec})
    };
    let generation = stored["metadata"]["generation"].as_i64().expect("a generation");
    let outdated = garden.patch_status(&profile, &written(generation - 1)).await?;
    let versions = |stored: &serde_json::Value| {
        let versions = &stored["status"]["cloudProfileSpec"]["providerConfig"]["machineImages"][0]["versions"];
        let names = versions.as_array().into_iter().flatten().map(|version| version["version"].clone());
        names.collect::<Vec<_>>()
    };
    ensure!(versions(&outdated) == ["1.0.0"], "a status about an older spec was completed: {outdated}");
    let merged = garden.patch_status(&profile, &written(generation)).await?;
    ensure!(versions(&merged) == ["1.0.0", "2.0.0"], "{merged}");
    let again = garden.patch_status(&profile, &json!({"observedGeneration": generation, "touched": true})).await?;
    ensure!(versions(&again) == ["1.0.0", "2.0.0"], "{again}");
    Ok(())
}
