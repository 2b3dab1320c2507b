//! Shoots as the inputs of a preview, and the CloudProfiles that they name.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::ValueEnum;
use jiff::Timestamp;
use serde_json::Value;

use crate::cli::input::{files, objects, text_of_file};
use crate::preview::{CloudProfiles, Inputs, ShootSource};
use crate::shoot::Reservation;

/// Reads the CloudProfiles of files or folders.
pub(in crate::cli) fn read_profiles(paths: &[PathBuf], profiles: &CloudProfiles) -> anyhow::Result<()> {
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

/// What a landscape does that its Shoots do not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Presume {
    /// It reserves resources for kubelets by machine type.
    ReservationByMachineType,
    /// It gives new Shoots node-local DNS.
    NodeLocalDns,
}

/// How Workers are made of Shoots that are written now.
pub(in crate::cli) fn source(presumed: &[Presume]) -> Arc<ShootSource> {
    let by_machine_type = presumed.contains(&Presume::ReservationByMachineType);
    Arc::new(ShootSource {
        reservation: by_machine_type.then_some(Reservation::ByMachineType),
        node_local_dns: presumed.contains(&Presume::NodeLocalDns),
        ..ShootSource::new(Timestamp::now())
    })
}

/// The Shoots of a text. CloudProfiles beside them are known from then on.
pub(in crate::cli) fn of_text(
    text: &str,
    profiles: &CloudProfiles,
    source: &Arc<ShootSource>,
) -> anyhow::Result<Vec<Inputs>> {
    let (shoots, others): (Vec<Value>, Vec<Value>) =
        objects(text)?.into_iter().partition(|object| object["kind"] == "Shoot");
    if !shoots.is_empty() {
        offer_profiles(&others, profiles)?;
    }
    let inputs = shoots.into_iter().map(|shoot| {
        let (profile_name, profile) = profiles.of_shoot(&shoot);
        let profile = profile.with_context(|| {
            let [namespace, name] =
                ["namespace", "name"].map(|member| shoot["metadata"][member].as_str().unwrap_or("?"));
            format!("Shoot {namespace}/{name}: no file has CloudProfile {profile_name:?}; name one with --profiles")
        })?;
        Ok(Inputs::of_shoot(shoot, profile, Arc::clone(source), profiles.providers()))
    });
    inputs.collect()
}
