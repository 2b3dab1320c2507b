//! Profiles of the maximum size that etcd accepts.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::program;
use test_support::garden::{Garden, refusal};
use test_support::garden_objects::{HUGE, huge_profile};

#[tokio::test]
async fn a_profile_of_a_megabyte_and_a_half_is_reviewed_and_changed() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    let mut profile = huge_profile("huge");
    let last = profile["spec"]["machineImages"][0]["versions"].as_array().expect("a list").len() - 1;
    // The flavors of its last version differ between core and the provider's half.
    let flavors = profile["spec"]["machineImages"][0]["versions"][last]["capabilityFlavors"].take();
    profile["spec"]["machineImages"][0]["versions"][last]["capabilityFlavors"] = json!([{"architecture": ["amd64"]}]);
    let stored = garden.create(&profile).await?;
    ensure!(stored["spec"]["machineImages"][0]["versions"][last]["capabilityFlavors"] == flavors, "it was not changed");
    ensure!(stored.to_string().len() > HUGE, "{}", stored.to_string().len());

    profile["spec"]["providerConfig"]["machineImages"][0]["versions"][last]["capabilityFlavors"][0]["sharedGalleryImageID"] =
        "x".into();
    let message =
        refusal(garden.patch(&profile, &json!({"spec": {"providerConfig": profile["spec"]["providerConfig"]}})).await)?;
    ensure!(message.contains(&format!("versions[{last}].capabilityFlavors[0].sharedGalleryImageID")), "{message}");
    Ok(())
}

#[tokio::test]
async fn thousands_of_problems_get_a_readable_response() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    let mut profile = huge_profile("problems");
    profile["spec"]["providerConfig"]["machineImages"][0]["name"] = "other".into();
    for version in profile["spec"]["providerConfig"]["machineImages"][0]["versions"].as_array_mut().expect("a list") {
        version["capabilityFlavors"][0]["capabilities"] = json!({});
    }
    let message = refusal(garden.try_create(&profile).await)?;
    ensure!(message.contains("problems:") && message.contains("more") && message.len() < 20_000, "{}", message.len());
    Ok(())
}
