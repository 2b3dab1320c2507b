//! `render`: the pure part of a reconcile, from files to the machine objects.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, ValueEnum};
use k8s_openapi::api::core::v1::Secret;
use serde::Serialize;
use serde_json::{Value, json};

use super::input::{self, WorkerInput};
use crate::api::gardener::{ErrorCode, InPlaceUpdates, MachineDeploymentStatus};
use crate::api::gotext::json::to_go_json;
use crate::provider::{WantedDeployment, WorkerError};
use crate::worker::changes::changes;
use crate::worker::cleanup::{MachineController, garbage};
use crate::worker::live::{Live, MachineObjects};
use crate::worker::plan::{Plan, plan};
use crate::worker::report::published_deployments;
use crate::worker::{changes::MachineChanges, decode};

/// Arguments of `render`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  gardener-extension-worker render example/azure.yaml
  gardener-extension-worker render -o result folder-of-bundles | jq .errors

Exit codes: 0 rendered, 1 some pool failed, 2 wrong usage or unreadable input.")]
pub(super) struct RenderArguments {
    /// Files of objects (Worker, Cluster, Secrets, live MachineDeployments …) or bundles of them; folders are walked,
    /// `-` is standard input.
    #[arg(required = true, value_name = "FILE|DIR")]
    inputs: Vec<PathBuf>,
    /// What to print: objects to apply as YAML or JSON, or one JSON line per Worker with all that would be in the cluster.
    #[arg(short, long, value_enum, default_value_t = Output::Yaml)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Yaml,
    Json,
    Result,
}

/// What a Worker's namespace holds after a successful reconcile, and what its status says.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Rendered {
    input: String,
    machine_classes: Vec<Value>,
    machine_class_secrets: Vec<Value>,
    machine_deployment_objects: Vec<Value>,
    machine_deployments: Vec<WantedDeployment>,
    worker_status: RenderedStatus,
    errors: Vec<RenderedError>,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct RenderedStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_status: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    machine_deployments: Vec<MachineDeploymentStatus>,
    machine_deployments_last_update_time_set: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_place_updates: Option<InPlaceUpdates>,
}

#[derive(Debug, Serialize)]
struct RenderedError {
    /// Absent where the whole Worker can't be planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<String>,
    code: Option<ErrorCode>,
    message: String,
}

pub(super) fn run(arguments: &RenderArguments) -> ExitCode {
    let mut exit = 0;
    match render_all(arguments, &mut exit) {
        Ok(()) => ExitCode::from(exit),
        // A reader that has seen enough closes the pipe; that is no failure of ours.
        Err(error) if is_broken_pipe(&error) => ExitCode::from(exit),
        Err(error) => {
            complain(&format!("{error:#}"));
            ExitCode::from(2)
        }
    }
}

fn render_all(arguments: &RenderArguments, exit: &mut u8) -> anyhow::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for file in input::files(&arguments.inputs)? {
        let inputs = match input::workers_of_file(&file) {
            Ok(inputs) => inputs,
            // The other files are rendered all the same.
            Err(error) => {
                complain(&format!("{error:#}"));
                *exit = 2;
                continue;
            }
        };
        for worker in inputs {
            let rendered = render(worker);
            if !rendered.errors.is_empty() {
                *exit = (*exit).max(1);
            }
            print(&rendered, arguments.output, &mut out)?;
        }
    }
    out.flush()?;
    Ok(())
}

fn print(rendered: &Rendered, output: Output, out: &mut impl std::io::Write) -> anyhow::Result<()> {
    if output == Output::Result {
        // Go's form escapes U+2028 and U+2029, which some readers take for line ends.
        writeln!(out, "{}", to_go_json(&serde_json::to_value(rendered)?))?;
        return Ok(());
    }
    for error in &rendered.errors {
        complain(&format!("{}: {}", rendered.input, error.message));
    }
    let objects = [&rendered.machine_class_secrets, &rendered.machine_classes, &rendered.machine_deployment_objects];
    let objects: Vec<&Value> = objects.into_iter().flatten().collect();
    if output == Output::Json {
        serde_json::to_writer_pretty(&mut *out, &json!({"apiVersion": "v1", "kind": "List", "items": objects}))?;
        writeln!(out)?;
    } else {
        for object in objects {
            let text = serde_saphyr::to_string(object).context("an object can't be written as YAML")?;
            write!(out, "---\n{text}")?;
        }
    }
    Ok(())
}

fn render(input: WorkerInput) -> Rendered {
    let source = input.source.to_string();
    match planned(&input) {
        Ok(rendered) => rendered,
        Err(error) => Rendered {
            input: source,
            machine_classes: input.live.classes.into_values().collect(),
            machine_class_secrets: secret_documents(input.live.class_secrets),
            machine_deployment_objects: documents(input.live.deployments),
            machine_deployments: Vec::new(),
            worker_status: RenderedStatus {
                provider_status: input
                    .worker
                    .status
                    .provider_status
                    .and_then(|raw| serde_json::from_str(raw.get()).ok()),
                machine_deployments: input.worker.status.machine_deployments,
                machine_deployments_last_update_time_set: input
                    .worker
                    .status
                    .machine_deployments_last_update_time
                    .is_some(),
                in_place_updates: input.worker.status.in_place_updates,
            },
            errors: vec![RenderedError { pool: None, code: error.code(), message: error.to_string() }],
        },
    }
}

fn planned(input: &WorkerInput) -> Result<Rendered, WorkerError> {
    let worker = &input.worker;
    let cluster = input.cluster.as_ref().ok_or_else(|| WorkerError::ClusterMissing {
        cluster: worker.metadata.namespace.clone().unwrap_or_default(),
    })?;
    let context = decode::context(worker, cluster, &input.secrets)?;
    let plan = plan(context)?;
    let after = after_changes(&changes(&context, &plan, &input.live), &input.live);
    let after = without_garbage(&plan, after);
    let published = published_deployments(&plan, worker, &context.shoot.status.technical_id, &input.live);
    let in_place_updates = plan.in_place_updates();
    Ok(Rendered {
        input: input.source.to_string(),
        machine_classes: after.classes.into_values().collect(),
        machine_class_secrets: secret_documents(after.class_secrets),
        machine_deployment_objects: documents(after.deployments),
        machine_deployments: plan.machines().map(|machine| machine.deployment.clone()).collect(),
        worker_status: RenderedStatus {
            machine_deployments_last_update_time_set: !published.is_empty(),
            machine_deployments: published,
            provider_status: Some(plan.provider_status.clone()),
            in_place_updates: Some(in_place_updates).filter(|updates| !updates.worker_pool_to_hash_map.is_empty()),
        },
        errors: plan
            .errors()
            .map(|error| RenderedError {
                pool: Some(error.pool.clone()),
                code: error.problem.code(),
                message: error.to_string(),
            })
            .collect(),
    })
}

/// The live objects after all writes.
fn after_changes(changes: &[MachineChanges<'_>], live: &MachineObjects) -> MachineObjects {
    let mut after = live.clone();
    // Machine sets and machines of old classes are gone when a reconcile has succeeded.
    after.machine_sets.clear();
    after.machines.clear();
    for change in changes {
        let class_name = &change.machine.deployment.class_name.0;
        if let Some(write) = &change.secret {
            after.class_secrets.insert(class_name.clone(), write.after().clone());
        }
        if let Some(write) = &change.class {
            after.classes.insert(class_name.clone(), write.after().clone());
        }
        if let Some(write) = &change.deployment {
            if let Ok(deployment) = Live::read(write.after().clone()) {
                after.deployments.insert(change.machine.deployment.name.0.clone(), deployment);
            }
        }
    }
    after
}

/// The live objects when nothing unwanted is left.
fn without_garbage(plan: &Plan, mut live: MachineObjects) -> MachineObjects {
    let garbage = garbage(plan, &live, MachineController::Stopped);
    live.deployments.retain(|name, _| !garbage.deployments.contains(name));
    live.classes.retain(|name, _| !garbage.classes.contains(name));
    live.class_secrets.retain(|name, _| !garbage.class_secrets.contains(name));
    live
}

fn documents<T>(objects: BTreeMap<String, Live<T>>) -> Vec<Value> {
    objects.into_values().map(|live| live.document).collect()
}

fn secret_documents(secrets: BTreeMap<String, Secret>) -> Vec<Value> {
    secrets.into_values().map(|secret| json!(secret)).collect()
}

#[expect(clippy::print_stderr, reason = "a command line speaks on stderr")]
pub(super) fn complain(text: &str) {
    eprintln!("{text}");
}

pub(super) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        let json = cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
        io.or(json) == Some(std::io::ErrorKind::BrokenPipe)
    })
}
