//! `diagnose`: the reasons why a Worker is not ready, on one page.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::evidence::{Evidence, Reply};
use super::exit::{self, Exit, warn_unneeded, wrong_usage};
use super::forecast::moment;
use super::screen::{Page, Screen};
use super::target::{Given, Reading, Scope, given};
use super::terminal::{OBJECT_FORMATS, OutputFormat, document_text, one_of, width_of};
use decisions::provider::Providers;
use explanations::diagnose::{Diagnosis, FindingKind, ObjectKind, Surroundings, diagnose};
use runtime::process::threads::block_on;
use table::Detail;

mod files;
pub(super) mod live;
mod overview;
mod requests;
mod seed;
pub(super) mod table;

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker diagnose garden/prod --kubeconfig seed.yaml
  gardener-extension-worker diagnose shoot--garden--prod --watch
  gardener-extension-worker diagnose -A -o wide                    # Workers that need attention, the worst first
  gardener-extension-worker diagnose -f bundle.yaml -o json

A name is that of a shoot, its namespace, a Worker, a pool, a machine deployment, a machine or a node.

To create a bundle for a colleague, without Secrets:
  kubectl -n NAMESPACE get workers,machinedeployments,machinesets,machines,machineclasses,deployments -o yaml > bundle.yaml
  echo --- >> bundle.yaml
  kubectl get cluster NAMESPACE -o yaml >> bundle.yaml

The command is read-only. It only reads the names of Secrets.",
    &[(Exit::Findings, "a Worker is not ready"), (Exit::Invalid, "")]))]
pub(super) struct DiagnoseArguments {
    /// Names of objects, or files with the objects of their namespaces. By default, the namespace of the kubeconfig's
    /// context.
    #[arg(value_name = "NAME|FILE")]
    objects: Vec<PathBuf>,
    /// Read from the cluster, which is the default.
    #[arg(long, hide = true)]
    live: bool,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    screen: Screen,
    /// Day or time to which durations refer, such as the creation time of the files. Defaults to now.
    #[arg(long, value_name = "DATE", value_parser = moment)]
    at: Option<Timestamp>,
    /// Output format. `wide` has longer lines and all machines, `name` only the names of Workers.
    #[arg(short, long, value_parser = one_of(OBJECT_FORMATS), default_value = "table")]
    output: OutputFormat,
}

/// Known objects of a namespace.
#[derive(Default)]
pub(super) struct Namespace {
    pub(super) name: String,
    pub(super) objects: Vec<Value>,
    pub(super) known: BTreeSet<ObjectKind>,
    /// Inputs that could not be read, with the reason.
    pub(super) unread: Vec<String>,
}

impl Namespace {
    fn keep_workers(&mut self, is_selected: impl Fn(&Value) -> bool) {
        self.objects.retain(|object| object["kind"] != "Worker" || is_selected(object));
    }

    fn has_worker(&self) -> bool {
        self.objects.iter().any(|object| object["kind"] == "Worker")
    }
}

/// The kinds of objects that a command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DiagnosedKinds {
    /// All that explain why a Worker is not ready.
    All,
    /// Those that show rolls.
    OfRolls,
}

/// The selected objects.
pub(super) struct Found {
    namespaces: Vec<Namespace>,
    pub(super) scope: Scope,
    /// Inputs that could not be read, with the reason.
    unread: Vec<String>,
}

pub(super) fn run(arguments: &DiagnoseArguments, providers: Providers) -> anyhow::Result<Reply> {
    let given = given(&arguments.objects, &arguments.reading)?;
    if arguments.live && !given.files.is_empty() {
        return Err(wrong_usage("--live cannot be used with files"));
    }
    warn_unneeded(arguments.live, "--live");
    arguments.screen.show(given.files.is_empty(), || page(arguments, &given, providers))
}

impl Found {
    /// The selected Workers, each with its namespace.
    pub(super) fn workers(&self) -> impl Iterator<Item = (&Namespace, &Value)> {
        let workers = self.namespaces.iter().flat_map(|namespace| {
            let workers = namespace.objects.iter().filter(|object| object["kind"] == "Worker");
            workers.map(move |worker| (namespace, worker))
        });
        workers.filter(|(namespace, worker)| {
            self.scope.includes(&namespace.name, worker["metadata"]["name"].as_str().unwrap_or_default())
        })
    }

    /// Inputs that could not be read, with the reason.
    pub(super) fn into_unread(self) -> Vec<String> {
        self.namespaces.into_iter().flat_map(|namespace| namespace.unread).chain(self.unread).collect()
    }
}

/// Reads what names and flags select.
pub(super) fn found(reading: &Reading, given: &Given, kinds: DiagnosedKinds) -> anyhow::Result<Found> {
    if given.files.is_empty() { block_on(live::read(reading, given, kinds)) } else { files::read(reading, given) }
}

fn page(arguments: &DiagnoseArguments, given: &Given, providers: Providers) -> anyhow::Result<Page> {
    let found = found(&arguments.reading, given, DiagnosedKinds::All)?;
    let now = arguments.at.unwrap_or_else(Timestamp::now);
    let diagnoses = diagnoses(&found, providers, now);
    let mut evidence = Evidence::of("Worker");
    evidence.evaluated(diagnoses.len());
    let unread = found.into_unread();
    unread.iter().for_each(|unread| evidence.unread_text(unread.clone()));
    let width = width_of(arguments.output);
    let text = match arguments.output {
        OutputFormat::Json | OutputFormat::Yaml => {
            let document = json!({
                "schema": "diagnose/v1", "evidence": evidence.document(), "workers": diagnoses, "unread": unread,
            });
            document_text(&document, arguments.output)?
        }
        OutputFormat::Name => diagnoses.iter().map(|diagnosis| format!("{}\n", diagnosis.worker)).collect(),
        format if arguments.reading.all_namespaces => {
            overview::text(&diagnoses, now, width, format == OutputFormat::Wide)
        }
        format => {
            let detail = if format == OutputFormat::Wide { Detail::Wide } else { Detail::Page };
            let pages = diagnoses.iter().map(|diagnosis| table::text(diagnosis, now, width, detail));
            pages.collect::<Vec<_>>().join("\n")
        }
    };
    let exit = diagnoses.iter().map(exit_of).max().unwrap_or(Exit::Done);
    Ok(Page { text, result: Reply::new(evidence, exit) })
}

fn diagnoses(found: &Found, providers: Providers, now: Timestamp) -> Vec<Diagnosis> {
    let mut diagnoses = Vec::new();
    for (namespace, worker) in found.workers() {
        let surroundings = Surroundings { objects: &namespace.objects, known: &namespace.known, providers, now };
        let name = worker["metadata"]["name"].as_str().unwrap_or_default();
        let mut diagnosis = diagnose(worker, surroundings);
        if let Some(pools) = found.scope.pools(&namespace.name, name) {
            diagnosis.keep_pools(&pools);
        }
        diagnoses.push(diagnosis);
    }
    diagnoses
}

fn exit_of(diagnosis: &Diagnosis) -> Exit {
    let invalid = [FindingKind::Undecodable, FindingKind::PoolInvalid, FindingKind::ImageNotResolved];
    match diagnosis {
        Diagnosis { findings, .. } if findings.iter().any(|finding| invalid.contains(&finding.kind)) => Exit::Invalid,
        Diagnosis { ready: false, .. } => Exit::Findings,
        _ => Exit::Done,
    }
}
