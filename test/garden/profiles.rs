//! A garden accepts the profiles of `example/` and everything that `convert` and `minimize` write.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use gardener_extension_worker::api::gotext::yaml;
use serde_json::Value;

use crate::stage::{self, command, verdict};

/// The CloudProfiles below a folder, with their files. Skips the profiles inside Clusters, which contain only what a
/// demo needs.
fn profiles(folder: &Path) -> Result<Vec<(String, Value)>> {
    let mut profiles = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            profiles.extend(self::profiles(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            let text = std::fs::read_to_string(&path)?;
            let Ok(documents) = yaml::documents(&text) else { continue };
            let documents = documents.into_iter().filter(|document| document["kind"] == "CloudProfile");
            profiles.extend(documents.map(|document| (path.display().to_string(), of_today(document))));
        }
    }
    Ok(profiles)
}

/// Moves all dates by a hundred years. Gardener omits expired versions, and some day all versions of an example will
/// have expired.
fn of_today(profile: Value) -> Value {
    let text = profile.to_string();
    let moved = ["2026", "2027", "2028", "2029"]
        .iter()
        .fold(text, |text, year| text.replace(&format!("\"{year}-"), &format!("\"21{}-", &year[2..])));
    serde_json::from_str(&moved).expect("dates stay dates")
}

/// Ensures that both gardens accept a document.
async fn ensure_taken(what: &str, document: &Value) -> Result<()> {
    for (garden, stage) in
        [("without webhooks", stage::bare().await?), ("with webhooks", stage::with_webhooks().await?)]
    {
        // docs/versions.md shows only core's half of a profile, which no provider accepts.
        if garden == "with webhooks" && document["spec"]["providerConfig"].is_null() {
            continue;
        }
        let verdict = verdict(&stage.client().await?, document).await?;
        ensure!(!verdict.is_refused(), "{what}, {garden}: {}", verdict.text());
    }
    Ok(())
}

#[tokio::test]
async fn every_profile_of_the_examples_is_admitted() -> Result<()> {
    let profiles = profiles(&test_support::repository().join("example"))?;
    ensure!(profiles.len() >= 12, "only {} profiles", profiles.len());
    let mut refused = Vec::new();
    for (file, profile) in &profiles {
        if let Err(error) = ensure_taken(file, profile).await {
            refused.push(format!("{error:#}"));
        }
    }
    ensure!(refused.is_empty(), "{}", refused.join("\n"));
    Ok(())
}

#[tokio::test]
async fn what_convert_and_minimize_write_is_admitted() -> Result<()> {
    let mut examples = profiles(&test_support::repository().join("example/cloudprofiles"))?;
    examples.extend(profiles(&test_support::repository().join("test/cli/cloudprofile/old"))?);
    let mut refused = Vec::new();
    for (file, profile) in &examples {
        for arguments in [&["convert"][..], &["convert", "--to", "old-format"], &["minimize"]] {
            let arguments = [&["cloudprofile"], arguments, &["-"]].concat();
            let output = command(&arguments, &profile.to_string()).await?;
            let text = String::from_utf8_lossy(&output.stdout);
            // A profile that can't be converted produces a message and no output.
            let Some(written) = yaml::documents(&text)?.into_iter().next().filter(|written| !written.is_null()) else {
                let message = String::from_utf8_lossy(&output.stderr);
                ensure!(!output.status.success() && !message.is_empty(), "{file} {arguments:?}: nothing is said");
                continue;
            };
            if let Err(error) = ensure_taken(&format!("{file} {arguments:?}"), &written).await {
                refused.push(format!("{error:#}"));
            }
        }
    }
    ensure!(refused.is_empty(), "{}", refused.join("\n"));
    Ok(())
}

#[tokio::test]
async fn what_webhooks_fill_in_is_stored_by_a_real_garden() -> Result<()> {
    let stage = stage::with_webhooks().await?;
    let (_, mut profile) = profiles(&test_support::repository().join("example/cloudprofiles"))?
        .into_iter()
        .find(|(file, _)| file.ends_with("/azure.yaml"))
        .context("no example")?;
    profile["metadata"]["name"] = "filled-in".into();
    let version = profile.pointer_mut("/spec/machineImages/0/versions/0").context("no version")?;
    let flavors = version["capabilityFlavors"].take();
    version.as_object_mut().context("a version")?.remove("capabilityFlavors");
    let garden = test_support::garden::Garden::new(&stage.control_plane).await?;
    let stored = garden.create(&profile).await?;
    let filled = &stored["spec"]["machineImages"][0]["versions"][0]["capabilityFlavors"];
    ensure!(filled.as_array().map(Vec::len) == flavors.as_array().map(Vec::len), "{filled} instead of {flavors}");
    Ok(())
}
