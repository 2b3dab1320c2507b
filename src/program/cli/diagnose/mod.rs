//! `diagnose`: the reasons why a Worker is not ready, on one page.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::evidence::{Evidence, Reply, no_match};
use super::exit::{self, Exit, wrong_usage};
use super::forecast::moment;
use super::terminal::{OutputFormat, complain, json, one_of, print, width};
use decisions::provider::Providers;
use explanations::diagnose::{Diagnosis, FindingKind, ObjectKind, Surroundings, diagnose};
use runtime::cluster::seed::Seed;
use runtime::process::threads::block_on;
use runtime::reader::files::{NamedFile, files};
use runtime::reader::objects::{Entry, for_each_object};

pub(super) mod live;
mod table;

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker diagnose shoot--garden--prod --kubeconfig seed.yaml
  gardener-extension-worker diagnose shoot--garden--prod bundle.yaml -o json

To create a bundle for a colleague, without Secrets:
  kubectl -n NAMESPACE get workers,clusters/NAMESPACE,machinedeployments,machinesets,machines,machineclasses,\\
  deployments/machine-controller-manager -o yaml > bundle.yaml

The command is read-only. It only reads the names of Secrets.",
    &[(Exit::Findings, "a Worker is not ready"), (Exit::Invalid, "")]))]
pub(super) struct DiagnoseArguments {
    /// Shoot namespace in the seed.
    #[arg(value_name = "NAMESPACE")]
    namespace: String,
    /// Files or folders with the objects of the namespace, or `-` for standard input. By default, objects are read from
    /// the cluster.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Read from the cluster of the kubeconfig. This is the default without files.
    #[arg(long, conflicts_with = "files")]
    live: bool,
    #[command(flatten)]
    seed: Seed,
    /// Day or time to which durations refer, such as the creation time of the files. Defaults to now.
    #[arg(long, value_name = "DATE", value_parser = moment)]
    at: Option<Timestamp>,
    /// Output format. A page is for people, and a JSON document is for programs.
    #[arg(short, long, value_parser = one_of(&["table", "json"]), default_value = "table")]
    output: OutputFormat,
}

/// Known objects of a namespace.
#[derive(Default)]
pub(super) struct Namespace {
    pub(super) objects: Vec<Value>,
    known: BTreeSet<ObjectKind>,
    /// Inputs that could not be read, with the reason.
    pub(super) unread: Vec<String>,
    /// Namespaces of all Workers that were read, including other namespaces.
    pub(super) namespaces: BTreeSet<String>,
}

pub(super) fn run(arguments: &DiagnoseArguments, providers: Providers) -> anyhow::Result<Reply> {
    if arguments.seed.is_named() && !arguments.files.is_empty() {
        return Err(wrong_usage("--kubeconfig and --context are for a cluster: name no file"));
    }
    let namespace = if arguments.files.is_empty() {
        block_on(live::namespace(&arguments.seed, &arguments.namespace))?
    } else {
        of_files(&arguments.files, &arguments.namespace)
    };
    let now = arguments.at.unwrap_or_else(Timestamp::now);
    let surroundings = Surroundings { objects: &namespace.objects, known: &namespace.known, providers, now };
    let workers = namespace.objects.iter().filter(|object| object["kind"] == "Worker");
    let diagnoses: Vec<Diagnosis> = workers.map(|worker| diagnose(worker, surroundings)).collect();
    let mut evidence = Evidence::of("Worker");
    evidence.evaluated(diagnoses.len());
    namespace.unread.iter().for_each(|unread| evidence.unread_text(unread.clone()));
    if diagnoses.is_empty() {
        namespace.unread.iter().for_each(|unread| complain(unread));
        let known = namespace.namespaces.iter().map(String::as_str);
        return Err(no_match("Worker in namespace", &arguments.namespace, known));
    }
    print(&match arguments.output {
        OutputFormat::Json => json(&json!({
            "schema": "diagnose/v1", "evidence": evidence.document(), "workers": diagnoses, "unread": namespace.unread,
        }))?,
        _ => diagnoses.iter().map(|diagnosis| table::text(diagnosis, now, width())).collect::<Vec<_>>().join("\n"),
    })?;
    let exit = diagnoses.iter().map(exit_of).max().unwrap_or(Exit::Done);
    Ok(Reply::new(evidence, exit))
}

fn exit_of(diagnosis: &Diagnosis) -> Exit {
    let invalid = [FindingKind::Undecodable, FindingKind::PoolInvalid, FindingKind::ImageNotResolved];
    match diagnosis {
        Diagnosis { findings, .. } if findings.iter().any(|finding| invalid.contains(&finding.kind)) => Exit::Invalid,
        Diagnosis { ready: false, .. } => Exit::Findings,
        _ => Exit::Done,
    }
}

/// Reads the objects of a namespace from files. A kind is known if it has at least one object, because files
/// need not contain all kinds.
fn of_files(paths: &[PathBuf], name: &str) -> Namespace {
    let mut namespace = Namespace::default();
    let mut evidence = Evidence::of("object");
    for file in evidence.note_skipped(files(paths)) {
        match of_file(&file, name) {
            Ok((objects, namespaces)) => {
                namespace.objects.extend(objects);
                namespace.namespaces.extend(namespaces);
            }
            Err(error) => evidence.unread(&error),
        }
    }
    namespace.unread.extend(evidence.problems().cloned());
    let kinds: BTreeSet<&str> = namespace.objects.iter().filter_map(|object| object["kind"].as_str()).collect();
    namespace.known = ObjectKind::ALL.iter().filter(|kind| kinds.contains(kind.as_str())).copied().collect();
    namespace
}

/// The objects of the namespace in a file, and the namespaces of all its Workers.
fn of_file(file: &NamedFile, name: &str) -> anyhow::Result<(Vec<Value>, BTreeSet<String>)> {
    let mut objects = Vec::new();
    let mut namespaces = BTreeSet::new();
    let text = file.text()?;
    let read = for_each_object(&text, &mut |entry| {
        let Entry::Object(object) = entry else { return };
        if object["kind"] == "Worker"
            && let Some(namespace) = object["metadata"]["namespace"].as_str()
        {
            namespaces.insert(namespace.to_owned());
        }
        if is_of(&object, name) {
            objects.push(object);
        }
    });
    read.with_context(|| file.name())?;
    Ok((objects, namespaces))
}

fn is_of(object: &Value, namespace: &str) -> bool {
    let metadata = &object["metadata"];
    metadata["namespace"] == namespace || object["kind"] == "Cluster" && metadata["name"] == namespace
}
