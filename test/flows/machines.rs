//! machine-controller-manager in a case: it completes everything at once, or does nothing.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::future::try_join_all;
use futures::{Stream, StreamExt as _};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::case::Machines;
use crate::location::Location;

/// Label of objects created by the stand-in, which are not part of any measurement.
const STAND_IN: &str = "test.gardener.cloud/stand-in";
/// The finalizer with which machine-controller-manager protects the credentials.
const HOLDS: &str = "machine.sapcloud.io/machine-controller";

/// The stand-in for one namespace. Dropping it stops it.
pub(crate) struct StandIn {
    task: JoinHandle<()>,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    deployments: BTreeSet<String>,
    /// Names and labels of the machines when the first deployment was deleted.
    machines_at_deletion: Option<Value>,
    /// The Secret to protect while there are classes, once a deletion has begun.
    credentials: Option<[String; 2]>,
}

impl StandIn {
    pub(crate) fn start(location: Arc<Location>, behaviour: Machines) -> Self {
        let seen = Arc::<Mutex<Seen>>::default();
        let follower = Follower { location, behaviour, seen: seen.clone() };
        Self { task: tokio::spawn(follower.follow()), seen }
    }

    /// From now on, protects the credentials while there are classes.
    pub(crate) fn holds(&self, namespace: &str, secret: &str) {
        lock(&self.seen).credentials = Some([namespace.to_owned(), secret.to_owned()]);
    }

    pub(crate) fn machines_at_deletion(&self) -> Value {
        lock(&self.seen).machines_at_deletion.clone().unwrap_or_default()
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Whether the stand-in has created an object.
pub(crate) fn is_of_stand_in(object: &Value) -> bool {
    !object["metadata"]["labels"][STAND_IN].is_null()
}

fn lock(seen: &Mutex<Seen>) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Follower {
    location: Arc<Location>,
    behaviour: Machines,
    seen: Arc<Mutex<Seen>>,
}

impl Follower {
    /// Runs a step after each change, and repeats it until it succeeds.
    async fn follow(self) {
        let kinds =
            ["MachineDeployment", "MachineClass", "Machine"].map(|kind| changes(self.location.machines(kind)).boxed());
        let mut changes = futures::stream::select_all(kinds);
        while changes.next().await.is_some() {
            while self.step().await.is_err() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }

    async fn step(&self) -> Result<()> {
        let deployments = self.location.list_machines("MachineDeployment").await?;
        match self.behaviour {
            Machines::AsGiven => self.observe(&deployments).await,
            Machines::Healthy => {
                self.take_away(&deployments).await?;
                let sets = self.location.list_machines("MachineSet").await?;
                try_join_all(deployments.iter().map(|deployment| self.complete(deployment, &sets))).await?;
                self.hold_credentials().await
            }
        }
    }

    /// Sets the observed generation of a given status to the current one, as a real machine-controller-manager would
    /// even if it did nothing else.
    async fn observe(&self, deployments: &[Value]) -> Result<()> {
        for deployment in deployments {
            let observed = &deployment["metadata"]["generation"];
            if &deployment["status"]["observedGeneration"] != observed {
                self.status(deployment, json!({"observedGeneration": observed})).await?;
            }
        }
        Ok(())
    }

    /// Reports that all machines are available, in a machine set of the current class.
    async fn complete(&self, deployment: &Value, sets: &[Value]) -> Result<()> {
        let name = deployment["metadata"]["name"].as_str().context("a deployment has a name")?;
        let class = deployment["spec"]["template"]["spec"]["class"]["name"].as_str().unwrap_or_default();
        let api = self.location.machines("MachineSet");
        let of_deployment = |set: &&Value| owner(set) == Some(name) || set["metadata"]["labels"]["name"] == name;
        let is_current = |set: &Value| set["spec"]["template"]["spec"]["class"]["name"] == class;
        for old in sets.iter().filter(of_deployment).filter(|set| is_of_stand_in(set) && !is_current(set)) {
            delete(&api, old).await?;
        }
        if !sets.iter().filter(of_deployment).any(is_current) {
            let owner = json!({
                "apiVersion": deployment["apiVersion"], "kind": "MachineDeployment", "name": name,
                "uid": deployment["metadata"]["uid"],
            });
            let set = json!({
                "apiVersion": deployment["apiVersion"], "kind": "MachineSet",
                "metadata": {
                    "name": format!("{name}-{class}"), "labels": {"name": name, STAND_IN: ""}, "ownerReferences": [owner],
                },
                "spec": {
                    "replicas": deployment["spec"]["replicas"], "selector": deployment["spec"]["selector"],
                    "template": deployment["spec"]["template"],
                },
            });
            api.create(&PostParams::default(), &serde_json::from_value(set)?).await?;
        }
        let replicas = deployment["spec"]["replicas"].as_i64().unwrap_or_default();
        let time = "2026-01-01T00:00:00Z";
        let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "Test", "message": "", "lastUpdateTime": time, "lastTransitionTime": time});
        let status = json!({
            "observedGeneration": deployment["metadata"]["generation"], "replicas": replicas, "updatedReplicas": replicas,
            "readyReplicas": replicas, "availableReplicas": replicas, "unavailableReplicas": 0, "failedMachines": null,
            "conditions": [condition("Available"), condition("Progressing")],
        });
        let is_reported = |(member, value): (&String, &Value)| {
            let reported = &deployment["status"][member];
            reported == value || (value == &json!(0) && reported.is_null())
        };
        if status.as_object().into_iter().flatten().all(is_reported) {
            return Ok(());
        }
        self.status(deployment, status).await
    }

    /// Deletes machine sets and machines with their deployment. When the Worker is deleted, all of them are deleted
    /// with the last deployment.
    async fn take_away(&self, deployments: &[Value]) -> Result<()> {
        let names: BTreeSet<String> = deployments
            .iter()
            .filter_map(|deployment| Some(deployment["metadata"]["name"].as_str()?.to_owned()))
            .collect();
        let (deleted, is_deletion) = {
            let mut seen = lock(&self.seen);
            let deleted: BTreeSet<String> = seen.deployments.difference(&names).cloned().collect();
            seen.deployments.extend(names.iter().cloned());
            (deleted, seen.credentials.is_some())
        };
        let all = is_deletion && names.is_empty();
        if deleted.is_empty() && !all {
            return Ok(());
        }
        let (set_api, machine_api) = (self.location.machines("MachineSet"), self.location.machines("Machine"));
        let sets = self.location.list_machines("MachineSet").await?;
        let machines = self.location.list_machines("Machine").await?;
        if is_deletion {
            let labels =
                |machine: &Value| json!({"name": machine["metadata"]["name"], "labels": machine["metadata"]["labels"]});
            let at_deletion = json!(machines.iter().map(labels).collect::<Vec<_>>());
            lock(&self.seen).machines_at_deletion.get_or_insert(at_deletion);
        }
        let is_deleted = |name: Option<&str>| name.is_some_and(|name| deleted.contains(name));
        let mut deleted_sets = BTreeSet::new();
        for set in &sets {
            let label = set["metadata"]["labels"]["name"].as_str();
            if all || is_deleted(owner(set)) || (owner(set).is_none() && is_deleted(label)) {
                deleted_sets.insert(set["metadata"]["name"].as_str().unwrap_or_default());
                delete(&set_api, set).await?;
            }
        }
        for machine in
            machines.iter().filter(|machine| all || owner(machine).is_some_and(|set| deleted_sets.contains(set)))
        {
            delete(&machine_api, machine).await?;
        }
        Ok(())
    }

    async fn hold_credentials(&self) -> Result<()> {
        let Some([namespace, name]) = lock(&self.seen).credentials.clone() else { return Ok(()) };
        let api: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(self.location.client.clone(), &namespace);
        let Some(secret) = api.get_opt(&name).await? else { return Ok(()) };
        let classes = self.location.list_machines("MachineClass").await?;
        let mut finalizers = secret.finalizers().to_vec();
        let is_held = finalizers.iter().any(|finalizer| finalizer == HOLDS);
        if is_held != classes.is_empty() {
            return Ok(());
        }
        if is_held {
            finalizers.retain(|finalizer| finalizer != HOLDS);
        } else {
            finalizers.push(HOLDS.to_owned());
        }
        let patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": secret.resource_version()}});
        api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    async fn status(&self, deployment: &Value, status: Value) -> Result<()> {
        let name = deployment["metadata"]["name"].as_str().unwrap_or_default();
        let patch = Patch::Merge(json!({"status": status}));
        self.location.machines("MachineDeployment").patch_status(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }
}

/// Emits an item for each change to an object of a kind.
fn changes(api: Api<DynamicObject>) -> impl Stream<Item = ()> + Send {
    watcher(api, watcher::Config::default()).default_backoff().map(|_| ())
}

/// The name of the first owner.
fn owner(object: &Value) -> Option<&str> {
    object["metadata"]["ownerReferences"][0]["name"].as_str()
}

async fn delete(api: &Api<DynamicObject>, object: &Value) -> Result<()> {
    match api.delete(object["metadata"]["name"].as_str().unwrap_or_default(), &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        outcome => Ok(outcome.map(|_| ())?),
    }
}
