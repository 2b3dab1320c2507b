//! `render`: the pure part of a reconcile, from files to machine objects.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use super::evidence::{Evidence, Reply};
use super::exit::{self, Exit};
use super::input::{WorkerInput, for_each_worker};
use super::terminal::{self, OutputFormat, complain, one_of, print, yaml};
use decisions::provider::{Dependencies, Providers, TargetDeployment, WorkerError};
use decisions::worker::machines::machine_objects::{DigestedObject, LiveDeployment, MachineObjects};
use decisions::worker::plan::Plan;
use decisions::worker::plan::changes::MachineChanges;
use decisions::worker::plan::class_inputs::without_own_annotations;
use decisions::worker::plan::desired::DesiredState;
use decisions::worker::plan::orphans::{MachineControllerManagerState, orphans};
use decisions::worker::request::decode;
use wire::api::gardener::{ErrorCode, InPlaceUpdates, MachineDeploymentStatus};
use wire::api::gotext::json::{DecodeError, to_go_json};

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Example:
  gardener-extension-worker render example/azure.yaml
  gardener-extension-worker render -o result folder-of-bundles | jq .errors
  SOURCE_DATE_EPOCH=0 gardener-extension-worker render example/azure.yaml   # reproducible output",
    &[(Exit::Invalid, "")]))]
pub(super) struct RenderArguments {
    /// Files, bundles or folders of objects (Worker, Cluster, Secrets, live MachineDeployments …), or `-` for standard
    /// input. Folders are searched recursively.
    #[arg(required = true, value_name = "FILE|DIR")]
    inputs: Vec<PathBuf>,
    /// Output format. `yaml` and `json` print objects to apply, and `result` prints a JSON line per Worker with all
    /// resulting objects.
    #[arg(short, long, value_parser = one_of(&["yaml", "json", "result"]), default_value = "yaml")]
    output: OutputFormat,
}

/// Contents of a Worker's namespace and status after a successful reconcile.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rendered {
    /// The file, and the name of the Worker if the file has several.
    pub input: String,
    /// All machine classes, by name.
    pub machine_classes: Vec<Value>,
    /// The Secrets of machine classes, by name.
    pub machine_class_secrets: Vec<Value>,
    /// All machine deployments, by name.
    pub machine_deployment_objects: Vec<Value>,
    /// The provider's target deployments, in the order of pools and zones.
    pub machine_deployments: Vec<TargetDeployment>,
    /// The status of the Worker.
    pub worker_status: RenderedStatus,
    /// Reasons why pools, or the whole Worker, can't be planned.
    pub errors: Vec<RenderedError>,
}

/// Status of a Worker after a successful reconcile. Times are reduced to whether they are set.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RenderedStatus {
    /// The provider's document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_status: Option<Value>,
    /// Bounds for the cluster-autoscaler.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub machine_deployments: Vec<MachineDeploymentStatus>,
    /// Whether the bounds have ever been published.
    pub machine_deployments_last_update_time_set: bool,
    /// Hashes of in-place pools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_place_updates: Option<InPlaceUpdates>,
}

/// Reason why a pool or the whole Worker can't be planned.
#[derive(Debug, Serialize)]
pub struct RenderedError {
    /// Absent if the whole Worker can't be planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Gardener's code, for errors that a user has to fix.
    pub code: Option<ErrorCode>,
    /// Message for people.
    pub message: String,
}

pub(super) fn run(arguments: &RenderArguments, providers: Providers) -> anyhow::Result<Reply> {
    let now = now()?;
    let mut exit = Exit::Done;
    let mut evidence = Evidence::of("Worker");
    let mut names = BTreeSet::new();
    for_each_worker(&arguments.inputs, &mut evidence, |worker, evidence| {
        evidence.evaluated(1);
        let name = (worker.worker.metadata.namespace.clone(), worker.worker.metadata.name.clone());
        let warnings = worker.warnings.iter().map(String::as_str);
        for warning in warnings.chain((!names.insert(name)).then_some("several Workers have this name")) {
            complain(&format!("warning: {}: {warning}", worker.source));
        }
        let rendered = match arguments.output {
            OutputFormat::Result => render(worker, providers),
            _ => render_at(worker, providers, now),
        };
        if !rendered.errors.is_empty() {
            exit = exit.max(Exit::Invalid);
        }
        if arguments.output != OutputFormat::Result {
            rendered.errors.iter().for_each(|error| complain(&format!("{}: {}", rendered.input, error.message)));
        }
        Ok(print(&text(&rendered, arguments.output)?)?)
    })?;
    if names.is_empty() && evidence.is_complete() {
        let inputs = arguments.inputs.iter().map(|input| input.display().to_string());
        bail!("{}: no Worker in it", inputs.collect::<Vec<_>>().join(", "));
    }
    Ok(Reply::new(evidence, exit))
}

fn text(rendered: &Rendered, output: OutputFormat) -> anyhow::Result<String> {
    // Secrets are last, so that they scroll off neither the classes nor the deployments.
    let objects = [&rendered.machine_classes, &rendered.machine_deployment_objects, &rendered.machine_class_secrets];
    let is_applied = |object: &&Value| object["metadata"]["deletionTimestamp"].is_null();
    let objects: Vec<&Value> = objects.into_iter().flatten().filter(is_applied).collect();
    match output {
        OutputFormat::Result => Ok(format!("{}\n", to_go_json(&serde_json::to_value(rendered)?))),
        OutputFormat::Json => terminal::json(&json!({"apiVersion": "v1", "kind": "List", "items": objects})),
        _ => objects.into_iter().map(|object| Ok(format!("---\n{}", yaml(object)?))).collect(),
    }
}

/// Renders one Worker and returns all fields that `-o result` prints.
#[must_use]
pub fn render(input: WorkerInput, providers: Providers) -> Rendered {
    // The time only affects annotations that this project owns.
    let mut rendered = render_at(input, providers, Timestamp::UNIX_EPOCH);
    rendered.machine_deployment_objects.iter_mut().for_each(without_own_annotations);
    rendered
}

fn render_at(input: WorkerInput, providers: Providers, now: Timestamp) -> Rendered {
    planned(&input, providers, now).unwrap_or_else(|error| unplanned(input, &error))
}

/// A Worker that can't be planned. All its objects stay unchanged.
fn unplanned(input: WorkerInput, error: &WorkerError) -> Rendered {
    let status = input.worker.status;
    let mut errors = vec![RenderedError { pool: None, code: error.code(), message: error.to_string() }];
    let provider_status = status.provider_status.as_ref().map(|raw| serde_json::from_str(raw.get())).transpose();
    let provider_status = provider_status.unwrap_or_else(|error| {
        errors.push(RenderedError { pool: None, code: None, message: format!("status.providerStatus: {error}") });
        None
    });
    Rendered {
        input: input.source.to_string(),
        machine_classes: documents_of(input.live.classes),
        machine_class_secrets: documents_of(input.live.class_secrets),
        machine_deployment_objects: documents(input.live.deployments),
        machine_deployments: Vec::new(),
        worker_status: RenderedStatus {
            provider_status,
            machine_deployments: status.machine_deployments,
            machine_deployments_last_update_time_set: status.machine_deployments_last_update_time.is_some(),
            in_place_updates: status.in_place_updates,
        },
        errors,
    }
}

fn planned(input: &WorkerInput, providers: Providers, now: Timestamp) -> Result<Rendered, WorkerError> {
    let worker = &input.worker;
    let context = decode::context_of(worker, input.cluster.as_ref(), &input.secrets)?;
    let provider = providers.for_worker_type(&worker.spec.worker_type)?;
    let desired = DesiredState::new(provider, context, input.cloud_view())?.with_bounds_of_pools();
    let plan = &desired.plan;
    let mut errors = errors(plan, desired.context().dependencies);
    let after = after_changes(&desired.drift(&input.live, now).changes, &input.live, &mut errors);
    let after = without_orphans(plan, after);
    let in_place_updates = plan.in_place_updates();
    Ok(Rendered {
        input: input.source.to_string(),
        machine_classes: after.classes,
        machine_class_secrets: after.class_secrets,
        machine_deployment_objects: after.deployments,
        machine_deployments: plan.machines().map(|machine| machine.deployment.clone()).collect(),
        worker_status: RenderedStatus {
            machine_deployments_last_update_time_set: plan.machines().next().is_some()
                || worker.status.machine_deployments_last_update_time.is_some(),
            machine_deployments: desired.machine_deployments(&input.live),
            provider_status: Some(plan.provider_status.clone()),
            in_place_updates: Some(in_place_updates).filter(|updates| !updates.worker_pool_to_hash_map.is_empty()),
        },
        errors,
    })
}

/// Time that is recorded in new classes. `SOURCE_DATE_EPOCH` makes the output reproducible.
fn now() -> anyhow::Result<Timestamp> {
    const VARIABLE: &str = "SOURCE_DATE_EPOCH";
    let Ok(text) = std::env::var(VARIABLE) else { return Ok(Timestamp::now()) };
    let seconds = text.parse().with_context(|| format!("{VARIABLE}={text:?} is no number of seconds"))?;
    Timestamp::from_second(seconds).with_context(|| format!("{VARIABLE}={text:?} is no time"))
}

fn errors(plan: &Plan, dependencies: Option<&Dependencies>) -> Vec<RenderedError> {
    let of_pools = plan.errors().map(|error| RenderedError {
        pool: Some(error.pool.clone()),
        code: error.problem.code(),
        message: error.to_string(),
    });
    let of_cleanup = dependencies
        .and_then(|dependencies| dependencies.cleanup_failure.clone())
        .map(|message| RenderedError { pool: None, code: None, message });
    of_pools.chain(of_cleanup).collect()
}

/// The live objects after all writes. Unreadable objects become errors of their pool.
fn after_changes(
    changes: &[MachineChanges<'_>],
    live: &MachineObjects,
    errors: &mut Vec<RenderedError>,
) -> MachineObjects {
    let mut after = live.clone();
    // A successful reconcile leaves no machine sets or machines of old classes.
    after.machine_sets.clear();
    after.machines.clear();
    for change in changes {
        let class_name = &change.machine.deployment.class_name.0;
        if let Some(write) = &change.secret {
            after.class_secrets.insert(class_name.clone(), DigestedObject::secret(write.after().clone()));
        }
        let mut unreadable = Vec::new();
        if let Some(write) = &change.class {
            let class = DigestedObject::class(write.after().clone());
            unreadable.extend(insert(&mut after.classes, "MachineClass", class_name, class));
        }
        if let Some(write) = &change.deployment {
            let deployment = LiveDeployment::read_without_codes(write.after().clone());
            let name = &change.machine.deployment.name.0;
            unreadable.extend(insert(&mut after.deployments, "MachineDeployment", name, deployment));
        }
        let pool = Some(change.machine.deployment.pool_name.clone());
        errors.extend(unreadable.into_iter().map(|message| RenderedError { pool: pool.clone(), code: None, message }));
    }
    after
}

/// Inserts an object, or returns why it can't be decoded.
fn insert<T>(
    objects: &mut BTreeMap<String, T>,
    kind: &str,
    name: &str,
    object: Result<T, DecodeError>,
) -> Option<String> {
    match object {
        Ok(object) => objects.insert(name.to_owned(), object).and(None),
        Err(error) => Some(format!("{kind} {name}: {error}")),
    }
}

/// Placeholder for a deletion time, because rendering does not read the clock.
const DELETED: &str = "<set>";

/// Documents that remain after deleting orphans.
struct Remaining {
    classes: Vec<Value>,
    class_secrets: Vec<Value>,
    deployments: Vec<Value>,
}

fn without_orphans(plan: &Plan, mut live: MachineObjects) -> Remaining {
    let unwanted = orphans(plan, &live, MachineControllerManagerState::Stopped).deployments;
    // machine-controller-manager removes its finalizer from a deployment once its machines are deleted.
    live.deployments.retain(|name, _| !unwanted.contains(name));
    let garbage = orphans(plan, &live, MachineControllerManagerState::Stopped);
    Remaining {
        classes: after_deletion(live.classes, &garbage.classes),
        class_secrets: after_deletion(live.class_secrets, &garbage.class_secrets),
        deployments: documents(live.deployments),
    }
}

/// Removes deleted objects, except those with finalizers.
fn after_deletion<T: Serialize>(
    objects: BTreeMap<String, DigestedObject<T>>,
    deleted: &BTreeSet<String>,
) -> Vec<Value> {
    objects
        .into_iter()
        .filter_map(|(name, object)| {
            let mut document = json!(object.whole?);
            if deleted.contains(&name) {
                let metadata = &mut document["metadata"];
                if metadata["finalizers"].as_array().is_none_or(Vec::is_empty) {
                    return None;
                }
                metadata["deletionTimestamp"] = DELETED.into();
            }
            Some(document)
        })
        .collect()
}

fn documents(objects: BTreeMap<String, LiveDeployment>) -> Vec<Value> {
    objects.into_values().map(|live| live.document).collect()
}

fn documents_of<T: Serialize>(objects: BTreeMap<String, DigestedObject<T>>) -> Vec<Value> {
    objects.into_values().filter_map(|object| Some(json!(object.whole?))).collect()
}
