//! `preview`: what a change does to machines before it happens, from files or a cluster to a terminal.
//!
//! * [`pairs`]: which Workers are compared with which;
//! * `git`: files of a revision and of the working tree;
//! * [`live`]: Workers of a cluster as the old side; `live_shoots`: Shoots of a cluster, `stored` in a `garden` or in a seed's `mirror`;
//! * `new_side`, `replacement`: NEW where it is made of OLD;
//! * `shoots`: Shoots as inputs;
//! * `cache`: answers of an earlier run; `capacity_file`: limits of a cloud;
//! * [`groups`]: what many Workers have in common;
//! * [`words`]: causes and totals in words, for all outputs;
//! * [`table`], [`markdown`], [`json`]: the outputs; `save`: what rolls, for the controller.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, ValueEnum};
use jiff::Timestamp;

use super::evidence::{Answer, Evidence};
use super::exit::{self, Exit, wrong_usage};
use super::forecast::moment;
use super::terminal::{OutputFormat, complain, one_of, print, width};
use crate::cluster::seed::Seed;
use crate::preview::{CloudProfiles, FindingKind, Severity, WorkerChange, judge_capacity};
use crate::provider::Providers;
use crate::reader::files::files;
use crate::worker::class_images::ImagePolicy;

mod cache;
mod capacity_file;
mod garden;
mod git;
mod groups;
pub(super) mod json;
pub(super) mod live;
mod live_shoots;
pub(super) mod markdown;
mod mirror;
mod new_side;
pub(super) mod pairs;
pub(super) mod replacement;
mod save;
pub(super) mod shoots;
mod stored;
pub(super) mod table;
pub(super) mod words;

use new_side::NewSide;
use replacement::{Replaced, Replacement};
use shoots::{Presume, ShootReader};

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker preview before.yaml after.yaml
  gardener-extension-worker preview --cloudprofile new-profile.yaml landscape/
  gardener-extension-worker preview --profiles profiles/ shoot-before.yaml shoot-after.yaml
  gardener-extension-worker preview --git origin/main -- shoots/ profiles/            # what a branch does
  gardener-extension-worker preview --live after.yaml -o markdown
  gardener-extension-worker preview --maintenance landscape/                         # what the next windows do
  gardener-extension-worker preview --live --cloudprofile new-profile.yaml -o json
  gardener-extension-worker preview --save rolls.json before.yaml after.yaml         # what the controller compares with
  gardener-extension-worker preview --fail-on delete,hazard,error before/ after/     # a gate that lets rolls pass

Verdicts, for each pool and zone: ROLL (nodes are replaced), IN-PLACE (nodes are updated), SCALE, CREATE, DELETE,
METADATA (objects change, nodes stay), NONE.",
    &[(Exit::Findings, "something changes, and no node is touched"), (Exit::Hazard, ""), (Exit::Roll, ""), (Exit::Delete, ""), (Exit::Invalid, "a pool or a Worker becomes invalid, or the garden would refuse a Shoot")]))]
pub(super) struct PreviewArguments {
    /// OLD and NEW: files of objects (Worker, Cluster, Secrets, live MachineDeployments …), bundles of them, or folders;
    /// `-` is standard input. Workers are matched by namespace and name. Or files of Shoots, as manifests or as they are stored:
    /// their Workers are made as gardenlet would write them.
    ///
    /// With --git: files and folders that count, instead of all below the current folder.
    #[arg(value_name = "OLD NEW", num_args = 0..)]
    inputs: Vec<PathBuf>,
    /// Take OLD from the cluster of the kubeconfig: of a seed its Workers, and its machine objects as they are; without NEW: what a
    /// reconcile would do now. Where NEW has Shoots, it is the garden: its Shoots, and the CloudProfiles that they name.
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    seed: Seed,
    /// With --live: only the Workers or Shoots of this namespace.
    #[arg(short, long, requires = "live")]
    namespace: Option<String>,
    /// Instead of OLD and NEW: OLD is this revision of the git repository of the current folder, NEW the working tree. Shoots, Workers
    /// and CloudProfiles of each side belong together.
    #[arg(long, value_name = "REVISION", conflicts_with_all = ["live", "cloudprofile", "maintenance"])]
    git: Option<String>,
    /// Instead of NEW: OLD with this CloudProfile in every Cluster.
    #[arg(long, value_name = "FILE", alias = "cloud-profile")]
    cloudprofile: Option<PathBuf>,
    /// Instead of NEW: OLD behind the next maintenance window of its shoots. With --cloudprofile: with that CloudProfile.
    #[arg(long)]
    maintenance: bool,
    /// With --maintenance: the first window from this day or time on, such as 2027-03-31T12:00:00Z. Now by default.
    #[arg(long, value_name = "DATE", value_parser = moment, requires = "maintenance")]
    at: Option<Timestamp>,
    /// For Shoots: files or folders with the CloudProfiles that they name, where these are not beside them.
    #[arg(long, value_name = "PATH")]
    profiles: Vec<PathBuf>,
    /// For Shoots: what the landscape does that they do not tell.
    #[arg(long, value_name = "WHAT", value_enum, value_delimiter = ',')]
    presume: Vec<Presume>,
    /// For a controller with --pin-images: a class keeps the image that it was made with until it is replaced.
    #[arg(long)]
    pin_images: bool,
    /// Write what rolls into this file. With the annotation that it has for a Shoot or Worker, the controller says in the condition
    /// RollsAsPlanned whether that is what rolls.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Limits of the cloud: do the machines that come for a time fit? The project's own YAML, or what `az vm list-usage -o json` or
    /// `aws service-quotas list-service-quotas --service-code ec2` print.
    #[arg(long, value_name = "FILE")]
    capacity: Option<PathBuf>,
    /// Folder in which answers are kept, for the next run over files of which few have changed.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["live", "maintenance"])]
    cache: Option<PathBuf>,
    /// For gates: the exit code is 0 unless the change does one of these, or something can't be read.
    #[arg(long, value_name = "KIND", value_enum, value_delimiter = ',')]
    fail_on: Vec<FailOn>,
    /// How to print.
    #[arg(short, long, value_parser = one_of(&["table", "json", "markdown"]), default_value = "table")]
    output: OutputFormat,
    /// In tables and markdown: every Worker by itself. Without it, more than ten are grouped by cause.
    #[arg(short, long)]
    all: bool,
}

/// What a gate fails on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// Nodes are replaced or updated in place.
    Roll,
    /// Machines are deleted without replacement.
    Delete,
    /// There is a hazard; a deletion is one.
    Hazard,
    /// A pool or a Worker becomes invalid.
    Error,
}

/// What was compared, and what that rests on.
#[derive(Debug)]
pub(super) struct Comparison {
    pub(super) workers: Vec<WorkerChange>,
    /// What was read, and what could not be.
    pub(super) evidence: Evidence,
    /// What Workers in files say that no garden would let through, each with its file.
    pub(super) warnings: Vec<String>,
    /// How often `--cloudprofile` took the place of another one.
    pub(super) replaced: Replaced,
}

impl Comparison {
    /// Of no Workers yet.
    pub(super) fn new(evidence: Evidence) -> Self {
        Self { workers: Vec::new(), evidence, warnings: Vec::new(), replaced: Replaced::default() }
    }

    /// Counts the Workers that were compared, and those that could not be.
    pub(super) fn count_evidence(&mut self) {
        for worker in &self.workers {
            match worker.findings.iter().find(|finding| finding.kind == FindingKind::CannotBeJudged) {
                Some(finding) => {
                    let name = format!("{}/{}", worker.namespace, worker.name);
                    self.evidence.unevaluated(format!("{name}: {}", finding.message));
                }
                None => self.evidence.evaluated(1),
            }
        }
    }
}

/// What is compared with what.
enum Sides<'a> {
    Files { old: &'a PathBuf, new: &'a PathBuf },
    Made { old: &'a PathBuf },
    Live { new: Option<&'a PathBuf> },
    Git { base: &'a str, paths: &'a [PathBuf] },
}

fn sides(arguments: &PreviewArguments) -> anyhow::Result<Sides<'_>> {
    if arguments.seed.is_named() && !arguments.live {
        return Err(wrong_usage("--kubeconfig is for --live, and so is --context"));
    }
    let is_made = arguments.cloudprofile.is_some() || arguments.maintenance;
    if let Some(base) = &arguments.git {
        return Ok(Sides::Git { base, paths: &arguments.inputs });
    }
    match (arguments.live, is_made, arguments.inputs.as_slice()) {
        (false, false, [old, new]) => Ok(Sides::Files { old, new }),
        (false, true, [old]) => Ok(Sides::Made { old }),
        (true, _, []) => Ok(Sides::Live { new: None }),
        (true, false, [new]) => Ok(Sides::Live { new: Some(new) }),
        (false, false, _) => {
            Err(wrong_usage("name OLD and NEW, or use --live, --cloudprofile or --maintenance (see --help)"))
        }
        (false, true, _) => {
            Err(wrong_usage("--cloudprofile and --maintenance make NEW themselves: name OLD and nothing else"))
        }
        (true, true, _) => {
            Err(wrong_usage("--cloudprofile and --maintenance make NEW themselves: with --live name no file"))
        }
        (true, false, _) => Err(wrong_usage("--live is OLD: name only NEW")),
    }
}

pub(super) fn run(arguments: &PreviewArguments, providers: Providers) -> anyhow::Result<Answer> {
    let sides = sides(arguments)?;
    let limits = arguments.capacity.as_deref().map(capacity_file::read).transpose()?;
    let image_policy = if arguments.pin_images { ImagePolicy::Pin } else { ImagePolicy::Follow };
    let profiles = CloudProfiles::new(providers).with_image_policy(image_policy);
    let of_shoots = ShootReader::new(&arguments.presume, &arguments.profiles, &profiles)?;
    let replacement = arguments
        .cloudprofile
        .as_deref()
        .map(|path| Replacement::read(path, &of_shoots, &profiles).with_context(|| path.display().to_string()))
        .transpose()?;
    let maintenance = arguments.maintenance.then(|| arguments.at.unwrap_or_else(Timestamp::now));
    let made = NewSide { replacement, maintenance, of_shoots, cache: arguments.cache.clone() };
    let mut comparison = match sides {
        Sides::Files { old, new } => pairs::compare_files(old, Some(new), &made, &profiles)?,
        Sides::Made { old } => pairs::compare_files(old, None, &made, &profiles)?,
        Sides::Git { base, paths } => {
            let evidence = Evidence::of("Worker");
            pairs::compare_units(&git::units(base, paths)?, pairs::Missing::Both, false, evidence, &made, &profiles)?
        }
        Sides::Live { new } => {
            let (seed, namespace) = (&arguments.seed, arguments.namespace.as_deref());
            let mut evidence = Evidence::of("Worker");
            let mut files = new.map(|new| evidence.note_skipped(files(std::slice::from_ref(new))));
            // Standard input can be read once only.
            for file in files.iter_mut().flatten().filter(|file| file.explicit) {
                file.text = Some(file.text()?);
            }
            match files {
                Some(files) if live_shoots::are_shoots(&files) => {
                    live_shoots::compare_shoots(seed, namespace, &files, evidence, &made, &profiles)?
                }
                files => live::compare_live(seed, namespace, files, evidence, &made, &profiles)?,
            }
        }
    };
    comparison.workers.iter_mut().for_each(WorkerChange::keep_only_refusal);
    comparison.count_evidence();
    if let Some(limits) = limits {
        judge_capacity(&limits, &mut comparison.workers);
    }
    for warning in &comparison.warnings {
        complain(&format!("warning: {warning}"));
    }
    if let Some(note) = made.replacement.as_ref().and_then(|replacement| replacement.note(comparison.replaced)) {
        complain(&note);
    }
    if let Some(path) = &arguments.save {
        save::save(path, &comparison)?;
    }
    let exit = exit_of(&comparison, &arguments.fail_on);
    match arguments.output {
        OutputFormat::Markdown => print(&markdown::text(&comparison, arguments.all))?,
        OutputFormat::Json => json::print_document(&comparison, exit.code())?,
        _ => print(&table::text(&comparison, arguments.all, width()))?,
    }
    Ok(Answer::new(comparison.evidence, exit))
}

/// What a preview ends with: the worst of what it has to tell, or of what a gate asks for.
fn exit_of(comparison: &Comparison, fail_on: &[FailOn]) -> Exit {
    let of_files = if comparison.evidence.is_complete() { Exit::Done } else { Exit::Failed };
    let exits = comparison.workers.iter().flat_map(exits_of_worker).chain([of_files]);
    exits.filter(|exit| fail_on.is_empty() || counts(*exit, fail_on)).max().unwrap_or(Exit::Done)
}

/// Whether a gate fails on this. An incomplete preview passes none.
fn counts(exit: Exit, fail_on: &[FailOn]) -> bool {
    let wanted: &[FailOn] = match exit {
        Exit::Failed | Exit::Usage => return true,
        Exit::Done | Exit::Findings => &[],
        Exit::Roll => &[FailOn::Roll],
        // That machines go is a hazard as well.
        Exit::Delete => &[FailOn::Delete, FailOn::Hazard],
        Exit::Hazard => &[FailOn::Hazard],
        Exit::Invalid => &[FailOn::Error],
    };
    wanted.iter().any(|kind| fail_on.contains(kind))
}

fn exits_of_worker(worker: &WorkerChange) -> impl Iterator<Item = Exit> {
    let of_placements = worker.placements.iter().map(|placement| match placement.verdict {
        verdict if verdict.is_roll() => Exit::Roll,
        _ if placement.is_change() => Exit::Findings,
        _ => Exit::Done,
    });
    let of_findings = worker.findings.iter().map(|finding| match (finding.kind, finding.severity) {
        (FindingKind::CannotBeJudged, _) => Exit::Failed,
        (FindingKind::CannotBePlanned | FindingKind::Refused, _) => Exit::Invalid,
        (FindingKind::MachinesDeleted, _) => Exit::Delete,
        (FindingKind::Maintenance, _) => Exit::Findings,
        (_, Severity::Hazard) => Exit::Hazard,
        // A landscape always has some Workers that were invalid before.
        (_, Severity::Error | Severity::Notice) => Exit::Done,
    });
    of_placements.chain(of_findings)
}
