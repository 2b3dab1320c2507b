//! `explain`: the inputs that determine the machines of a pool.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use k8s_openapi::jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use super::diagnose::live::namespace;
use super::evidence::{Evidence, Reply, no_match};
use super::exit::{self, Exit, wrong_usage};
use super::input::{self, WorkerInput};
use super::preview::shoots::Presume;
use super::terminal::{OutputFormat, complain, one_of, print, print_json_with_items, width};
use decisions::provider::{Providers, WorkerError};
use decisions::worker::plan::desired::{CloudView, DesiredState};
use decisions::worker::request::decode;
use explanations::explain::{Explanation, explain};
use runtime::cluster::seed::Seed;
use runtime::process::threads::block_on;
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

pub(super) fn run(arguments: &ExplainArguments, providers: Providers) -> anyhow::Result<Reply> {
    if arguments.shoot {
        if arguments.seed.is_named() {
            return Err(wrong_usage("--kubeconfig and --context are for --live"));
        }
        return shoot::run(arguments, providers);
    }
    let mut results = Results::default();
    let mut evidence = Evidence::of("Worker");
    for_each_worker(arguments, &mut evidence, |worker, evidence| results.add(arguments, providers, &worker, evidence))?;
    if let Some(pool) = &arguments.pool
        && !results.has_pool
        && results.unexplained.is_empty()
    {
        return Err(no_match("pool", pool, results.pools.iter().map(String::as_str)));
    }
    results.print(arguments.output, &evidence)?;
    let exit = if results.failed || !results.unexplained.is_empty() { Exit::Invalid } else { Exit::Done };
    Ok(Reply::new(evidence, exit))
}

/// Explanations of Workers as text, because the text is smaller than what it is made of.
#[derive(Default)]
struct Results {
    /// Tables, or JSON documents.
    explained: Vec<String>,
    unexplained: Vec<Unexplained>,
    /// Names of all pools.
    pools: BTreeSet<String>,
    /// Whether a pool is explained.
    has_pool: bool,
    /// Whether a pool is invalid.
    failed: bool,
}

impl Results {
    fn add(
        &mut self,
        arguments: &ExplainArguments,
        providers: Providers,
        worker: &WorkerInput,
        evidence: &mut Evidence,
    ) -> anyhow::Result<()> {
        let input = worker.source.to_string();
        self.pools.extend(worker.worker.spec.pools.iter().map(|pool| pool.name.clone()));
        let cloud = if arguments.live { CloudView::Settled } else { worker.cloud_view() };
        let explanation = match explain_worker(worker, cloud, arguments.pool.as_deref(), providers) {
            Ok(explanation) => explanation,
            Err(error) => {
                self.unexplained.push(Unexplained { input, code: error.code(), message: error.to_string() });
                return Ok(());
            }
        };
        evidence.evaluated(1);
        self.has_pool |= !explanation.pools.is_empty();
        self.failed |= explanation.pools.iter().any(|pool| pool.error.is_some());
        self.explained.push(match arguments.output {
            OutputFormat::Json => serde_json::to_string(&Explained { input, explanation })?,
            _ => pool::worker_text(&explanation, width()),
        });
        Ok(())
    }

    fn print(&self, output: OutputFormat, evidence: &Evidence) -> anyhow::Result<()> {
        if output == OutputFormat::Json {
            let document = json!({
                "schema": "explain/v1", "evidence": evidence.document(), "workers": [], "errors": self.unexplained,
            });
            let explained = self.explained.iter().map(|text| Ok(serde_json::from_str::<Value>(text)?));
            return print_json_with_items(&document, "workers", explained);
        }
        for error in &self.unexplained {
            complain(&format!("{}: {}", error.input, error.message));
        }
        for (location, text) in self.explained.iter().enumerate() {
            let separator = if location > 0 { "\n" } else { "" };
            print(&format!("{separator}{text}"))?;
        }
        Ok(())
    }
}

/// Passes on the Workers of the file, or of the shoot namespace in the seed. Only reads the names of Secrets in a seed.
fn for_each_worker(
    arguments: &ExplainArguments,
    evidence: &mut Evidence,
    mut take: impl FnMut(WorkerInput, &mut Evidence) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    if arguments.live {
        return workers_of_seed(arguments, evidence)?.into_iter().try_for_each(|worker| take(worker, evidence));
    }
    if arguments.seed.is_named() {
        return Err(wrong_usage("--kubeconfig and --context are for --live"));
    }
    let mut is_empty = true;
    input::for_each_worker(std::slice::from_ref(&arguments.file), evidence, |worker, evidence| {
        is_empty = false;
        take(worker, evidence)
    })?;
    if is_empty && evidence.is_complete() {
        bail!("{}: no Worker in it", arguments.file.display());
    }
    Ok(())
}

fn workers_of_seed(arguments: &ExplainArguments, evidence: &mut Evidence) -> anyhow::Result<Vec<WorkerInput>> {
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
