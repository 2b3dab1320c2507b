//! `explain`: the inputs that determine the machines of a pool.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use k8s_openapi::jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use super::diagnose::Namespace;
use super::diagnose::live::{namespace, namespaces_of_workers};
use super::evidence::{Evidence, Reply, no_match};
use super::exit::{self, Exit, warn_unneeded, wrong_usage};
use super::input::{self, WorkerInput};
use super::preview::shoots::Presume;
use super::screen::{Page, Screen};
use super::target::{Fallback, Given, NameIndex, Reading, Scope, client_for, given, live_scope, targets_in_files};
use super::terminal::{OBJECT_FORMATS, OutputFormat, complain, document_text, one_of, print_json_with_items, width_of};
use decisions::provider::{Providers, WorkerError};
use decisions::worker::plan::desired::{CloudView, DesiredState};
use decisions::worker::request::decode;
use explanations::explain::{Explanation, explain};
use runtime::process::threads::block_on;
use runtime::reader::files::{NamedFile, files};
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
  gardener-extension-worker explain shoot.yaml --profiles profiles/                # fields that replace nodes
  gardener-extension-worker explain garden/prod --kubeconfig seed.yaml             # a shoot
  gardener-extension-worker explain shoot--garden--prod/services                   # a pool
  gardener-extension-worker explain -o json bundle.yaml | jq '.workers[].pools[].hashes'

A name is that of a shoot, its namespace, a Worker, a pool, a machine deployment, a machine or a node.",
    &[(Exit::Invalid, "a pool is invalid, and the output explains it")]))]
pub(super) struct ExplainArguments {
    /// Names of objects, or files, bundles or folders of objects (Worker, Cluster, Secrets, live MachineDeployments …, or
    /// Shoots). By default, the namespace of the kubeconfig's context. Only the names of Secrets are read in a cluster.
    #[arg(value_name = "NAME|FILE")]
    objects: Vec<PathBuf>,
    /// Read from the cluster, which is the default for names.
    #[arg(long, hide = true)]
    live: bool,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    screen: Screen,
    /// Explain the Shoots of files that contain Workers as well. Shows the fields that enter the key and the classes of
    /// each pool, so that changing them replaces nodes.
    #[arg(long, conflicts_with = "live")]
    shoot: bool,
    /// Files or folders with CloudProfiles for Shoots, if they are not next to the Shoots.
    #[arg(long, value_name = "PATH")]
    profiles: Vec<PathBuf>,
    /// Settings of the landscape to assume for Shoots, because Shoots don't contain them.
    #[arg(long, value_name = "WHAT", value_enum, value_delimiter = ',')]
    presume: Vec<Presume>,
    /// Only explain the pool with this name.
    #[arg(long, value_name = "NAME")]
    pool: Option<String>,
    /// Output format. `wide` has longer lines, `name` only the names of Workers.
    #[arg(short, long, value_parser = one_of(OBJECT_FORMATS), default_value = "table")]
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
    let mut given = given(&arguments.objects, &arguments.reading)?;
    if arguments.live {
        // Before, the argument of --live was always a name.
        given.names.extend(given.files.drain(..).map(|file| file.display().to_string()));
        warn_unneeded(true, "--live");
    }
    let is_live = given.files.is_empty();
    if arguments.shoot && is_live {
        return Err(wrong_usage("--shoot is for files of Shoots: name a file"));
    }
    arguments.screen.show(is_live, || page(arguments, &given, providers))
}

fn page(arguments: &ExplainArguments, given: &Given, providers: Providers) -> anyhow::Result<Page> {
    let mut results = Results::default();
    let mut evidence = Evidence::of("Worker");
    if given.files.is_empty() {
        for_each_worker_of_seed(arguments, given, &mut evidence, |selected, evidence| {
            results.add(arguments, providers, selected, evidence, true)
        })?;
    } else {
        let files = read_once(evidence.note_skipped(files(&given.files)), &mut evidence);
        let scope = match contents(arguments, given, &files)? {
            Contents::Shoots => return shoot::page(arguments, given, &files, evidence, providers),
            Contents::Workers(scope) => scope,
        };
        let reading = &arguments.reading;
        for_each_worker_of_files(given, reading, &files, &scope, &mut evidence, |selected, evidence| {
            results.add(arguments, providers, selected, evidence, false)
        })?;
    }
    if let Some(pool) = &arguments.pool
        && !results.has_pool
        && results.unexplained.is_empty()
    {
        return Err(no_match("pool", pool, results.pools.iter().map(String::as_str)));
    }
    let text = results.text(arguments, &evidence)?;
    let exit = if results.failed || !results.unexplained.is_empty() { Exit::Invalid } else { Exit::Done };
    Ok(Page { text, result: Reply::new(evidence, exit) })
}

/// Reads standard input, which can be read only once.
fn read_once(mut files: Vec<NamedFile>, evidence: &mut Evidence) -> Vec<NamedFile> {
    files.retain_mut(|file| {
        if file.path != Path::new("-") {
            return true;
        }
        match file.text() {
            Ok(text) => file.text = Some(text),
            Err(error) => {
                evidence.unread(&error);
                return false;
            }
        }
        true
    });
    files
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

/// A Worker to explain.
struct Selected<'a> {
    worker: WorkerInput,
    /// The pools to explain; `None` for all.
    pools: Option<BTreeSet<&'a str>>,
}

impl Results {
    fn add(
        &mut self,
        arguments: &ExplainArguments,
        providers: Providers,
        selected: &Selected<'_>,
        evidence: &mut Evidence,
        is_live: bool,
    ) -> anyhow::Result<()> {
        let worker = &selected.worker;
        let input = worker.source.to_string();
        self.pools.extend(worker.worker.spec.pools.iter().map(|pool| pool.name.clone()));
        let cloud = if is_live { CloudView::Settled } else { worker.cloud_view() };
        let mut explanation = match explain_worker(worker, cloud, arguments.pool.as_deref(), providers) {
            Ok(explanation) => explanation,
            Err(error) => {
                self.unexplained.push(Unexplained { input, code: error.code(), message: error.to_string() });
                return Ok(());
            }
        };
        if let Some(pools) = &selected.pools {
            explanation.pools.retain(|pool| pools.contains(pool.pool.as_str()));
        }
        evidence.evaluated(1);
        self.has_pool |= !explanation.pools.is_empty();
        self.failed |= explanation.pools.iter().any(|pool| pool.error.is_some());
        self.explained.push(match arguments.output {
            OutputFormat::Json | OutputFormat::Yaml => serde_json::to_string(&Explained { input, explanation })?,
            OutputFormat::Name => format!("{}\n", explanation.worker),
            format => pool::worker_text(&explanation, width_of(format)),
        });
        Ok(())
    }

    /// The text to print. Large JSON documents are printed here in parts, unless they are watched.
    fn text(&self, arguments: &ExplainArguments, evidence: &Evidence) -> anyhow::Result<String> {
        let format = arguments.output;
        match format {
            OutputFormat::Json | OutputFormat::Yaml => {
                let mut document = json!({
                    "schema": "explain/v1", "evidence": evidence.document(), "workers": [], "errors": self.unexplained,
                });
                if format == OutputFormat::Json && !arguments.screen.is_watch() {
                    print_json_with_items(&document, "workers", &self.explained, |text| parsed(text))?;
                    return Ok(String::new());
                }
                document["workers"] = self.explained.iter().map(|text| parsed(text)).collect::<anyhow::Result<_>>()?;
                document_text(&document, format)
            }
            _ => {
                for error in &self.unexplained {
                    complain(&format!("{}: {}", error.input, error.message));
                }
                let separator = if format == OutputFormat::Name { "" } else { "\n" };
                Ok(self.explained.join(separator))
            }
        }
    }
}

/// Parses the JSON of an explained Worker.
fn parsed(text: &str) -> anyhow::Result<Value> {
    Ok(serde_json::from_str(text)?)
}

/// What files contain.
enum Contents {
    Shoots,
    Workers(Scope),
}

/// Passes on the selected Workers of files.
fn for_each_worker_of_files(
    given: &Given,
    reading: &Reading,
    files: &[NamedFile],
    scope: &Scope,
    evidence: &mut Evidence,
    mut take: impl FnMut(&Selected<'_>, &mut Evidence) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut is_empty = true;
    let mut namespaces = BTreeSet::new();
    input::for_each_worker_of(files, evidence, |worker, evidence| {
        let [namespace, name] = key(&worker);
        let labels = worker.worker.metadata.labels.as_ref();
        let label = |key: &str| labels.and_then(|labels| labels.get(key)).map(String::as_str);
        let is_selected = reading.selector.as_ref().is_none_or(|selector| selector.selects_by(label));
        if !is_selected || !scope.includes(&namespace, &name) {
            namespaces.insert(namespace);
            return Ok(());
        }
        is_empty = false;
        take(&Selected { worker, pools: scope.pools(&namespace, &name) }, evidence)
    })?;
    if !is_empty || !evidence.is_complete() {
        return Ok(());
    }
    if !namespaces.is_empty() {
        let selected = reading.namespace.as_deref().unwrap_or("(all namespaces)");
        return Err(no_match("Worker in namespace", selected, namespaces.iter().map(String::as_str)));
    }
    let files: Vec<String> = given.files.iter().map(|file| file.display().to_string()).collect();
    bail!("{}: no Worker in it", files.join(", "))
}

fn key(worker: &WorkerInput) -> [String; 2] {
    let metadata = &worker.worker.metadata;
    [&metadata.namespace, &metadata.name].map(|text| text.clone().unwrap_or_default())
}

/// Finds out what the files contain, and which of it the names select.
fn contents(arguments: &ExplainArguments, given: &Given, files: &[NamedFile]) -> anyhow::Result<Contents> {
    if arguments.shoot {
        return Ok(Contents::Shoots);
    }
    let mut index = NameIndex::default();
    let mut has_shoot = false;
    let mut has_worker = false;
    for file in files {
        // The Workers are read later, and so are errors.
        let Ok(objects) = file.objects() else { continue };
        has_shoot |= objects.iter().any(|object| object["kind"] == "Shoot");
        has_worker |= objects.iter().any(|object| object["kind"] == "Worker");
        objects.iter().for_each(|object| index.add(object));
        if has_worker && given.names.is_empty() {
            break;
        }
    }
    if has_shoot && !has_worker {
        return Ok(Contents::Shoots);
    }
    // Without a Worker, the files and what is wrong with them are reported, not the names.
    let names: &[String] = if has_worker { &given.names } else { &[] };
    Ok(Contents::Workers(targets_in_files(&index, &arguments.reading, names)?))
}

/// Passes on the selected Workers of a seed. Only the names of Secrets are read.
fn for_each_worker_of_seed(
    arguments: &ExplainArguments,
    given: &Given,
    evidence: &mut Evidence,
    mut take: impl FnMut(&Selected<'_>, &mut Evidence) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let reading = &arguments.reading;
    let (scope, namespaces) = block_on(async {
        let client = client_for(reading, given).await?;
        let scope = live_scope(&client, reading, &given.names, Fallback::ContextNamespace).await?;
        let names: BTreeSet<String> = match &scope {
            Scope::All => namespaces_of_workers(&client, reading).await?,
            Scope::Targets(targets) => targets.iter().map(|target| target.namespace.clone()).collect(),
        };
        let mut namespaces = Vec::new();
        for name in names {
            namespaces.push(namespace(&client, &name, reading).await?);
        }
        anyhow::Ok((scope, namespaces))
    })?;
    for namespace in namespaces {
        namespace.unread.iter().for_each(|unread| evidence.unread_text(unread.clone()));
        for worker in workers_of(namespace)? {
            let [namespace, name] = key(&worker);
            if scope.includes(&namespace, &name) {
                take(&Selected { worker, pools: scope.pools(&namespace, &name) }, evidence)?;
            }
        }
    }
    Ok(())
}

fn workers_of(namespace: Namespace) -> anyhow::Result<Vec<WorkerInput>> {
    let mut secrets = Secrets::default();
    for secret in namespace.objects.iter().filter(|object| object["kind"] == "Secret") {
        let labels = serde_json::from_value(secret["metadata"]["labels"].clone()).unwrap_or_default();
        let secret_name = secret["metadata"]["name"].as_str().unwrap_or_default();
        secrets.insert(&namespace.name, secret_name, SecretContent::unread(labels));
    }
    let mut workers = input::workers_of_documents(Path::new(&namespace.name), namespace.objects)?;
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
