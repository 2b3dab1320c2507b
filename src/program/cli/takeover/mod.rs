//! `takeover check`: checks whether this program can take over a seed's Workers from the Go extension. `takeover plan`
//! writes the patches for it. Neither changes a cluster.
//!
//! * [`worker`]: findings about one Worker, in addition to the changes of its pools;
//! * [`writers`]: other writers, such as the Go extension, leases and field managers;
//! * [`permissions`]: permissions that the controller needs;
//! * [`live`], [`survey`]: the same data from a seed or from files;
//! * [`table`], [`json`]: the outputs;
//! * [`plan`], [`steps`], [`registration`]: the patches, and how extensions are registered.
//!
//! [`preview`](explanations::preview) determines the changes of the pools, by comparing the existing objects with those that
//! the controller would write.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::evidence::Reply;
use super::exit::{self, Exit, warn_renamed, wrong_usage};
use super::screen::{Page, Screen};
use super::target::{Given, Reading, given};
use super::terminal::{OBJECT_FORMATS, OutputFormat, one_of, width, width_of};
use controllers::controller::run::served::Served;
use decisions::provider::Providers;
use explanations::preview::{CloudProfiles, FindingKind, PlacementChange, Severity, Verdict};

mod json;
mod live;
mod permissions;
mod plan;
mod registration;
mod steps;
mod survey;
mod table;
mod worker;
mod writers;

use survey::Survey;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gardener-extension-worker takeover check --kubeconfig seed.yaml
  gardener-extension-worker takeover plan --kubeconfig seed.yaml --registrations extensions.yaml --to plan")]
pub(super) struct TakeoverArguments {
    #[command(subcommand)]
    command: TakeoverCommand,
}

#[derive(Debug, Subcommand)]
enum TakeoverCommand {
    /// Check whether Workers can be taken over from the Go extension without rolling a node. Read-only.
    Check(CheckArguments),
    /// Write the patches of a takeover for this landscape, each with a command that verifies it and one that undoes it.
    Plan(plan::PlanArguments),
}

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker takeover check --worker-type azure
  gardener-extension-worker takeover check --kubeconfig seed.yaml \\
    --as system:serviceaccount:extension-worker:gardener-extension-worker
  gardener-extension-worker takeover check garden/prod               # one shoot
  gardener-extension-worker takeover check -f landscape/ -o json",
    &[(Exit::Findings, "a permission is missing, or both extensions write"), (Exit::Roll, "nodes would be replaced or updated in place"), (Exit::Delete, "machines would be deleted"), (Exit::Invalid, "")]))]
struct CheckArguments {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    screen: Screen,
    /// Output format. `wide` shows every Worker separately, `name` only the names of Workers whose nodes would be replaced.
    #[arg(short, long, value_parser = one_of(OBJECT_FORMATS), default_value = "table")]
    output: OutputFormat,
    /// Show every Worker separately in tables, including unchanged ones. By default, more than ten are grouped by
    /// cause.
    #[arg(long)]
    all: bool,
    /// Former name of --all.
    #[arg(short = 'a', hide = true)]
    all_rows: bool,
}

/// Selects the Workers.
#[derive(Debug, Args)]
struct Selection {
    /// Names of objects, or files, bundles or folders of objects (Worker, Cluster, Secrets, machine objects, Deployments,
    /// Leases), or `-` for standard input. By default, all Workers in the seed of the kubeconfig.
    #[arg(value_name = "NAME|FILE")]
    objects: Vec<PathBuf>,
    #[command(flatten)]
    reading: Reading,
    /// User to impersonate in the seed, such as the controller's service account system:serviceaccount:NAMESPACE:NAME.
    #[arg(long = "as", value_name = "USER")]
    user: Option<String>,
    /// Worker types to include. Repeatable. By default, all supported types.
    #[arg(long = "worker-type", value_name = "TYPE", value_delimiter = ',')]
    worker_types: Vec<String>,
    /// Extension classes to include. A Worker without a class belongs to the class `shoot`.
    #[arg(long, value_name = "CLASS", value_delimiter = ',', default_value = Served::DEFAULT_CLASS)]
    extension_classes: Vec<String>,
}

impl Selection {
    fn given(&self) -> anyhow::Result<Given> {
        let given = given(&self.objects, &self.reading)?;
        if self.user.is_some() && !given.files.is_empty() {
            return Err(wrong_usage("--as is for a cluster: name no file"));
        }
        Ok(given)
    }

    /// Compares the selected Workers with those that this controller would write.
    fn survey(&self, given: &Given, providers: Providers) -> anyhow::Result<Survey> {
        let served = Served::new(providers, &self.worker_types, &self.extension_classes)?;
        let profiles = CloudProfiles::new(providers);
        match given.files.is_empty() {
            true => live::survey(&self.reading, given, self.user.as_deref(), &served, &profiles),
            false => survey::of_files(&self.reading, given, &served, &profiles),
        }
    }
}

pub(super) fn run(arguments: &TakeoverArguments, providers: Providers) -> anyhow::Result<Reply> {
    match &arguments.command {
        TakeoverCommand::Check(arguments) => check(arguments, providers),
        TakeoverCommand::Plan(arguments) => plan::run(arguments, providers),
    }
}

fn check(arguments: &CheckArguments, providers: Providers) -> anyhow::Result<Reply> {
    warn_renamed(arguments.all_rows, "-a", "--all");
    let given = arguments.selection.given()?;
    arguments.screen.show(given.files.is_empty(), || page(arguments, &given, providers))
}

fn page(arguments: &CheckArguments, given: &Given, providers: Providers) -> anyhow::Result<Page> {
    let survey = arguments.selection.survey(given, providers)?;
    let exit = exit_of(&survey);
    let all = arguments.all || arguments.all_rows;
    let text = match arguments.output {
        OutputFormat::Json | OutputFormat::Yaml => json::text(&survey, exit.code(), arguments.output)?,
        OutputFormat::Name => rolling_names(&survey),
        OutputFormat::Wide => table::text(&survey, exit, true, width_of(OutputFormat::Wide)),
        _ => table::text(&survey, exit, all, width()),
    };
    Ok(Page { text, result: Reply::new(survey.comparison.evidence, exit) })
}

fn rolling_names(survey: &Survey) -> String {
    let names: BTreeSet<String> =
        survey.rolling().map(|(worker, _)| format!("{}/{}\n", worker.namespace, worker.name)).collect();
    names.into_iter().collect()
}

/// The most severe result that prevents a takeover.
fn exit_of(survey: &Survey) -> Exit {
    let comparison = &survey.comparison;
    let of_nodes = survey.rolling().map(|(_, placement)| match placement.verdict {
        Verdict::Delete => Exit::Delete,
        _ => Exit::Roll,
    });
    let errors = comparison.workers.iter().flat_map(|worker| &worker.findings);
    let of_errors = errors.filter(|finding| finding.severity == Severity::Error).map(|finding| match finding.kind {
        FindingKind::CannotBeEvaluated => Exit::Failed,
        _ => Exit::Invalid,
    });
    let lacks_permissions = survey.permissions.as_ref().is_some_and(|permissions| !permissions.missing.is_empty());
    let of_survey = [
        (lacks_permissions || survey.writers.both_write(), Exit::Findings),
        (!comparison.evidence.is_complete(), Exit::Failed),
    ];
    let of_survey = of_survey.into_iter().filter(|(applies, _)| *applies).map(|(_, exit)| exit);
    of_nodes.chain(of_errors).chain(of_survey).max().unwrap_or(Exit::Done)
}

/// Whether nodes of the placement would be replaced, updated or deleted.
fn touches_nodes(placement: &PlacementChange) -> bool {
    placement.verdict.is_roll() || placement.deletes_machines()
}
