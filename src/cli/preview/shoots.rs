//! Shoots as the inputs of a preview, and the CloudProfiles that they name.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::ValueEnum;
use jiff::Timestamp;
use serde_json::Value;

use crate::cli::input::{NamedFile, files, objects};
use crate::preview::{CloudProfiles, Inputs, NamedProfiles, ShootSource};
use crate::shoot::Reservation;

/// What a landscape does that its Shoots do not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Presume {
    /// It reserves resources for kubelets by machine type.
    ReservationByMachineType,
    /// It gives new Shoots node-local DNS.
    NodeLocalDns,
}

/// What Workers are made with of Shoots that are written now.
#[derive(Clone)]
pub(in crate::cli) struct ShootReader {
    source: Arc<ShootSource>,
    /// Profiles of `--profiles`, and those of the side.
    profiles: NamedProfiles,
}

impl ShootReader {
    /// With the CloudProfiles of files or folders.
    pub(in crate::cli) fn new(presumed: &[Presume], paths: &[PathBuf], shared: &CloudProfiles) -> anyhow::Result<Self> {
        let by_machine_type = presumed.contains(&Presume::ReservationByMachineType);
        let source = Arc::new(ShootSource {
            reservation: by_machine_type.then_some(Reservation::ByMachineType),
            node_local_dns: presumed.contains(&Presume::NodeLocalDns),
            ..ShootSource::new(Timestamp::now())
        });
        let mut reader = Self { source, profiles: NamedProfiles::default() };
        for file in files(paths)? {
            let of_file = || file.path.display().to_string();
            let objects = objects(&file.text()?).with_context(of_file)?;
            add_profiles(&mut reader.profiles, &objects, shared).with_context(of_file)?;
        }
        Ok(reader)
    }

    /// With the CloudProfiles among files of one side as well. Which files can't be read is said where they are compared.
    pub(super) fn of_side<'a>(&self, files: impl Iterator<Item = &'a NamedFile>, shared: &CloudProfiles) -> Self {
        let mut reader = self.clone();
        for file in files.filter(|file| !file.explicit) {
            let text = file.text().ok().filter(|text| text.contains(OF_PROFILES));
            let found = text.and_then(|text| objects(&text).ok()).unwrap_or_default();
            // A profile that can't be decoded is missing for the Shoots that name it.
            drop(add_profiles(&mut reader.profiles, &found, shared));
        }
        reader
    }

    /// Whether Shoots get the same profiles of both.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.profiles.is_same(&other.profiles)
    }

    /// The Shoots of a text. CloudProfiles beside them come first.
    pub(in crate::cli) fn shoots_of(&self, text: &str, shared: &CloudProfiles) -> anyhow::Result<Vec<Inputs>> {
        let (shoots, others): (Vec<Value>, Vec<Value>) =
            objects(text)?.into_iter().partition(|object| object["kind"] == "Shoot");
        let mut beside = NamedProfiles::default();
        if !shoots.is_empty() {
            add_profiles(&mut beside, &others, shared)?;
        }
        let inputs = shoots.into_iter().map(|shoot| {
            let name = NamedProfiles::name_for(&shoot);
            let profile = beside.get(&name).or_else(|| self.profiles.get(&name)).with_context(|| {
                let [namespace, own] =
                    ["namespace", "name"].map(|member| shoot["metadata"][member].as_str().unwrap_or("?"));
                format!("Shoot {namespace}/{own}: no file has CloudProfile {name:?}; name one with --profiles")
            })?;
            Ok(Inputs::of_shoot(shoot, Arc::clone(profile), Arc::clone(&self.source), shared.providers()))
        });
        inputs.collect()
    }
}

/// A member that CloudProfiles have and Shoots have not, so that Shoots are not read twice.
const OF_PROFILES: &str = "machineTypes";

fn add_profiles(profiles: &mut NamedProfiles, objects: &[Value], shared: &CloudProfiles) -> anyhow::Result<()> {
    let kinds = ["CloudProfile", "NamespacedCloudProfile"];
    for profile in objects.iter().filter(|object| kinds.iter().any(|kind| object["kind"] == *kind)) {
        profiles.add(profile.clone(), shared).context("CloudProfile")?;
    }
    Ok(())
}
