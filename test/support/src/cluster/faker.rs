//! Fakes machine-controller-manager for tests with thousands of machines whose behaviour is irrelevant.
//!
//! It brings a MachineDeployment to the final state: a MachineSet for its class, none for earlier classes, and a
//! healthy status. It creates no Nodes, and Machines only on request.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::jiff::Timestamp;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher;
use kube::{Client, Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::task::JoinHandle;

use super::faked_machines;

/// machine-controller-manager's finalizer: a MachineDeployment is deleted after its MachineSets.
const FINALIZER: &str = "machine.sapcloud.io/machine-controller-manager";

/// A running faker. Dropping it stops it.
pub struct Faker {
    task: JoinHandle<()>,
}

impl Faker {
    /// Starts it in the current runtime, for one namespace or all. `client` should act as [`super::FAKER`].
    ///
    /// A MachineDeployment with a new class becomes healthy `after` this time. Until then, its status reports a roll in
    /// progress.
    pub fn start(client: Client, namespace: Option<&str>, after: Duration) -> Self {
        Self::start_with(client, namespace, after, false)
    }

    /// Also creates a Machine per replica, and does nothing in namespaces where machine-controller-manager has no
    /// replicas.
    pub fn start_with_machines(client: Client, namespace: Option<&str>, after: Duration) -> Self {
        Self::start_with(client, namespace, after, true)
    }

    fn start_with(client: Client, namespace: Option<&str>, after: Duration, creates_machines: bool) -> Self {
        let [deployments, sets] = ["MachineDeployment", "MachineSet"].map(resource);
        let api = |resource: &ApiResource| -> Api<DynamicObject> {
            match namespace {
                Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
                None => Api::all_with(client.clone(), resource),
            }
        };
        let scaled = match namespace {
            Some(namespace) => Api::namespaced(client.clone(), namespace),
            None => Api::all(client.clone()),
        };
        let controller = Controller::new_with(api(&deployments), watcher::Config::default(), deployments.clone())
            .with_config(Config::default().concurrency(32))
            .trigger_backoff(Soon)
            .owns_with(api(&sets), sets.clone(), watcher::Config::default());
        let scaled_down = Arc::<ScaledDown>::default();
        let controller = if creates_machines { follow_scaling(controller, scaled, &scaled_down) } else { controller };
        let context = Context {
            client: client.clone(),
            deployments,
            sets,
            after,
            creates_machines,
            scaled_down,
            seen: Mutex::default(),
        };
        let context = Arc::new(context);
        let outcomes = controller.run(reconcile, retry, context);
        Self { task: tokio::spawn(outcomes.for_each(async |_| {})) }
    }
}

impl Drop for Faker {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(super) fn resource(kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("machine.sapcloud.io", "v1alpha1", kind))
}

/// Short backoff for failed watches. kube's default grows to half a minute, so no machines would be created for that
/// long after an outage.
struct Soon;

impl Iterator for Soon {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(Duration::from_millis(100))
    }
}

impl Backoff for Soon {
    fn reset(&mut self) {}
}

struct Context {
    client: Client,
    deployments: ApiResource,
    sets: ApiResource,
    after: Duration,
    creates_machines: bool,
    scaled_down: Arc<ScaledDown>,
    /// When the current class of a MachineDeployment (by UID) was first observed.
    seen: Mutex<HashMap<String, (Value, Instant)>>,
}

impl Context {
    /// Remaining time until machines of this class become healthy.
    fn remaining(&self, deployment: &DynamicObject) -> Duration {
        let class = class(deployment);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = seen.entry(deployment.uid().unwrap_or_default()).or_insert_with(|| (class.clone(), Instant::now()));
        if entry.0 != *class {
            *entry = (class.clone(), Instant::now());
        }
        self.after.saturating_sub(entry.1.elapsed())
    }

    /// Creates and deletes Machines until a set has this number, unless Machines are disabled.
    async fn machines(&self, set: &DynamicObject, count: i64) -> kube::Result<()> {
        if !self.creates_machines {
            return Ok(());
        }
        let namespace = set.namespace().unwrap_or_default();
        let status = json!({"observedGeneration": set.metadata.generation, "replicas": count});
        if set.data["status"] == status {
            // The status is written last, and no other program creates or deletes machines.
            return Ok(());
        }
        let api = Api::namespaced_with(self.client.clone(), &namespace, &resource("Machine"));
        faked_machines::keep(&api, set, count).await?;
        let sets: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &namespace, &self.sets);
        let patch = Patch::Merge(json!({ "status": status }));
        deleted(sets.patch_status(&set.name_any(), &PatchParams::default(), &patch).await)
    }
}

/// Namespaces in which machine-controller-manager is scaled to zero.
#[derive(Default)]
struct ScaledDown(Mutex<HashSet<String>>);

impl ScaledDown {
    fn set(&self, namespace: &str, scaled_down: bool) {
        let mut namespaces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if scaled_down {
            namespaces.insert(namespace.to_owned())
        } else {
            namespaces.remove(namespace)
        };
    }

    fn is(&self, namespace: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(namespace)
    }
}

/// Watches the replicas of machine-controller-manager, and reconciles a namespace when they change.
fn follow_scaling(
    controller: Controller<DynamicObject>,
    deployments: Api<Deployment>,
    scaled_down: &Arc<ScaledDown>,
) -> Controller<DynamicObject> {
    let (store, scaled_down) = (controller.store(), Arc::clone(scaled_down));
    let only = watcher::Config::default().fields("metadata.name=machine-controller-manager");
    controller.watches(deployments, only, move |deployment: Deployment| {
        let namespace = deployment.namespace().unwrap_or_default();
        scaled_down.set(&namespace, deployment.spec.is_some_and(|spec| spec.replicas == Some(0)));
        let mut of_namespace = store.state();
        of_namespace.retain(|object| object.namespace().as_ref() == Some(&namespace));
        of_namespace.into_iter().map(|object| ObjectRef::from_obj_with(&*object, resource("MachineDeployment")))
    })
}

async fn reconcile(deployment: Arc<DynamicObject>, context: Arc<Context>) -> kube::Result<Action> {
    let namespace = deployment.namespace().unwrap_or_default();
    if context.scaled_down.is(&namespace) {
        return Ok(Action::await_change());
    }
    let deployments: Api<DynamicObject> =
        Api::namespaced_with(context.client.clone(), &namespace, &context.deployments);
    let sets: Api<DynamicObject> = Api::namespaced_with(context.client.clone(), &namespace, &context.sets);
    let name = deployment.name_any();

    let owned = owned_sets(&deployment, &sets).await?;
    if deployment.metadata.deletion_timestamp.is_some() {
        for set in &owned {
            context.machines(set, 0).await?;
            deleted(sets.delete(&set.name_any(), &DeleteParams::default()).await)?;
        }
        set_finalizers(&deployments, &deployment, false).await?;
        return Ok(Action::await_change());
    }
    if !set_finalizers(&deployments, &deployment, true).await? {
        // A set created now would remain, because there is no garbage collector.
        return Ok(Action::await_change());
    }

    let expected = machine_set(&deployment);
    match owned.iter().find(|set| class(set) == class(&expected)) {
        // The new set's event triggers the next reconcile.
        None => exists(sets.create(&PostParams::default(), &expected).await)?,
        Some(set) => {
            let mut set = set.clone();
            if set.data["spec"]["replicas"] != expected.data["spec"]["replicas"] {
                let patch = json!({"spec": {"replicas": expected.data["spec"]["replicas"]}});
                let Some(scaled) =
                    found(sets.patch(&set.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await)?
                else {
                    return Ok(Action::await_change());
                };
                // The set's status must reflect the change before the deployment's status reports completion.
                set = scaled;
            }
            context.machines(&set, expected.data["spec"]["replicas"].as_i64().unwrap_or_default()).await?;
        }
    }
    let remaining = context.remaining(&deployment);
    let healthy = remaining.is_zero();
    if healthy {
        for old in owned.iter().filter(|set| class(set) != class(&expected)) {
            context.machines(old, 0).await?;
            deleted(sets.delete(&old.name_any(), &DeleteParams::default()).await)?;
        }
    }
    let status = status(&deployment, healthy);
    if differs(&deployment.data["status"], &status) {
        let patch = Patch::Merge(json!({"status": status}));
        deleted(deployments.patch_status(&name, &PatchParams::default(), &patch).await)?;
    }
    Ok(if healthy { Action::await_change() } else { Action::requeue(remaining) })
}

fn retry(_: Arc<DynamicObject>, _: &kube::Error, _: Arc<Context>) -> Action {
    Action::requeue(Duration::from_millis(200))
}

/// MachineSets of a deployment, found by its selector. Adopts sets without an owner.
async fn owned_sets(deployment: &DynamicObject, sets: &Api<DynamicObject>) -> kube::Result<Vec<DynamicObject>> {
    let labels = deployment.data["spec"]["selector"]["matchLabels"].as_object().into_iter().flatten();
    let selector: Vec<String> = labels.filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?))).collect();
    let found = sets.list(&ListParams::default().labels(&selector.join(","))).await?.items;
    owned(deployment, "MachineDeployment", sets, found).await
}

/// Filters for objects of an owner. Adopts objects without one, which come from another seed.
pub(super) async fn owned(
    owner: &DynamicObject,
    kind: &str,
    api: &Api<DynamicObject>,
    mut found: Vec<DynamicObject>,
) -> kube::Result<Vec<DynamicObject>> {
    for orphan in found.iter_mut().filter(|object| object.owner_references().is_empty()) {
        let references = owner.controller_owner_ref(&resource(kind)).map(|owner| vec![owner]);
        let patch = json!({"metadata": {"ownerReferences": references}});
        *orphan = api.patch(&orphan.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    }
    found.retain(|object| object.owner_references().iter().any(|other| Some(&other.uid) == owner.uid().as_ref()));
    Ok(found)
}

fn class(object: &DynamicObject) -> &Value {
    &object.data["spec"]["template"]["spec"]["class"]["name"]
}

/// The MachineSet for a deployment's class. Its name derives from both, equally in all namespaces.
fn machine_set(deployment: &DynamicObject) -> DynamicObject {
    let spec = &deployment.data["spec"];
    let class = class(deployment).as_str().unwrap_or_default();
    let digest = hex::encode(Sha256::digest(class.replace(&deployment.namespace().unwrap_or_default(), "")));
    let mut set = DynamicObject::new(&format!("{}-{}", deployment.name_any(), &digest[..5]), &resource("MachineSet"));
    set.metadata.namespace = deployment.namespace();
    set.metadata.labels = serde_json::from_value(spec["template"]["metadata"]["labels"].clone()).unwrap_or_default();
    set.metadata.owner_references =
        deployment.controller_owner_ref(&resource("MachineDeployment")).map(|owner| vec![owner]);
    set.data = json!({"spec": {
        "replicas": spec["replicas"], "selector": spec["selector"], "template": spec["template"], "minReadySeconds": spec["minReadySeconds"],
    }});
    set
}

/// The status of a MachineDeployment whose machines are ready, or whose roll begins.
fn status(deployment: &DynamicObject, healthy: bool) -> Value {
    let replicas = deployment.data["spec"]["replicas"].as_i64().unwrap_or_default();
    let updated = if healthy { replicas } else { 0 };
    let now = now();
    let condition = |kind: &str, reason: &str, status: bool| {
        let before = deployment.data["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|condition| condition["type"] == kind);
        let status = if status { "True" } else { "False" };
        let since = before
            .filter(|condition| condition["status"] == status)
            .map(|condition| condition["lastTransitionTime"].clone());
        json!({"type": kind, "status": status, "reason": reason, "message": "by the stand-in of machine-controller-manager",
               "lastUpdateTime": now, "lastTransitionTime": since.unwrap_or_else(|| json!(now))})
    };
    let conditions = if healthy {
        [
            condition("Available", "MinimumReplicasAvailable", true),
            condition("Progressing", "NewMachineSetAvailable", true),
        ]
    } else {
        [
            condition("Available", "MinimumReplicasUnavailable", replicas == 0),
            condition("Progressing", "MachineSetUpdated", true),
        ]
    };
    json!({
        "observedGeneration": deployment.metadata.generation, "replicas": replicas, "updatedReplicas": updated,
        "readyReplicas": updated, "availableReplicas": updated, "unavailableReplicas": replicas - updated, "conditions": conditions,
    })
}

/// Whether two statuses differ in anything but times.
fn differs(live: &Value, expected: &Value) -> bool {
    let facts = |status: &Value| {
        let number = |member: &str| status[member].as_i64().unwrap_or_default();
        let numbers = [
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
        ]
        .map(number);
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let conditions: Vec<[Value; 3]> =
            conditions.map(|condition| ["type", "status", "reason"].map(|member| condition[member].clone())).collect();
        (numbers, conditions)
    };
    facts(live) != facts(expected)
}

/// Current time in whole seconds, as in the machine API.
fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Returns false if the deployment does not exist.
async fn set_finalizers(api: &Api<DynamicObject>, deployment: &DynamicObject, present: bool) -> kube::Result<bool> {
    let mut finalizers = deployment.finalizers().to_vec();
    if finalizers.iter().any(|finalizer| finalizer == FINALIZER) == present {
        return Ok(true);
    }
    if present {
        finalizers.push(FINALIZER.to_owned())
    } else {
        finalizers.retain(|finalizer| finalizer != FINALIZER)
    }
    // Include the resource version, so that no concurrently added finalizer gets lost.
    let patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": deployment.resource_version()}});
    found(api.patch(&deployment.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await)
        .map(|deployment| deployment.is_some())
}

/// Ignores that an object does not exist.
pub(super) fn deleted<T>(outcome: kube::Result<T>) -> kube::Result<()> {
    found(outcome).map(|_| ())
}

/// Returns `None` if the object does not exist.
fn found<T>(outcome: kube::Result<T>) -> kube::Result<Option<T>> {
    match outcome {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        other => other.map(Some),
    }
}

/// Ignores that an object already exists.
pub(super) fn exists<T>(outcome: kube::Result<T>) -> kube::Result<()> {
    match outcome {
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        other => other.map(|_| ()),
    }
}
