//! Profiles as large as etcd takes them.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::garden::{Garden, refusal};
use crate::objects::azure_profile;
use crate::program;

/// As large as it gets: etcd takes 1.5 MiB, and an API server notes who wrote what.
const SIZE: usize = 1_500_000;

/// A profile of about that many bytes, in both halves complete.
fn huge(name: &str) -> Value {
    let mut profile = azure_profile(name);
    let (mut core, mut provider) = (Vec::new(), Vec::new());
    let mut size = 0;
    while size < SIZE {
        let version = format!("1.{}.0", core.len());
        let flavors: Vec<Value> = ["gen2", "gen1"]
            .into_iter()
            .flat_map(|hypervisor| {
                ["amd64", "arm64"]
                    .map(|architecture| json!({"architecture": [architecture], "hypervisorType": [hypervisor]}))
            })
            .collect();
        let with_images = flavors.iter().map(|flavor| {
            let id = format!("/SharedGalleries/gallery-of-{name}/Images/linux/Versions/{version}");
            json!({"capabilities": flavor, "sharedGalleryImageID": id})
        });
        let listed = json!({"version": version, "capabilityFlavors": with_images.collect::<Vec<_>>()});
        let version = json!({"version": version, "cri": [{"name": "containerd"}], "capabilityFlavors": flavors});
        size += listed.to_string().len() + version.to_string().len();
        core.push(version);
        provider.push(listed);
    }
    profile["spec"]["machineImages"][0]["versions"] = core.into();
    profile["spec"]["providerConfig"]["machineImages"][0]["versions"] = provider.into();
    profile
}

#[tokio::test]
async fn a_profile_of_a_megabyte_and_a_half_is_judged_and_changed() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    let mut profile = huge("huge");
    let last = profile["spec"]["machineImages"][0]["versions"].as_array().expect("a list").len() - 1;
    // Its last version has other flavors than the provider's half.
    let flavors = profile["spec"]["machineImages"][0]["versions"][last]["capabilityFlavors"].take();
    profile["spec"]["machineImages"][0]["versions"][last]["capabilityFlavors"] = json!([{"architecture": ["amd64"]}]);
    let stored = garden.create(&profile).await?;
    ensure!(stored["spec"]["machineImages"][0]["versions"][last]["capabilityFlavors"] == flavors, "it was not changed");
    ensure!(stored.to_string().len() > SIZE, "{}", stored.to_string().len());

    profile["spec"]["providerConfig"]["machineImages"][0]["versions"][last]["capabilityFlavors"][0]["sharedGalleryImageID"] =
        "x".into();
    let message =
        refusal(garden.patch(&profile, &json!({"spec": {"providerConfig": profile["spec"]["providerConfig"]}})).await)?;
    ensure!(message.contains(&format!("versions[{last}].capabilityFlavors[0].sharedGalleryImageID")), "{message}");
    Ok(())
}

#[tokio::test]
async fn a_profile_with_thousands_of_problems_gets_a_readable_answer() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let garden = Garden::new(control_plane).await?;
    let mut profile = huge("problems");
    profile["spec"]["providerConfig"]["machineImages"][0]["name"] = "other".into();
    for version in profile["spec"]["providerConfig"]["machineImages"][0]["versions"].as_array_mut().expect("a list") {
        version["capabilityFlavors"][0]["capabilities"] = json!({});
    }
    let message = refusal(garden.try_create(&profile).await)?;
    ensure!(message.contains("problems:") && message.contains("more") && message.len() < 20_000, "{}", message.len());
    Ok(())
}
