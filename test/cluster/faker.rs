//! Stands in for machine-controller-manager where thousands of machines are wanted and not one of them matters.
//!
//! It answers a MachineDeployment as machine-controller-manager would in the end: a MachineSet for its class, none for classes
//! it had before, a healthy status. It makes no Machines and no Nodes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use k8s_openapi::jiff::Timestamp;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::watcher;
use kube::{Client, Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::task::JoinHandle;

/// machine-controller-manager's finalizer: a MachineDeployment goes only after its MachineSets.
const FINALIZER: &str = "machine.sapcloud.io/machine-controller-manager";

/// A running stand-in. Dropping it stops it.
pub(crate) struct Faker {
    task: JoinHandle<()>,
}

impl Faker {
    /// Starts in the current runtime for one namespace, or for all of them. `client` is best that of the user [`super::FAKER`].
    ///
    /// A MachineDeployment is healthy `after` so long; until then its status tells of a roll that goes on.
    pub(crate) fn start(client: Client, namespace: Option<&str>, after: Duration) -> Self {
        let [deployments, sets] = ["MachineDeployment", "MachineSet"].map(resource);
        let api = |resource: &ApiResource| -> Api<DynamicObject> {
            match namespace {
                Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
                None => Api::all_with(client.clone(), resource),
            }
        };
        let controller = Controller::new_with(api(&deployments), watcher::Config::default(), deployments.clone())
            .with_config(Config::default().concurrency(8))
            .owns_with(api(&sets), sets.clone(), watcher::Config::default());
        let context = Arc::new(Context { client: client.clone(), deployments, sets, after, seen: Mutex::default() });
        let outcomes = controller.run(reconcile, retry, context);
        Self { task: tokio::spawn(outcomes.for_each(async |_| {})) }
    }
}

impl Drop for Faker {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn resource(kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("machine.sapcloud.io", "v1alpha1", kind))
}

struct Context {
    client: Client,
    deployments: ApiResource,
    sets: ApiResource,
    after: Duration,
    /// When a generation of a MachineDeployment (by UID) was first seen.
    seen: Mutex<HashMap<String, (i64, Instant)>>,
}

impl Context {
    /// How long until this generation is to be healthy.
    fn remaining(&self, deployment: &DynamicObject) -> Duration {
        let generation = deployment.metadata.generation.unwrap_or_default();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = seen.entry(deployment.uid().unwrap_or_default()).or_insert((generation, Instant::now()));
        if entry.0 != generation {
            *entry = (generation, Instant::now());
        }
        self.after.saturating_sub(entry.1.elapsed())
    }
}

async fn reconcile(deployment: Arc<DynamicObject>, context: Arc<Context>) -> kube::Result<Action> {
    let namespace = deployment.namespace().unwrap_or_default();
    let deployments: Api<DynamicObject> =
        Api::namespaced_with(context.client.clone(), &namespace, &context.deployments);
    let sets: Api<DynamicObject> = Api::namespaced_with(context.client.clone(), &namespace, &context.sets);
    let name = deployment.name_any();

    let owned = owned_sets(&deployment, &sets).await?;
    if deployment.metadata.deletion_timestamp.is_some() {
        for set in &owned {
            gone(sets.delete(&set.name_any(), &DeleteParams::default()).await)?;
        }
        set_finalizers(&deployments, &deployment, false).await?;
        return Ok(Action::await_change());
    }
    set_finalizers(&deployments, &deployment, true).await?;

    let wanted = machine_set(&deployment);
    match owned.iter().find(|set| class(set) == class(&wanted)) {
        None => exists(sets.create(&PostParams::default(), &wanted).await)?,
        Some(set) if set.data["spec"]["replicas"] != wanted.data["spec"]["replicas"] => {
            let patch = json!({"spec": {"replicas": wanted.data["spec"]["replicas"]}});
            gone(sets.patch(&set.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await)?;
        }
        Some(_) => {}
    }
    let remaining = context.remaining(&deployment);
    let healthy = remaining.is_zero();
    if healthy {
        for old in owned.iter().filter(|set| class(set) != class(&wanted)) {
            gone(sets.delete(&old.name_any(), &DeleteParams::default()).await)?;
        }
    }
    let status = status(&deployment, healthy);
    if differs(&deployment.data["status"], &status) {
        let patch = Patch::Merge(json!({"status": status}));
        gone(deployments.patch_status(&name, &PatchParams::default(), &patch).await)?;
    }
    Ok(if healthy { Action::await_change() } else { Action::requeue(remaining) })
}

fn retry(_: Arc<DynamicObject>, _: &kube::Error, _: Arc<Context>) -> Action {
    Action::requeue(Duration::from_millis(200))
}

/// The MachineSets whose owner it is, found by the label that selects its machines.
async fn owned_sets(deployment: &DynamicObject, sets: &Api<DynamicObject>) -> kube::Result<Vec<DynamicObject>> {
    let labels = deployment.data["spec"]["selector"]["matchLabels"].as_object().into_iter().flatten();
    let selector: Vec<String> = labels.filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?))).collect();
    let mut found = sets.list(&ListParams::default().labels(&selector.join(","))).await?.items;
    found.retain(|set| set.owner_references().iter().any(|owner| Some(&owner.uid) == deployment.uid().as_ref()));
    Ok(found)
}

fn class(object: &DynamicObject) -> &Value {
    &object.data["spec"]["template"]["spec"]["class"]["name"]
}

/// The MachineSet for the class that a MachineDeployment names; its own name follows from both.
fn machine_set(deployment: &DynamicObject) -> DynamicObject {
    let spec = &deployment.data["spec"];
    let digest = hex::encode(Sha256::digest(class(deployment).to_string()));
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

/// The status of a MachineDeployment whose machines are all there, or of one that begins to roll.
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

/// Whether a status says something else, times aside.
fn differs(live: &Value, wanted: &Value) -> bool {
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
    facts(live) != facts(wanted)
}

/// Now, in whole seconds as the machine API has it.
fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

async fn set_finalizers(api: &Api<DynamicObject>, deployment: &DynamicObject, present: bool) -> kube::Result<()> {
    let mut finalizers = deployment.finalizers().to_vec();
    if finalizers.iter().any(|finalizer| finalizer == FINALIZER) == present {
        return Ok(());
    }
    if present {
        finalizers.push(FINALIZER.to_owned())
    } else {
        finalizers.retain(|finalizer| finalizer != FINALIZER)
    }
    // With the version it was read in: somebody else's finalizer must not get lost.
    let patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": deployment.resource_version()}});
    gone(api.patch(&deployment.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await)
}

/// What is gone need not be changed.
fn gone<T>(outcome: kube::Result<T>) -> kube::Result<()> {
    match outcome {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other.map(|_| ()),
    }
}

/// What exists need not be made.
fn exists<T>(outcome: kube::Result<T>) -> kube::Result<()> {
    match outcome {
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        other => other.map(|_| ()),
    }
}
