//! Shoots as the inputs of a preview, and the CloudProfiles that they name.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use anyhow::{Context, bail, ensure};
use clap::ValueEnum;
use jiff::Timestamp;
use serde_json::Value;

use crate::cli::evidence::Evidence;
use crate::cli::in_parallel::in_parallel;
use crate::preview::{CloudProfiles, Inputs, NamedProfiles, ShootSource};
use crate::reader::files::{NamedFile, files};
use crate::reader::objects::objects;
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
    /// Profiles of `--profiles`, and those of the side that are known.
    profiles: NamedProfiles,
    /// Files of the side that may have more, and all of them once somebody needs them.
    unread: Vec<NamedFile>,
    all: OnceLock<NamedProfiles>,
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
        let mut reader = Self { source, profiles: NamedProfiles::default(), unread: Vec::new(), all: OnceLock::new() };
        for path in paths {
            let mut count = 0;
            let mut evidence = Evidence::of("CloudProfile");
            for file in evidence.note_skipped(files(std::slice::from_ref(path))) {
                let objects = file.objects()?;
                count += add_profiles(&mut reader.profiles, &objects, shared).with_context(|| file.name())?;
            }
            if let Some(problem) = evidence.problems().next() {
                bail!("{problem}");
            }
            ensure!(count > 0, "{}: no CloudProfile in it", path.display());
        }
        Ok(reader)
    }

    /// With the CloudProfiles among files of one side as well, which are read when a Shoot needs one: a landscape of Workers has
    /// none. Which files can't be read is said where they are compared.
    pub(super) fn of_side<'a>(&self, files: impl Iterator<Item = &'a NamedFile>, shared: &CloudProfiles) -> Self {
        let mut reader = Self { all: OnceLock::new(), ..self.clone() };
        for file in files.filter(|file| !file.explicit) {
            match &file.text {
                Some(text) => add_profiles_of(&mut reader.profiles, text, shared),
                None => reader.unread.push(file.clone()),
            }
        }
        reader
    }

    /// What is known beside the Shoots.
    pub(super) fn source(&self) -> &ShootSource {
        &self.source
    }

    /// What of it decides beside the profiles.
    pub(super) fn flags(&self) -> String {
        let ShootSource { reservation, node_local_dns, .. } = &*self.source;
        format!("{reservation:?} {node_local_dns}")
    }

    /// All profiles that are known to it.
    pub(super) fn profiles(&self, shared: &CloudProfiles) -> &NamedProfiles {
        self.all.get_or_init(|| {
            let mut all = self.profiles.clone();
            let read = |file: &NamedFile| file.text().ok().filter(|text| may_hold_profiles(text));
            for text in in_parallel(&self.unread, read).into_iter().flatten() {
                add_profiles_of(&mut all, &text, shared);
            }
            all
        })
    }

    /// With these profiles where it has none of the name.
    pub(super) fn over(&self, others: &NamedProfiles) -> Self {
        Self { profiles: others.clone().overlaid_by(&self.profiles), all: OnceLock::new(), ..self.clone() }
    }

    /// Whether Shoots get the same profiles of both.
    pub(super) fn is_same(&self, other: &Self, shared: &CloudProfiles) -> bool {
        self.profiles(shared).is_same(other.profiles(shared))
    }

    /// The Shoots of a text. CloudProfiles beside them come first.
    pub(in crate::cli) fn shoots_of(&self, text: &str, shared: &CloudProfiles) -> anyhow::Result<Vec<Inputs>> {
        self.shoots_where(text, |_| true, shared)
    }

    /// The Shoots of a file.
    pub(in crate::cli) fn shoots_of_file(
        &self,
        file: &NamedFile,
        shared: &CloudProfiles,
    ) -> anyhow::Result<Vec<Inputs>> {
        self.shoots_of(&file.text()?, shared).with_context(|| file.name())
    }

    /// As [`shoots_of`](Self::shoots_of), only those that are wanted.
    pub(super) fn shoots_where(
        &self,
        text: &str,
        is_wanted: impl Fn(&Value) -> bool,
        shared: &CloudProfiles,
    ) -> anyhow::Result<Vec<Inputs>> {
        let (mut shoots, others): (Vec<Value>, Vec<Value>) =
            objects(text)?.into_iter().partition(|object| object["kind"] == "Shoot");
        shoots.retain(is_wanted);
        if shoots.is_empty() {
            return Ok(Vec::new());
        }
        let mut beside = NamedProfiles::default();
        add_profiles(&mut beside, &others, shared)?;
        let profiles = self.profiles(shared);
        let overlaid = (!beside.is_empty()).then(|| profiles.clone().overlaid_by(&beside));
        let profiles = overlaid.as_ref().unwrap_or(profiles);
        shoots.into_iter().map(|shoot| self.inputs_of(shoot, profiles, shared)).collect()
    }

    /// The inputs of a Shoot that names one of the profiles.
    pub(super) fn inputs_of(
        &self,
        shoot: Value,
        profiles: &NamedProfiles,
        shared: &CloudProfiles,
    ) -> anyhow::Result<Inputs> {
        let name = NamedProfiles::name_for(&shoot);
        let of_shoot = || {
            let [namespace, own] =
                ["namespace", "name"].map(|member| shoot["metadata"][member].as_str().unwrap_or("?"));
            format!("Shoot {namespace}/{own}")
        };
        let found = profiles.get(&name, shared);
        let found = found.with_context(|| format!("{}: NamespacedCloudProfile {name:?}", of_shoot()))?;
        let profile = found.with_context(|| {
            format!("{}: no file has CloudProfile {:?}; name one with --profiles", of_shoot(), profiles.needed(&name))
        })?;
        let inputs = Inputs::of_shoot(shoot, profile, Arc::clone(&self.source), shared.providers());
        Ok(Inputs { image_policy: shared.image_policy(), ..inputs })
    }
}

/// Whether a text may hold CloudProfiles: by members that Shoots have not, so that Shoots are not read twice.
fn may_hold_profiles(text: &str) -> bool {
    text.contains("machineTypes") || text.contains("NamespacedCloudProfile") && text.contains("parent")
}

/// A profile that can't be decoded is missing for the Shoots that name it.
fn add_profiles_of(profiles: &mut NamedProfiles, text: &str, shared: &CloudProfiles) {
    if may_hold_profiles(text) {
        drop(add_profiles(profiles, &objects(text).unwrap_or_default(), shared));
    }
}

/// How many of the objects are profiles, which are added.
fn add_profiles(profiles: &mut NamedProfiles, objects: &[Value], shared: &CloudProfiles) -> anyhow::Result<usize> {
    let kinds = ["CloudProfile", "NamespacedCloudProfile"];
    let mut count = 0;
    for profile in objects.iter().filter(|object| kinds.iter().any(|kind| object["kind"] == *kind)) {
        profiles.add(profile.clone(), shared).context("CloudProfile")?;
        count += 1;
    }
    Ok(count)
}
