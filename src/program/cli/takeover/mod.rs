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

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::evidence::Reply;
use super::exit::{self, Exit, wrong_usage};
use super::terminal::{OutputFormat, one_of, print, width};
use controllers::controller::run::served::Served;
use decisions::provider::Providers;
use explanations::preview::{CloudProfiles, FindingKind, PlacementChange, Severity, Verdict};
use runtime::cluster::seed::Seed;

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
  gardener-extension-worker takeover check landscape/ -o json",
    &[(Exit::Findings, "a permission is missing, or both extensions write"), (Exit::Roll, "nodes would be replaced or updated in place"), (Exit::Delete, "machines would be deleted"), (Exit::Invalid, "")]))]
struct CheckArguments {
    #[command(flatten)]
    selection: Selection,
    /// Output format.
    #[arg(short, long, value_parser = one_of(&["table", "json"]), default_value = "table")]
    output: OutputFormat,
    /// Show every Worker separately in tables, including unchanged ones. By default, more than ten are grouped by
    /// cause.
    #[arg(short, long)]
    all: bool,
}

/// Selects the Workers.
#[derive(Debug, Args)]
struct Selection {
    /// Files, bundles or folders of objects (Worker, Cluster, Secrets, machine objects, Deployments, Leases), or `-`
    /// for standard input. By default, the seed of the kubeconfig.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    seed: Seed,
    /// User to impersonate in the seed, such as the controller's service account system:serviceaccount:NAMESPACE:NAME.
    #[arg(long = "as", value_name = "USER", conflicts_with = "files")]
    user: Option<String>,
    /// Only include the Workers of this namespace.
    #[arg(short, long)]
    namespace: Option<String>,
    /// Worker types to include. Repeatable. By default, all supported types.
    #[arg(long = "worker-type", value_name = "TYPE", value_delimiter = ',')]
    worker_types: Vec<String>,
    /// Extension classes to include. A Worker without a class belongs to the class `shoot`.
    #[arg(long, value_name = "CLASS", value_delimiter = ',', default_value = Served::DEFAULT_CLASS)]
    extension_classes: Vec<String>,
}

impl Selection {
    /// Compares the selected Workers with those that this controller would write.
    fn survey(&self, providers: Providers) -> anyhow::Result<Survey> {
        if self.seed.is_named() && !self.files.is_empty() {
            return Err(wrong_usage("--kubeconfig and --context are for a seed: name no file with it"));
        }
        let served = Served::new(providers, &self.worker_types, &self.extension_classes)?;
        let profiles = CloudProfiles::new(providers);
        let namespace = self.namespace.as_deref();
        match self.files.as_slice() {
            [] => live::survey(&self.seed, self.user.as_deref(), namespace, &served, &profiles),
            files => survey::of_files(files, namespace, &served, &profiles),
        }
    }
}

pub(super) fn run(arguments: &TakeoverArguments, providers: Providers) -> anyhow::Result<Reply> {
    let arguments = match &arguments.command {
        TakeoverCommand::Check(arguments) => arguments,
        TakeoverCommand::Plan(arguments) => return plan::run(arguments, providers),
    };
    let survey = arguments.selection.survey(providers)?;
    let exit = exit_of(&survey);
    print(&match arguments.output {
        OutputFormat::Json => json::text(&survey, exit.code())?,
        _ => table::text(&survey, exit, arguments.all, width()),
    })?;
    Ok(Reply::new(survey.comparison.evidence, exit))
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
