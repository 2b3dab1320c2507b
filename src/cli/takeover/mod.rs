//! `takeover check`: may this program take the Workers of a seed over from the Go extension? It reads, and writes nothing.
//!
//! * [`worker`]: what is to be said of one Worker beside what becomes of its pools;
//! * [`writers`]: who else writes: the Go extension, leases, managers of fields;
//! * [`permissions`]: what the controller needs to be allowed;
//! * [`live`], [`survey`]: a seed, or files, as the same picture;
//! * [`table`], [`json`]: the outputs.
//!
//! What becomes of the pools is decided in [`preview`](crate::preview): the objects there are against those that we would
//! write.

use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, Subcommand};

use super::UNREADABLE;
use super::terminal::{OutputFormat, complain, one_of, print, width};
use crate::cluster::seed::Seed;
use crate::controller::served::Served;
use crate::preview::{CloudProfiles, PlacementChange, Verdict};
use crate::provider::Providers;

mod json;
mod live;
mod permissions;
mod survey;
mod table;
mod worker;
mod writers;

use survey::Survey;

/// Exit code where nodes would roll or go.
const ROLLS: u8 = 3;

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  gardener-extension-worker takeover check --kubeconfig seed.yaml")]
pub(super) struct TakeoverArguments {
    #[command(subcommand)]
    command: TakeoverCommand,
}

#[derive(Debug, Subcommand)]
enum TakeoverCommand {
    /// Check whether Workers can be taken over from the Go extension without rolling a node. Reads only.
    Check(CheckArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gardener-extension-worker takeover check --worker-type azure
  gardener-extension-worker takeover check --kubeconfig seed.yaml \\
    --as system:serviceaccount:extension-worker:gardener-extension-worker
  gardener-extension-worker takeover check landscape/ -o json

Exit codes: 0 no node would roll, 3 nodes would roll, be updated in place or go, with the pools named, 1 something can't be
read or planned, is not allowed, or is written by both extensions.")]
struct CheckArguments {
    /// Files of objects (Worker, Cluster, Secrets, machine objects, Deployments, Leases), bundles of them, or folders; `-` is
    /// standard input. Without any: the seed of the kubeconfig.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    seed: Seed,
    /// Ask the seed as this user, such as the controller's service account: system:serviceaccount:NAMESPACE:NAME.
    #[arg(long = "as", value_name = "USER", conflicts_with = "files")]
    user: Option<String>,
    /// Only the Workers of this namespace.
    #[arg(short, long)]
    namespace: Option<String>,
    /// Only Workers of this type; may be given several times. Without it, every type that is supported.
    #[arg(long = "worker-type", value_name = "TYPE", value_delimiter = ',')]
    worker_types: Vec<String>,
    /// Only Workers of these extension classes; one without a class is a shoot's.
    #[arg(long, value_name = "CLASS", value_delimiter = ',', default_value = Served::DEFAULT_CLASS)]
    extension_classes: Vec<String>,
    /// How to print.
    #[arg(short, long, value_parser = one_of(&["table", "json"]), default_value = "table")]
    output: OutputFormat,
    /// In tables: also the Workers of which nothing changes.
    #[arg(short, long)]
    all: bool,
}

pub(super) fn run(arguments: &TakeoverArguments, providers: Providers) -> anyhow::Result<u8> {
    let TakeoverCommand::Check(arguments) = &arguments.command;
    if arguments.seed.is_named() && !arguments.files.is_empty() {
        bail!("--kubeconfig is for a seed: name no file with it");
    }
    let served = Served::new(providers, &arguments.worker_types, &arguments.extension_classes)?;
    let profiles = CloudProfiles::new(providers);
    let namespace = arguments.namespace.as_deref();
    let survey = match arguments.files.as_slice() {
        [] => live::survey(&arguments.seed, arguments.user.as_deref(), namespace, &served, &profiles)?,
        files => survey::of_files(files, namespace, &served, &profiles)?,
    };
    for error in &survey.comparison.errors {
        complain(error);
    }
    let code = code_of(&survey);
    print(&match arguments.output {
        OutputFormat::Json => json::text(&survey, code)?,
        _ => table::text(&survey, code, arguments.all, width()),
    })?;
    Ok(code)
}

/// Nodes that roll are the worst; then what keeps the answer from being complete, or the takeover from working.
fn code_of(survey: &Survey) -> u8 {
    let comparison = &survey.comparison;
    if survey.rolling().next().is_some() {
        return ROLLS;
    }
    let is_planned = |finding: &crate::preview::Finding| finding.severity != crate::preview::Severity::Error;
    let all_planned = comparison.workers.iter().flat_map(|worker| &worker.findings).all(is_planned);
    let is_allowed = survey.permissions.as_ref().is_none_or(|permissions| permissions.missing.is_empty());
    if all_planned && is_allowed && comparison.errors.is_empty() && !survey.writers.both_write() {
        0
    } else {
        UNREADABLE
    }
}

/// Whether nodes of the placement would be replaced, updated or taken away.
fn touches_nodes(placement: &PlacementChange) -> bool {
    placement.verdict.is_roll() || (placement.verdict == Verdict::Delete && placement.nodes.before > 0)
}
