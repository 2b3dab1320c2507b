//! `explain`: the inputs that determine the machines of a pool.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use k8s_openapi::jiff::Timestamp;
use serde::Serialize;
use serde_json::json;

use super::diagnose::live::namespace;
use super::evidence::{Answer, Evidence, no_match};
use super::exit::{self, Exit, wrong_usage};
use super::input::{self, WorkerInput};
use super::preview::shoots::Presume;
use super::terminal::{OutputFormat, complain, json, one_of, print, width};
use decisions::provider::{Providers, WorkerError};
use decisions::worker::plan::desired::{CloudView, DesiredState};
use decisions::worker::request::decode;
use explanations::explain::{Explanation, explain};
use runtime::cluster::seed::Seed;
use runtime::process::threads::block_on;
use runtime::reader::files::files;
use wire::api::gardener::ErrorCode;
use wire::api::secret::{SecretContent, Secrets};

mod image;
mod pool;
mod section;
mod shoot;
mod zones;

pub(super) use image::mismatch_text;

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker explain example/azure.yaml
  gardener-extension-worker explain example/azure.yaml --pool services
  gardener-extension-worker explain --shoot shoot.yaml --profiles profiles/        # fields that replace nodes
  gardener-extension-worker explain --live shoot--garden--prod --kubeconfig seed.yaml
  gardener-extension-worker explain -o json bundle.yaml | jq '.workers[].pools[].hashes'

Output is only coloured on a terminal, and never if NO_COLOR is set.",
    &[(Exit::Invalid, "a pool is invalid, and the output explains it")]))]
pub(super) struct ExplainArguments {
    /// Files, bundles or folders of objects (Worker, Cluster, Secrets, live MachineDeployments …), or `-` for standard
    /// input. With --live, the shoot namespace.
    #[arg(required = true, value_name = "FILE")]
    file: PathBuf,
    /// Read from the cluster of the kubeconfig. Only reads the names of Secrets.
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    seed: Seed,
    /// Explain Shoots instead of Workers, as manifests or as stored in the garden. Shows the fields that enter the key
    /// and the classes of each pool, so that changing them replaces nodes.
    #[arg(long, conflicts_with = "live")]
    shoot: bool,
    /// Files or folders with CloudProfiles for --shoot, if they are not next to the Shoots.
    #[arg(long, value_name = "PATH", requires = "shoot")]
    profiles: Vec<PathBuf>,
    /// Settings of the landscape to assume for --shoot, because Shoots don't contain them.
    #[arg(long, value_name = "WHAT", value_enum, value_delimiter = ',', requires = "shoot")]
    presume: Vec<Presume>,
    /// Only explain the pool with this name.
    #[arg(long, value_name = "NAME")]
    pool: Option<String>,
    /// Output format. Tables are for people, and a JSON document is for programs.
    #[arg(short, long, value_parser = one_of(&["table", "json"]), default_value = "table")]
    output: OutputFormat,
}

/// A Worker that can't be explained.
#[derive(Debug, Serialize)]
struct Unexplained {
    /// The file, and the name of the Worker if the file has several.
    input: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<ErrorCode>,
    message: String,
}

/// An explained Worker and its source.
#[derive(Debug, Serialize)]
struct Explained {
    /// The file, and the name of the Worker if the file has several.
    input: String,
    #[serde(flatten)]
    explanation: Explanation,
}

pub(super) fn run(arguments: &ExplainArguments, providers: Providers) -> anyhow::Result<Answer> {
    if arguments.shoot {
        if arguments.seed.is_named() {
            return Err(wrong_usage("--kubeconfig and --context are for --live"));
        }
        return shoot::run(arguments, providers);
    }
    let mut explained = Vec::new();
    let mut unexplained = Vec::new();
    let mut known: Vec<String> = Vec::new();
    let mut evidence = Evidence::of("Worker");
    for worker in workers(arguments, &mut evidence)? {
        let input = worker.source.to_string();
        known.extend(worker.worker.spec.pools.iter().map(|pool| pool.name.clone()));
        let cloud = if arguments.live { CloudView::Settled } else { worker.cloud_view() };
        match explain_worker(&worker, cloud, arguments.pool.as_deref(), providers) {
            Ok(explanation) => {
                evidence.evaluated(1);
                explained.push(Explained { input, explanation });
            }
            Err(error) => unexplained.push(Unexplained { input, code: error.code(), message: error.to_string() }),
        }
    }
    if let Some(pool) = &arguments.pool {
        let found = explained.iter().any(|worker| !worker.explanation.pools.is_empty());
        if !found && unexplained.is_empty() {
            return Err(no_match("pool", pool, known.iter().map(String::as_str)));
        }
    }
    let failed = explained.iter().flat_map(|worker| &worker.explanation.pools).any(|pool| pool.error.is_some());
    match arguments.output {
        OutputFormat::Json => {
            print(&json(&json!({
                "schema": "explain/v1", "evidence": evidence.document(), "workers": explained, "errors": unexplained,
            }))?)?;
        }
        _ => {
            for error in &unexplained {
                complain(&format!("{}: {}", error.input, error.message));
            }
            let width = width();
            let texts = explained.iter().map(|worker| pool::worker_text(&worker.explanation, width));
            print(&texts.collect::<Vec<_>>().join("\n"))?;
        }
    }
    let exit = if failed || !unexplained.is_empty() { Exit::Invalid } else { Exit::Done };
    Ok(Answer::new(evidence, exit))
}

/// The Workers of the file, or of the shoot namespace in the seed. Only reads the names of Secrets in a seed.
fn workers(arguments: &ExplainArguments, evidence: &mut Evidence) -> anyhow::Result<Vec<WorkerInput>> {
    if !arguments.live {
        if arguments.seed.is_named() {
            return Err(wrong_usage("--kubeconfig and --context are for --live"));
        }
        let mut workers = Vec::new();
        for file in evidence.note_skipped(files(std::slice::from_ref(&arguments.file))) {
            match input::workers_of_file(&file) {
                Ok(of_file) => workers.extend(of_file),
                Err(error) => evidence.unread(&error),
            }
        }
        if workers.is_empty() && evidence.is_complete() {
            bail!("{}: no Worker in it", arguments.file.display());
        }
        return Ok(workers);
    }
    let name = arguments.file.to_str().ok_or_else(|| wrong_usage("the namespace is no text"))?;
    let namespace = block_on(namespace(&arguments.seed, name))?;
    namespace.unread.iter().for_each(|unread| evidence.unread_text(unread.clone()));
    let mut secrets = Secrets::default();
    for secret in namespace.objects.iter().filter(|object| object["kind"] == "Secret") {
        let labels = serde_json::from_value(secret["metadata"]["labels"].clone()).unwrap_or_default();
        let secret_name = secret["metadata"]["name"].as_str().unwrap_or_default();
        secrets.insert(name, secret_name, SecretContent::unread(labels));
    }
    let mut workers = input::workers_of_documents(&arguments.file, namespace.objects)?;
    if workers.is_empty() {
        bail!("no Worker in namespace {name:?}");
    }
    workers.iter_mut().for_each(|worker| worker.secrets = secrets.clone());
    Ok(workers)
}

fn explain_worker(
    input: &WorkerInput,
    cloud: CloudView<'_>,
    pool: Option<&str>,
    providers: Providers,
) -> Result<Explanation, WorkerError> {
    let context = decode::context_of(&input.worker, input.cluster.as_ref(), &input.secrets)?;
    let worker_type = &input.worker.spec.worker_type;
    let provider = providers.for_worker_type(worker_type)?;
    let mut explanation = explain(provider, &DesiredState::new(provider, context, cloud)?, &input.live, pool)?;
    explanation.keep_selectable(&input.listed_images, Timestamp::now());
    Ok(explanation)
}
