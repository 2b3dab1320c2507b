//! Watches and what they lead to: which Worker is looked at when, and how the end of a pass is written down.
//!
//! Watched are Workers, and everything that machine-controller-manager changes while machines come and go
//! (MachineDeployments, MachineSets, Machines). Each event of the latter leads to the Workers of its namespace; one that
//! waits for nothing costs no request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use futures::StreamExt;
use jiff::Timestamp;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::PartialObjectMeta;
use kube::runtime::controller::{Action, Config};
use kube::runtime::events::{Recorder, Reporter};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{Controller, watcher};
use kube::{Client, Resource, ResourceExt};
use serde_json::{Value, json};
use tracing::{debug, info, info_span, warn};

use tracing::Instrument;

use super::ControllerArguments;
use super::decode_guard::Guarded;
use super::pace::Pace;
use super::retry::Retries;
use super::worker_events;
use crate::api::gardener::{Cluster, Worker};
use crate::api::machine::{Machine, MachineDeployment, MachineSet};
use crate::provider::{Provider, Providers};
use crate::worker::decode::is_shoot_failed;
use crate::worker::delete::delete;
use crate::worker::observe::{self, ObserveError};
use crate::worker::operation::{Decision, FINALIZER, OPERATION_ANNOTATION, Operation, decide, has_finalizer};
use crate::worker::reconcile::{Pass, PassError, reconcile};
use crate::worker::report::{Failure, Outcome, status_patch, with_in_place_updates};

/// The class of Workers that is served; also those without one.
const CLASS: &str = "shoot";

/// What every pass needs.
struct Shared {
    client: Client,
    recorder: Recorder,
    providers: Providers,
    worker_types: Vec<String>,
    retries: Retries,
    pace: Pace,
    written: Written,
}

/// The resource version that this process wrote last, by uid of the Worker: what the watch still shows from before is
/// not acted on.
#[derive(Default)]
struct Written(Mutex<HashMap<String, u64>>);

impl Written {
    fn remember(&self, worker: &Worker) {
        if let (Some(uid), Some(version)) = (worker.uid(), version_of(worker)) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(uid, version);
        }
    }

    fn is_older(&self, worker: &impl Resource) -> bool {
        let uid = worker.meta().uid.as_deref().unwrap_or_default();
        let written = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(uid).copied();
        written.zip(version_of(worker)).is_some_and(|(written, seen)| seen < written)
    }

    fn forget(&self, uid: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }
}

/// Resource versions of one kind are numbers that grow (documented since Kubernetes 1.35, true since ever).
fn version_of(object: &impl Resource) -> Option<u64> {
    object.meta().resource_version.as_deref()?.parse().ok()
}

/// Runs until the process is told to stop.
pub(super) async fn run(client: Client, arguments: &ControllerArguments, providers: Providers) -> anyhow::Result<()> {
    let worker_types = match arguments.worker_types.as_slice() {
        [] => providers.worker_types().map(str::to_owned).collect(),
        given => {
            for worker_type in given {
                anyhow::ensure!(
                    providers.for_worker_type(worker_type).is_ok(),
                    "--worker-type {worker_type}: no such provider"
                );
            }
            given.to_vec()
        }
    };
    info!(worker_types = worker_types.join(","), "starting");
    let reporter = Reporter { controller: "gardener-extension-worker".into(), instance: None };
    let shared = Arc::new(Shared {
        recorder: Recorder::new(client.clone(), reporter),
        client: client.clone(),
        providers,
        worker_types,
        retries: Retries::default(),
        pace: Pace::default(),
        written: Written::default(),
    });
    let workers: Api<Guarded<Worker>> = Api::all(client.clone());
    let controller = Controller::new(workers, watcher::Config::default())
        .with_config(Config::default().concurrency(arguments.worker_max_concurrent_reconciles));
    let store = controller.store();
    controller
        .watches(metadata_of::<MachineDeployment>(&client), watcher::Config::default(), workers_of(&store))
        .watches(metadata_of::<MachineSet>(&client), watcher::Config::default(), workers_of(&store))
        .watches(metadata_of::<Machine>(&client), watcher::Config::default(), workers_of(&store))
        .shutdown_on_signal()
        .run(look_at, on_error, shared)
        .for_each(|result| async {
            if let Err(error) = result {
                debug!(%error, "watch");
            }
        })
        .await;
    info!("stopped");
    Ok(())
}

/// Only the metadata of machine objects is watched: each pass reads what it needs, and an object that can't be decoded
/// doesn't stop the stream.
fn metadata_of<K>(client: &Client) -> Api<PartialObjectMeta<K>>
where
    K: Resource<DynamicType = ()>,
{
    Api::all(client.clone())
}

/// The Workers in the namespace of a machine object.
fn workers_of<K: Resource>(store: &Store<Guarded<Worker>>) -> impl Fn(K) -> Vec<ObjectRef<Guarded<Worker>>> + use<K> {
    let store = store.clone();
    move |object| {
        let namespace = object.meta().namespace.as_deref();
        let state = store.state();
        let of_namespace = state.iter().filter(|worker| worker.meta().namespace.as_deref() == namespace);
        of_namespace.map(|worker| ObjectRef::from_obj(&**worker)).collect()
    }
}

/// Why a pass ended without being written down in the status.
#[derive(Debug, thiserror::Error)]
enum LookError {
    #[error("Worker can't be written: {0}")]
    Write(#[from] kube::Error),
}

async fn look_at(guarded: Arc<Guarded<Worker>>, shared: Arc<Shared>) -> Result<Action, LookError> {
    let namespace = guarded.namespace().unwrap_or_default();
    let span = info_span!("worker", namespace, name = guarded.name_any());
    async {
        match &guarded.object {
            Ok(worker) => look_at_worker(worker, &shared).await,
            Err(reason) => tell_undecodable(&guarded, reason, &shared).await,
        }
    }
    .instrument(span)
    .await
}

fn on_error(guarded: Arc<Guarded<Worker>>, error: &LookError, shared: Arc<Shared>) -> Action {
    let retry = shared.retries.failed(guarded.meta().uid.as_deref().unwrap_or_default(), Instant::now());
    let delay = retry.delay;
    warn!(namespace = guarded.namespace(), name = guarded.name_any(), %error, ?delay, "trying again");
    Action::requeue(delay)
}

async fn look_at_worker(worker: &Worker, shared: &Shared) -> Result<Action, LookError> {
    let Some(provider) = served_provider(worker, shared) else { return Ok(Action::await_change()) };
    if shared.written.is_older(worker) {
        return Ok(Action::await_change());
    }
    let (operation, begins) = match decide(worker) {
        Decision::Nothing => return Ok(Action::await_change()),
        Decision::Begin(operation) => (operation, true),
        Decision::GoOn(operation) => (operation, false),
    };
    let uid = worker.uid().unwrap_or_default();
    // A request is answered at once.
    if let Some(wait) = shared.pace.wait(&uid, Instant::now()).filter(|_| !begins) {
        return Ok(Action::requeue(wait));
    }
    let cluster = observe::cluster(&shared.client, &worker.namespace().unwrap_or_default()).await;
    // Nothing may be done for a shoot that Gardener has given up, not even a request taken off.
    if cluster.as_ref().ok().and_then(Option::as_ref).is_some_and(is_shoot_failed) {
        shared.pace.looked(&uid, Instant::now());
        return Ok(Action::await_change());
    }
    let fresh = if begins { Some(begin(worker, operation, shared).await?) } else { None };
    let worker = fresh.as_ref().unwrap_or(worker);
    if begins {
        info!(operation = operation.as_str(), "operation begins");
        shared.retries.forget(&uid);
    }
    let result = pass(worker, cluster, operation, begins, provider, shared).await;
    shared.pace.looked(&uid, Instant::now());
    finish(worker, operation, result, shared).await
}

/// The provider of a Worker that this process serves.
fn served_provider(worker: &Worker, shared: &Shared) -> Option<&'static dyn Provider> {
    let is_served = worker.spec.class.as_deref().is_none_or(|class| class.is_empty() || class == CLASS)
        && shared.worker_types.contains(&worker.spec.worker_type);
    is_served.then(|| shared.providers.for_worker_type(&worker.spec.worker_type).ok()).flatten()
}

/// Takes the request off the Worker, holds it with the finalizer, and says so in the status: two writes.
async fn begin(worker: &Worker, operation: Operation, shared: &Shared) -> Result<Worker, LookError> {
    let api = workers(worker, shared);
    let name = worker.name_any();
    let mut fresh = None;
    if let Some(patch) = metadata_patch(worker, operation) {
        let written = api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        shared.written.remember(&written);
        fresh = Some(written);
    }
    let worker = fresh.as_ref().unwrap_or(worker);
    let patch = status_patch(worker, operation, &Outcome::Begun, None, Timestamp::now());
    let written = write_status(worker, patch, shared).await?;
    // A beginning always has a patch; without one the Worker is as it was.
    Ok(written.unwrap_or_else(|| worker.clone()))
}

fn metadata_patch(worker: &Worker, operation: Operation) -> Option<Value> {
    let mut metadata = json!({});
    let asked = worker.metadata.annotations.as_ref().and_then(|annotations| annotations.get(OPERATION_ANNOTATION));
    if asked.is_some_and(|asked| asked == "reconcile") {
        metadata["annotations"] = json!({ OPERATION_ANNOTATION: null });
    }
    if operation != Operation::Delete && !has_finalizer(worker) {
        let mut finalizers = worker.metadata.finalizers.clone().unwrap_or_default();
        finalizers.push(FINALIZER.to_owned());
        metadata["finalizers"] = json!(finalizers);
        // A merge patch writes the whole list: nobody else's finalizer may get lost.
        metadata["resourceVersion"] = json!(worker.metadata.resource_version);
    }
    let is_empty = metadata.as_object().is_none_or(serde_json::Map::is_empty);
    (!is_empty).then(|| json!({ "metadata": metadata }))
}

async fn pass(
    worker: &Worker,
    cluster: Result<Option<Cluster>, ObserveError>,
    operation: Operation,
    begins: bool,
    provider: &dyn Provider,
    shared: &Shared,
) -> Result<Pass, PassError> {
    let (client, now) = (&shared.client, Timestamp::now());
    match operation {
        Operation::Create | Operation::Reconcile => reconcile(client, provider, worker, cluster, begins, now).await,
        Operation::Delete => delete(client, provider, worker, cluster, now).await,
        Operation::Migrate | Operation::Restore => {
            let failure =
                Failure::new("this version of gardener-extension-worker can't move Workers between seeds yet");
            Ok(Pass { outcome: Outcome::Failed(failure), published: None, plan: None, look_again: None })
        }
    }
}

/// Writes the end of a pass down and tells when to look again.
async fn finish(
    worker: &Worker,
    operation: Operation,
    result: Result<Pass, PassError>,
    shared: &Shared,
) -> Result<Action, LookError> {
    let uid = worker.uid().unwrap_or_default();
    let pass = match result {
        Ok(pass) => pass,
        Err(error) => Pass { outcome: Outcome::Failed(error.failure()), published: None, plan: None, look_again: None },
    };
    let mut patch = status_patch(worker, operation, &pass.outcome, pass.published.as_ref(), Timestamp::now());
    if let (Some(plan), Outcome::Succeeded) = (&pass.plan, &pass.outcome) {
        patch = with_in_place_updates(worker, plan, patch);
    }
    write_status(worker, patch, shared).await?;
    match &pass.outcome {
        Outcome::Failed(failure) => {
            let retry = shared.retries.failed(&uid, Instant::now());
            let delay = pass.look_again.map_or(retry.delay, |again| again.min(retry.delay));
            if retry.was_due {
                warn!(operation = operation.as_str(), error = failure.message, ?delay, "operation failed");
            }
            return Ok(Action::requeue(delay));
        }
        Outcome::Succeeded => {
            shared.retries.forget(&uid);
            info!(operation = operation.as_str(), "operation succeeded");
            if operation == Operation::Delete {
                release(worker, shared).await?;
            }
        }
        Outcome::Begun | Outcome::Waiting(..) => shared.retries.forget(&uid),
    }
    Ok(pass.look_again.map_or_else(Action::await_change, Action::requeue))
}

async fn write_status(worker: &Worker, patch: Option<Value>, shared: &Shared) -> Result<Option<Worker>, LookError> {
    let Some(patch) = patch else { return Ok(None) };
    let api = workers(worker, shared);
    match api.patch_status(&worker.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await {
        Ok(written) => {
            shared.written.remember(&written);
            Ok(Some(written))
        }
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Lets a deleted Worker go.
async fn release(worker: &Worker, shared: &Shared) -> Result<(), LookError> {
    let api: Api<Worker> = workers(worker, shared);
    let latest = match api.get_opt(&worker.name_any()).await? {
        Some(latest) => latest,
        None => return Ok(()),
    };
    let mut finalizers = latest.metadata.finalizers.clone().unwrap_or_default();
    finalizers.retain(|finalizer| finalizer != FINALIZER);
    let patch = json!({"metadata": {
        "finalizers": finalizers,
        "resourceVersion": latest.metadata.resource_version,
    }});
    match api.patch(&worker.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        Err(error) => return Err(error.into()),
    }
    let uid = worker.uid().unwrap_or_default();
    shared.written.forget(&uid);
    shared.pace.forget(&uid);
    Ok(())
}

fn workers(worker: &Worker, shared: &Shared) -> Api<Worker> {
    Api::namespaced(shared.client.clone(), &worker.namespace().unwrap_or_default())
}

/// A Worker that can't be decoded gets an event and an error in its status; nothing else can be done for it.
async fn tell_undecodable(guarded: &Guarded<Worker>, reason: &str, shared: &Shared) -> Result<Action, LookError> {
    let api: Api<DynamicObject> = Api::namespaced_with(
        shared.client.clone(),
        &guarded.namespace().unwrap_or_default(),
        &kube::api::ApiResource::erase::<Worker>(&()),
    );
    let Some(latest) = api.get_opt(&guarded.name_any()).await? else { return Ok(Action::await_change()) };
    let worker_type = latest.data.pointer("/spec/type").and_then(Value::as_str).unwrap_or_default();
    let description = format!("Error reconciling Worker: the Worker can't be decoded: {reason}");
    let told = latest.data.pointer("/status/lastError/description").and_then(Value::as_str);
    if !shared.worker_types.iter().any(|served| served == worker_type) || told == Some(&description) {
        return Ok(Action::await_change());
    }
    warn!(reason, "Worker can't be decoded");
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let patch = json!({"status": {
        "observedGeneration": guarded.meta().generation,
        "lastOperation": {
            "description": description,
            "lastUpdateTime": now,
            "progress": 50,
            "state": "Error",
            "type": Operation::Reconcile.as_str(),
        },
        "lastError": {
            "description": description,
            "codes": [crate::api::gardener::ErrorCode::ConfigurationProblem],
            "lastUpdateTime": now,
        },
    }});
    api.patch_status(&guarded.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    worker_events::undecodable(&shared.recorder, &guarded.object_ref(&()), reason).await;
    Ok(Action::await_change())
}
