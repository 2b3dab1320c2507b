//! Reads Shoots as inputs of a preview, with the CloudProfiles that they reference.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use anyhow::{Context, bail, ensure};
use clap::ValueEnum;
use jiff::Timestamp;
use serde_json::Value;

use crate::cli::evidence::Evidence;
use crate::cli::in_parallel::in_parallel;
use explanations::preview::{CloudProfiles, Inputs, NamedProfiles, ShootSource};
use profiles::shoot::Reservation;
use runtime::reader::files::{NamedFile, files};
use runtime::reader::objects::objects;

/// Settings of a landscape that its Shoots don't contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Presume {
    /// Reserve kubelet resources by machine type.
    ReservationByMachineType,
    /// Enable node-local DNS for new Shoots.
    NodeLocalDns,
}

/// Reads Shoots and converts them to the inputs of their Workers.
#[derive(Clone)]
pub(in crate::cli) struct ShootReader {
    source: Arc<ShootSource>,
    /// Profiles of `--profiles`, and those already read from the same side.
    profiles: NamedProfiles,
    /// Files that may contain further profiles. They are read on the first request.
    unread: Vec<NamedFile>,
    all: OnceLock<NamedProfiles>,
}

impl ShootReader {
    /// Creates a reader with the CloudProfiles of files or folders.
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

    /// Adds the CloudProfiles among the files of one side. They are only read when a Shoot needs one, because a
    /// landscape of Workers has none. The comparison reports unreadable files.
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

    /// Settings that are not in the Shoots.
    pub(super) fn source(&self) -> &ShootSource {
        &self.source
    }

    /// Settings that affect the result, except the profiles.
    pub(super) fn flags(&self) -> String {
        let ShootSource { reservation, node_local_dns, .. } = &*self.source;
        format!("{reservation:?} {node_local_dns}")
    }

    /// All profiles, including those of unread files.
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

    /// Adds the profiles whose names this reader lacks.
    pub(super) fn over(&self, others: &NamedProfiles) -> Self {
        Self { profiles: others.clone().overlaid_by(&self.profiles), all: OnceLock::new(), ..self.clone() }
    }

    /// Whether both readers provide the same profiles.
    pub(super) fn is_same(&self, other: &Self, shared: &CloudProfiles) -> bool {
        self.profiles(shared).is_same(other.profiles(shared))
    }

    /// Reads the Shoots of a text. CloudProfiles in the same text take precedence.
    pub(in crate::cli) fn shoots_of(&self, text: &str, shared: &CloudProfiles) -> anyhow::Result<Vec<Inputs>> {
        self.shoots_where(text, |_| true, shared)
    }

    /// Reads the Shoots of a file.
    pub(in crate::cli) fn shoots_of_file(
        &self,
        file: &NamedFile,
        shared: &CloudProfiles,
    ) -> anyhow::Result<Vec<Inputs>> {
        self.shoots_of(&file.text()?, shared).with_context(|| file.name())
    }

    /// Like [`shoots_of`](Self::shoots_of), but only reads the selected Shoots.
    pub(super) fn shoots_where(
        &self,
        text: &str,
        is_required: impl Fn(&Value) -> bool,
        shared: &CloudProfiles,
    ) -> anyhow::Result<Vec<Inputs>> {
        let (mut shoots, others): (Vec<Value>, Vec<Value>) =
            objects(text)?.into_iter().partition(|object| object["kind"] == "Shoot");
        shoots.retain(is_required);
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

    /// The inputs of a Shoot, with the profile that it references.
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

/// Whether a text may contain CloudProfiles. Checks for members that Shoots lack, to avoid parsing Shoots twice.
fn may_hold_profiles(text: &str) -> bool {
    text.contains("machineTypes") || text.contains("NamespacedCloudProfile") && text.contains("parent")
}

/// Skips profiles that can't be decoded, so they are missing for the Shoots that reference them.
fn add_profiles_of(profiles: &mut NamedProfiles, text: &str, shared: &CloudProfiles) {
    if may_hold_profiles(text) {
        drop(add_profiles(profiles, &objects(text).unwrap_or_default(), shared));
    }
}

/// Adds the profiles among the objects and returns their number.
fn add_profiles(profiles: &mut NamedProfiles, objects: &[Value], shared: &CloudProfiles) -> anyhow::Result<usize> {
    let kinds = ["CloudProfile", "NamespacedCloudProfile"];
    let mut count = 0;
    for profile in objects.iter().filter(|object| kinds.iter().any(|kind| object["kind"] == *kind)) {
        profiles.add(profile.clone(), shared).context("CloudProfile")?;
        count += 1;
    }
    Ok(count)
}
