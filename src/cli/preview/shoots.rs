//! Shoots as the inputs of a preview, and the CloudProfiles that they name.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use jiff::Timestamp;
use serde_json::Value;

use crate::cli::input::{files, objects, text_of_file};
use crate::preview::{CloudProfiles, Inputs, ShootSource};

/// Reads the CloudProfiles of files or folders.
pub(super) fn read_profiles(paths: &[PathBuf], profiles: &CloudProfiles) -> anyhow::Result<()> {
    for file in files(paths)? {
        let of_file = || file.path.display().to_string();
        offer_profiles(&objects(&text_of_file(&file.path)?).with_context(of_file)?, profiles).with_context(of_file)?;
    }
    Ok(())
}

fn offer_profiles(objects: &[Value], profiles: &CloudProfiles) -> anyhow::Result<()> {
    let kinds = ["CloudProfile", "NamespacedCloudProfile"];
    for profile in objects.iter().filter(|object| kinds.iter().any(|kind| object["kind"] == *kind)) {
        profiles.offer(profile.clone()).context("CloudProfile")?;
    }
    Ok(())
}

/// The Shoots of a text. CloudProfiles beside them are known from then on.
pub(super) fn of_text(text: &str, profiles: &CloudProfiles) -> anyhow::Result<Vec<Inputs>> {
    let (shoots, others): (Vec<Value>, Vec<Value>) =
        objects(text)?.into_iter().partition(|object| object["kind"] == "Shoot");
    if !shoots.is_empty() {
        offer_profiles(&others, profiles)?;
    }
    let source = Arc::new(ShootSource { now: Timestamp::now(), infrastructure_status: None });
    let inputs = shoots.into_iter().map(|shoot| {
        let (profile_name, profile) = profiles.of_shoot(&shoot);
        let profile = profile.with_context(|| {
            let [namespace, name] =
                ["namespace", "name"].map(|member| shoot["metadata"][member].as_str().unwrap_or("?"));
            format!("Shoot {namespace}/{name}: no file has CloudProfile {profile_name:?}; name one with --profiles")
        })?;
        Ok(Inputs::of_shoot(shoot, profile, Arc::clone(&source), profiles.providers()))
    });
    inputs.collect()
}
