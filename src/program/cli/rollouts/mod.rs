//! `rollouts`: the pools that roll, wait, are stopped or on hold, what ends that, and the command that changes it.

use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use serde_json::json;

use super::diagnose::{DiagnosedKinds, Found, found};
use super::evidence::{Evidence, Reply};
use super::exit;
use super::forecast::moment;
use super::screen::{Page, Screen};
use super::target::{Given, Reading, given};
use super::terminal::{OBJECT_FORMATS, OutputFormat, document_text, one_of, width_of};
use decisions::provider::Providers;
use explanations::diagnose::{ObjectKind, Surroundings, WorkerRollouts, rollouts};

mod table;

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker rollouts garden/prod --kubeconfig seed.yaml
  gardener-extension-worker rollouts -A --watch                    # all pools of a seed that roll, wait, are stopped or on hold
  gardener-extension-worker rollouts -f bundle.yaml -o json

A name is that of a shoot, its namespace, a Worker, a pool, a machine deployment, a machine or a node.

The command is read-only: to change something, run the kubectl command that it prints.", &[]))]
pub(super) struct RolloutsArguments {
    /// Names of objects, or files with the objects of their namespaces. By default, the namespace of the kubeconfig's
    /// context.
    #[arg(value_name = "NAME|FILE")]
    objects: Vec<PathBuf>,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    screen: Screen,
    /// Day or time to which durations refer, such as the creation time of the files. Defaults to now.
    #[arg(long, value_name = "DATE", value_parser = moment)]
    at: Option<Timestamp>,
    /// Output format. `wide` shows all Workers of a seed, `name` only the names of Workers.
    #[arg(short, long, value_parser = one_of(OBJECT_FORMATS), default_value = "table")]
    output: OutputFormat,
}

pub(super) fn run(arguments: &RolloutsArguments, providers: Providers) -> anyhow::Result<Reply> {
    let given = given(&arguments.objects, &arguments.reading)?;
    arguments.screen.show(given.files.is_empty(), || page(arguments, &given, providers))
}

fn page(arguments: &RolloutsArguments, given: &Given, providers: Providers) -> anyhow::Result<Page> {
    let found = found(&arguments.reading, given, DiagnosedKinds::OfRolls)?;
    let now = arguments.at.unwrap_or_else(Timestamp::now);
    let mut evidence = Evidence::of("Worker");
    let workers = of_workers(&found, providers, now, &mut evidence);
    for unread in found.into_unread() {
        evidence.unread_text(unread);
    }
    let rolling: Vec<&WorkerRollouts> = workers.iter().filter(|worker| !worker.pools.is_empty()).collect();
    let text = match arguments.output {
        OutputFormat::Json | OutputFormat::Yaml => {
            let document = json!({"schema": "rollouts/v1", "evidence": evidence.document(), "workers": rolling});
            document_text(&document, arguments.output)?
        }
        OutputFormat::Name => rolling.iter().map(|worker| format!("{}\n", worker.worker)).collect(),
        format => table::text(&rolling, &evidence, now, width_of(format), format == OutputFormat::Wide),
    };
    Ok(Page { text, result: Reply::new(evidence, exit::Exit::Done) })
}

fn of_workers(found: &Found, providers: Providers, now: Timestamp, evidence: &mut Evidence) -> Vec<WorkerRollouts> {
    let mut workers = Vec::new();
    for (namespace, worker) in found.workers() {
        let surroundings = Surroundings { objects: &namespace.objects, known: &namespace.known, providers, now };
        let name = worker["metadata"]["name"].as_str().unwrap_or_default();
        if !namespace.known.contains(&ObjectKind::MachineDeployment) {
            evidence.unevaluated(format!("{}/{name}: its MachineDeployments are unknown", namespace.name));
            continue;
        }
        match rollouts(worker, surroundings) {
            Ok(mut rollouts) => {
                if let Some(pools) = found.scope.pools(&namespace.name, name) {
                    rollouts.pools.retain(|rollout| pools.contains(rollout.pool.as_str()));
                }
                evidence.evaluated(1);
                rollouts.unread.iter().for_each(|unread| evidence.unread_text(unread.clone()));
                workers.push(rollouts);
            }
            Err(error) => evidence.unevaluated(format!("{}/{name}: {error}", namespace.name)),
        }
    }
    workers
}
