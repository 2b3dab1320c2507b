//! `preview`: the effect of a change on machines before it happens, from files or a cluster.
//!
//! * [`pairs`]: matches the Workers of both sides;
//! * `git`: files of a revision and of the working tree;
//! * [`live`]: Workers of a cluster as the old side; `live_shoots`: Shoots of a cluster, from a `garden` or the
//!   `mirror` in a seed;
//! * `new_side`, `replacement`: NEW when it is derived from OLD;
//! * `shoots`: Shoots as inputs;
//! * `cache`: results of an earlier run; `capacity_file`: limits of a cloud;
//! * [`groups`]: groups Workers with the same changes;
//! * [`words`]: texts for causes and totals in all outputs;
//! * [`table`], [`markdown`], [`json`]: the outputs; `save`: planned rolls for the controller.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, ValueEnum};
use jiff::Timestamp;

use super::evidence::{Evidence, Reply};
use super::exit::{self, Exit, warn_renamed, wrong_usage};
use super::forecast::moment;
use super::screen::{Page, Screen};
use super::target::{Given, Reading, given};
use super::terminal::{OutputFormat, complain, document_text, one_of, width, width_of};
use decisions::provider::Providers;
use decisions::worker::plan::class_images::ImagePolicy;
use explanations::preview::{CloudProfiles, FindingKind, Severity, WorkerChange, evaluate_capacity, hold_rolls};
use runtime::reader::files::files;

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
  gardener-extension-worker preview --cloudprofile-new new-profile.yaml landscape/
  gardener-extension-worker preview --profiles profiles/ shoot-before.yaml shoot-after.yaml
  gardener-extension-worker preview --git origin/main -- shoots/ profiles/            # effect of a branch
  gardener-extension-worker preview --live after.yaml -o markdown
  gardener-extension-worker preview --maintenance landscape/                         # effect of the next windows
  gardener-extension-worker preview --live --cloudprofile-new new-profile.yaml -o json
  gardener-extension-worker preview --save rolls.json before.yaml after.yaml         # plan for the controller
  gardener-extension-worker preview --fail-on delete,hazard,error before/ after/     # a gate that allows rolls

The verdict of each pool and zone is ROLL (nodes are replaced), IN-PLACE (nodes are updated), SCALE, CREATE, DELETE,
METADATA (objects change, nodes stay) or NONE.",
    &[(Exit::Findings, "there are changes that affect no node"), (Exit::Hazard, ""), (Exit::Roll, ""), (Exit::Delete, ""), (Exit::Invalid, "a pool or a Worker becomes invalid, or the garden would refuse a Shoot")]))]
pub(super) struct PreviewArguments {
    /// OLD and NEW as files, bundles or folders of objects (Worker, Cluster, Secrets, live MachineDeployments …), or
    /// `-` for standard input. Workers are matched by namespace and name. For files of Shoots, as manifests or as
    /// stored in the garden, the Workers are generated as gardenlet would write them.
    ///
    /// Names of objects instead of files select Workers of the cluster as OLD. With --git, files and folders to
    /// include. Defaults to all files below the current folder.
    #[arg(value_name = "OLD NEW", num_args = 0..)]
    inputs: Vec<PathBuf>,
    /// Use the cluster of the kubeconfig as OLD. A seed provides its Workers and current machine objects. Without NEW,
    /// the preview shows the next reconcile. If NEW contains Shoots, the cluster is the garden, with its Shoots and the
    /// CloudProfiles that they reference. This is the default with names, -n, -A and -f, which is NEW.
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    screen: Screen,
    /// Compare a revision of the current folder's git repository as OLD with the working tree as NEW. Shoots, Workers
    /// and CloudProfiles of the same side are used together.
    #[arg(long, value_name = "REVISION", conflicts_with_all = ["live", "cloudprofile_new", "cloudprofile", "maintenance"])]
    git: Option<String>,
    /// Use OLD with this CloudProfile in every Cluster as NEW.
    #[arg(long, value_name = "FILE")]
    cloudprofile_new: Option<PathBuf>,
    /// Former name of --cloudprofile-new.
    #[arg(long, value_name = "FILE", alias = "cloud-profile", hide = true, conflicts_with = "cloudprofile_new")]
    cloudprofile: Option<PathBuf>,
    /// Apply the next maintenance window to OLD and use the result as NEW. Can be combined with --cloudprofile-new.
    #[arg(long)]
    maintenance: bool,
    /// Day or time from which to search for the maintenance window, such as 2027-03-31T12:00:00Z. Defaults to now.
    #[arg(long, value_name = "DATE", value_parser = moment, requires = "maintenance")]
    at: Option<Timestamp>,
    /// Files or folders with CloudProfiles for Shoots, if they are not next to the Shoots.
    #[arg(long, value_name = "PATH")]
    profiles: Vec<PathBuf>,
    /// Settings of the landscape to assume for Shoots, because Shoots don't contain them.
    #[arg(long, value_name = "WHAT", value_enum, value_delimiter = ',')]
    presume: Vec<Presume>,
    /// Preview a controller with --pin-images, where a class keeps its image until the class is replaced.
    #[arg(long)]
    pin_images: bool,
    /// Preview a controller with --roll-budget, which holds rolls that no owner requested.
    #[arg(long, value_name = "POOLS")]
    roll_budget: Option<u32>,
    /// Write the planned rolls to this file. Add its annotation to a Shoot or Worker, and the controller compares
    /// actual rolls with the plan in the condition RollsAsPlanned.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// File with cloud limits, to check that surge machines fit. Accepts the project's own YAML, and the output of `az
    /// vm list-usage -o json` or `aws service-quotas list-service-quotas --service-code ec2`.
    #[arg(long, value_name = "FILE")]
    capacity: Option<PathBuf>,
    /// Folder that caches results, so that the next run only evaluates changed files.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["live", "maintenance"])]
    cache: Option<PathBuf>,
    /// Only exit with a nonzero code if the change has one of these effects, or an input can't be read.
    #[arg(long, value_name = "KIND", value_enum, value_delimiter = ',')]
    fail_on: Vec<FailOn>,
    /// Output format. `wide` shows every Worker separately, `name` only the names of changed Workers.
    #[arg(short, long, value_parser = one_of(&["table", "wide", "json", "yaml", "name", "markdown"]), default_value = "table")]
    output: OutputFormat,
    /// Show every Worker separately in tables and Markdown, and in tables the source of each estimate. By default, more
    /// than ten Workers are grouped by cause.
    #[arg(long)]
    all: bool,
    /// Former name of --all.
    #[arg(short = 'a', hide = true)]
    all_rows: bool,
}

impl PreviewArguments {
    /// The CloudProfile that replaces others.
    fn replacement(&self) -> Option<&Path> {
        self.cloudprofile_new.as_deref().or(self.cloudprofile.as_deref())
    }
}

/// Effects on which `--fail-on` fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// Nodes are replaced or updated in place.
    Roll,
    /// Machines are deleted without replacement.
    Delete,
    /// The change has a hazard, such as a deletion.
    Hazard,
    /// A pool or a Worker becomes invalid.
    Error,
}

/// The compared Workers and the evidence for the result.
#[derive(Debug)]
pub(super) struct Comparison {
    pub(super) workers: Vec<WorkerChange>,
    /// Inputs that were read, and inputs that could not be read.
    pub(super) evidence: Evidence,
    /// Values in Workers that Gardener would reject, each with its file.
    pub(super) warnings: Vec<String>,
    /// Number of CloudProfiles that `--cloudprofile-new` replaced.
    pub(super) replaced: Replaced,
}

impl Comparison {
    /// Creates a comparison without Workers.
    pub(super) fn new(evidence: Evidence) -> Self {
        Self { workers: Vec::new(), evidence, warnings: Vec::new(), replaced: Replaced::default() }
    }

    /// Counts the compared Workers, and those that could not be compared.
    pub(super) fn count_evidence(&mut self) {
        for worker in &self.workers {
            match worker.findings.iter().find(|finding| finding.kind == FindingKind::CannotBeEvaluated) {
                Some(finding) => {
                    let name = format!("{}/{}", worker.namespace, worker.name);
                    self.evidence.unevaluated_in_result(format!("{name}: {}", finding.message));
                }
                None => self.evidence.evaluated(1),
            }
        }
    }
}

/// The two sides of the comparison.
#[derive(Debug)]
enum Sides<'a> {
    Files { old: &'a PathBuf, new: &'a PathBuf },
    Made { old: &'a PathBuf },
    Live { new: &'a [PathBuf] },
    Git { base: &'a str, paths: &'a [PathBuf] },
}

fn sides<'a>(arguments: &'a PreviewArguments, given: &'a Given) -> anyhow::Result<Sides<'a>> {
    let reading = &arguments.reading;
    let is_made = arguments.replacement().is_some() || arguments.maintenance;
    if let Some(base) = &arguments.git {
        return Ok(Sides::Git { base, paths: &arguments.inputs });
    }
    let selects_objects = !given.names.is_empty() || reading.all_namespaces || reading.namespace.is_some();
    let is_live = arguments.live || selects_objects || !reading.files.is_empty();
    if reading.seed.is_named() && !is_live {
        return Err(wrong_usage("--kubeconfig is for --live, and so is --context"));
    }
    match (is_live, is_made, given.files.as_slice()) {
        (false, false, [old, new]) => Ok(Sides::Files { old, new }),
        (false, true, [old]) => Ok(Sides::Made { old }),
        (true, _, []) => Ok(Sides::Live { new: &[] }),
        (true, false, [_]) => Ok(Sides::Live { new: &given.files }),
        (true, false, new) if new.len() == reading.files.len() => Ok(Sides::Live { new }),
        (false, false, _) => {
            Err(wrong_usage("name OLD and NEW, or use --live, --cloudprofile-new or --maintenance (see --help)"))
        }
        (false, true, _) => {
            Err(wrong_usage("--cloudprofile-new and --maintenance make NEW themselves: name OLD and nothing else"))
        }
        (true, true, _) => {
            Err(wrong_usage("--cloudprofile-new and --maintenance make NEW themselves: with --live name no file"))
        }
        (true, false, _) => Err(wrong_usage("--live is OLD: name only NEW")),
    }
}

pub(super) fn run(arguments: &PreviewArguments, providers: Providers) -> anyhow::Result<Reply> {
    warn_renamed(arguments.cloudprofile.is_some(), "--cloudprofile", "--cloudprofile-new");
    warn_renamed(arguments.all_rows, "-a", "--all");
    let given = match arguments.git {
        Some(_) => Given::default(),
        None => separate(arguments)?,
    };
    let sides = sides(arguments, &given)?;
    let is_live = matches!(sides, Sides::Live { .. });
    if arguments.screen.is_watch() && given.files.iter().any(|file| file == Path::new("-")) {
        return Err(wrong_usage("--watch reads NEW again and again, and standard input can be read only once"));
    }
    arguments.screen.show(is_live, || page(arguments, &given.names, &sides, providers))
}

/// Separates names from files. Neither a kubeconfig nor a namespace excludes NEW. OLD and NEW are both files or both names.
fn separate(arguments: &PreviewArguments) -> anyhow::Result<Given> {
    let Reading { files, .. } = arguments.reading.clone();
    let mut separated = given(&arguments.inputs, &Reading { files, ..Reading::default() })?;
    let has_file = separated.files.len() > arguments.reading.files.len();
    let selects_objects = arguments.live || arguments.reading.all_namespaces || arguments.reading.namespace.is_some();
    if has_file && !selects_objects {
        separated = Given { names: Vec::new(), files: arguments.inputs.clone() };
    }
    Ok(separated)
}

fn page(
    arguments: &PreviewArguments,
    names: &[String],
    sides: &Sides<'_>,
    providers: Providers,
) -> anyhow::Result<Page> {
    let limits = arguments.capacity.as_deref().map(capacity_file::read).transpose()?;
    let image_policy = if arguments.pin_images { ImagePolicy::Pin } else { ImagePolicy::Follow };
    let profiles = CloudProfiles::new(providers).with_image_policy(image_policy);
    let of_shoots = ShootReader::new(&arguments.presume, &arguments.profiles, &profiles)?;
    let replacement = arguments
        .replacement()
        .map(|path| Replacement::read(path, &of_shoots, &profiles).with_context(|| path.display().to_string()))
        .transpose()?;
    let maintenance = arguments.maintenance.then(|| arguments.at.unwrap_or_else(Timestamp::now));
    let made = NewSide { replacement, maintenance, of_shoots, cache: arguments.cache.clone() };
    let mut comparison = compared(arguments, names, sides, &made, &profiles)?;
    comparison.workers.iter_mut().for_each(WorkerChange::keep_only_refusal);
    comparison.count_evidence();
    if let Some(limits) = limits {
        evaluate_capacity(&limits, &mut comparison.workers);
    }
    if let Some(limit) = arguments.roll_budget {
        hold_rolls(limit, &mut comparison.workers);
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
    let text = text(arguments, &comparison, exit)?;
    Ok(Page { text, result: Reply::new(comparison.evidence, exit) })
}

fn compared(
    arguments: &PreviewArguments,
    names: &[String],
    sides: &Sides<'_>,
    made: &NewSide,
    profiles: &CloudProfiles,
) -> anyhow::Result<Comparison> {
    match *sides {
        Sides::Files { old, new } => pairs::compare_files(old, Some(new), made, profiles),
        Sides::Made { old } => pairs::compare_files(old, None, made, profiles),
        Sides::Git { base, paths } => {
            let evidence = Evidence::of("Worker");
            pairs::compare_units(&git::units(base, paths)?, pairs::Missing::Both, false, evidence, made, profiles)
        }
        Sides::Live { new } => {
            let mut evidence = Evidence::of("Worker");
            let mut files = if new.is_empty() { None } else { Some(evidence.note_skipped(files(new))) };
            // Standard input can only be read once.
            for file in files.iter_mut().flatten().filter(|file| file.explicit) {
                file.text = Some(file.text()?);
            }
            let reading = &arguments.reading;
            match files {
                Some(files) if live_shoots::are_shoots(&files) => {
                    live_shoots::compare_shoots(reading, names, &files, evidence, made, profiles)
                }
                files => live::compare_live(reading, names, files, evidence, made, profiles),
            }
        }
    }
}

/// The text to print. Large JSON documents are printed here in parts, unless they are watched.
fn text(arguments: &PreviewArguments, comparison: &Comparison, exit: Exit) -> anyhow::Result<String> {
    let all = arguments.all || arguments.all_rows;
    Ok(match arguments.output {
        OutputFormat::Markdown => markdown::text(comparison, all),
        OutputFormat::Json if !arguments.screen.is_watch() => {
            json::print_document(comparison, exit.code())?;
            String::new()
        }
        OutputFormat::Json | OutputFormat::Yaml => {
            document_text(&json::document(comparison, exit.code())?, arguments.output)?
        }
        OutputFormat::Name => changed_names(comparison),
        OutputFormat::Wide => table::text(comparison, true, width_of(OutputFormat::Wide)),
        _ => table::text(comparison, all, width()),
    })
}

fn changed_names(comparison: &Comparison) -> String {
    let changed = comparison.workers.iter().filter(|worker| exits_of_worker(worker).any(|exit| exit != Exit::Done));
    changed.map(|worker| format!("{}/{}\n", worker.namespace, worker.name)).collect()
}

/// Exit of the preview. It is the most severe result, or the most severe one that `--fail-on` selects.
fn exit_of(comparison: &Comparison, fail_on: &[FailOn]) -> Exit {
    let of_files = if comparison.evidence.is_complete() { Exit::Done } else { Exit::Failed };
    let exits = comparison.workers.iter().flat_map(exits_of_worker).chain([of_files]);
    exits.filter(|exit| fail_on.is_empty() || counts(*exit, fail_on)).max().unwrap_or(Exit::Done)
}

/// Whether `--fail-on` selects this exit. An incomplete preview always fails.
fn counts(exit: Exit, fail_on: &[FailOn]) -> bool {
    let required: &[FailOn] = match exit {
        Exit::Failed | Exit::Usage => return true,
        Exit::Done | Exit::Findings => &[],
        Exit::Roll => &[FailOn::Roll],
        // A deletion is also a hazard.
        Exit::Delete => &[FailOn::Delete, FailOn::Hazard],
        Exit::Hazard => &[FailOn::Hazard],
        Exit::Invalid => &[FailOn::Error],
    };
    required.iter().any(|kind| fail_on.contains(kind))
}

fn exits_of_worker(worker: &WorkerChange) -> impl Iterator<Item = Exit> {
    let of_placements = worker.placements.iter().map(|placement| match placement.verdict {
        verdict if verdict.is_roll() => Exit::Roll,
        _ if placement.is_change() => Exit::Findings,
        _ => Exit::Done,
    });
    let of_findings = worker.findings.iter().map(|finding| match (finding.kind, finding.severity) {
        (FindingKind::CannotBeEvaluated, _) => Exit::Failed,
        (FindingKind::CannotBePlanned | FindingKind::Refused, _) => Exit::Invalid,
        (FindingKind::MachinesDeleted, _) => Exit::Delete,
        (FindingKind::Maintenance, _) => Exit::Findings,
        (_, Severity::Hazard) => Exit::Hazard,
        // A landscape always has some Workers that were invalid before the change.
        (_, Severity::Error | Severity::Notice) => Exit::Done,
    });
    of_placements.chain(of_findings)
}
