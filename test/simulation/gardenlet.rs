//! gardenlet, from the perspective of a Worker's controller. It creates the Worker and related objects, requests
//! operations, waits for their completion, and moves the shoot to another seed.

use std::cell::Cell;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::actor::{Actor, name_of};
use crate::api_server::kinds::{
    CLUSTER, DEPLOYMENT, Kind, MACHINE, MACHINE_CLASS, MACHINE_DEPLOYMENT, MACHINE_SET, POD, SECRET, WORKER,
};
use crate::api_server::store::Object;
use crate::documents::{Documents, NAMESPACE, WORKER_NAME};
use crate::machines;
use crate::rules::is_of_class;

/// The operation annotation, and the annotation with its timestamp.
const OPERATION: &str = "gardener.cloud/operation";
const TIMESTAMP: &str = "gardener.cloud/timestamp";
/// The annotation of a Shoot that is deleted by force, regardless of remaining resources.
pub(crate) const FORCED: &str = "confirmation.gardener.cloud/force-deletion";

/// Machine objects that a move deletes on the old seed.
const MACHINE_OBJECTS: [&Kind; 4] = [&MACHINE_DEPLOYMENT, &MACHINE_SET, &MACHINE, &MACHINE_CLASS];

/// The simulated gardenlet.
pub(crate) struct Gardenlet {
    actor: Actor,
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// Time of the last published bounds of machine deployments before the request. The operation must publish later.
    published: Cell<Option<i64>>,
    ignores_publication: Cell<bool>,
    /// Whether a migration to another seed is pending.
    migrates: Cell<bool>,
    /// Whether the shoot was moved here and its machines were not restored at the last check.
    restores: Cell<bool>,
    mirrors_hibernation: bool,
}

impl Gardenlet {
    pub(crate) fn new(actor: Actor, now: Arc<dyn Fn() -> Timestamp + Send + Sync>) -> Self {
        Self {
            actor,
            now,
            published: Cell::default(),
            ignores_publication: Cell::default(),
            migrates: Cell::default(),
            restores: Cell::default(),
            mirrors_hibernation: false,
        }
    }

    /// The Cluster also contains the Shoot's hibernation status.
    pub(crate) fn mirroring_hibernation(self) -> Self {
        Self { mirrors_hibernation: true, ..self }
    }

    /// Updates the Shoot's hibernation status in the Cluster after a successful operation, before the next one.
    fn mirror_hibernation(&self) {
        if self.mirrors_hibernation && self.missing().is_none() {
            let is_hibernated = json!(self.is_hibernated());
            self.actor.change(&CLUSTER, NAMESPACE, |cluster| {
                cluster["spec"]["shoot"]["status"]["isHibernated"] = is_hibernated;
            });
        }
    }

    /// Creates the shoot's objects, the Worker last.
    pub(crate) fn create(&self, documents: &Documents) {
        self.actor.note("creates the shoot");
        let spec = json!({"replicas": 1});
        let deployment =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": machines::NAME}, "spec": spec});
        self.actor.create(&DEPLOYMENT, deployment);
        self.actor.create(&CLUSTER, documents.cluster.clone());
        documents.secrets.iter().for_each(|secret| self.actor.create(&SECRET, secret.clone()));
        let mut worker = documents.worker.clone();
        self.requested(&mut worker, "reconcile");
        self.actor.create(&WORKER, worker);
    }

    fn requested(&self, worker: &mut Value, operation: &str) {
        worker["metadata"]["annotations"][OPERATION] = json!(operation);
        worker["metadata"]["annotations"][TIMESTAMP] = json!((self.now)().to_string());
    }

    /// Requests a reconcile of the Worker after `change`. An unfinished migration or restoration is requested again
    /// instead, because Gardener's API server rejects changes of the shoot until it succeeds.
    pub(crate) fn request(&self, why: &str, change: impl FnOnce(&mut Value)) {
        self.mirror_hibernation();
        self.annotate(why, change);
    }

    fn annotate(&self, why: &str, change: impl FnOnce(&mut Value)) {
        self.actor.note(format!("asks: {why}"));
        let operation = if self.is_migrating() {
            "migrate"
        } else if self.is_restoring() {
            "restore"
        } else {
            "reconcile"
        };
        // Before all machines are restored, machine-controller-manager would create new ones.
        if !self.is_hibernated() && operation == "reconcile" {
            self.scale_machine_controller(1);
        }
        self.actor.change(&WORKER, WORKER_NAME, |worker| {
            self.published.set(published(worker));
            change(worker);
            self.requested(worker, operation);
        });
    }

    pub(crate) fn is_restoring(&self) -> bool {
        let is_restored = |last: &Value| last["type"] == "Restore" && last["state"] == "Succeeded";
        let worker = self.actor.get(&WORKER, WORKER_NAME);
        if worker.is_some_and(|worker| is_restored(&worker.value["status"]["lastOperation"])) {
            self.restores.set(false);
        }
        self.restores.get()
    }

    /// Whether a migration to another seed is pending.
    pub(crate) fn is_migrating(&self) -> bool {
        self.migrates.get()
    }

    /// Whether a migration or restoration is in progress.
    pub(crate) fn is_moving(&self) -> bool {
        self.is_migrating() || self.is_restoring()
    }

    /// The current Worker and Cluster.
    pub(crate) fn worker_and_cluster(&self) -> Option<[Arc<Object>; 2]> {
        Some([self.actor.get(&WORKER, WORKER_NAME)?, self.actor.get(&CLUSTER, NAMESPACE)?])
    }

    /// Whether bounds of machine deployments have ever been published.
    pub(crate) fn has_bounds(&self) -> bool {
        self.actor.get(&WORKER, WORKER_NAME).is_some_and(|worker| published(&worker.value).is_some())
    }

    /// Changes the Shoot or CloudProfile in the Cluster.
    pub(crate) fn change_cluster(&self, change: impl FnOnce(&mut Value)) {
        self.actor.change(&CLUSTER, NAMESPACE, change);
    }

    /// Hibernates the shoot or wakes it up.
    pub(crate) fn hibernate(&self, is_required: bool) {
        self.mirror_hibernation();
        self.actor.change(&CLUSTER, NAMESPACE, |cluster| {
            cluster["spec"]["shoot"]["spec"]["hibernation"] = json!({ "enabled": is_required });
        });
        self.annotate(if is_required { "hibernate" } else { "wake up" }, |_| {});
    }

    pub(crate) fn is_hibernated(&self) -> bool {
        let cluster = self.actor.get(&CLUSTER, NAMESPACE);
        cluster.is_some_and(|cluster| cluster.value["spec"]["shoot"]["spec"]["hibernation"]["enabled"] == true)
    }

    /// Sets the Shoot's deletion timestamp in the Cluster, some time before the Worker's. A forced deletion deletes
    /// nothing in the cloud.
    pub(crate) fn announce_deletion(&self, is_forced: bool) {
        let now = (self.now)().to_string();
        self.actor.change(&CLUSTER, NAMESPACE, |cluster| {
            let metadata = &mut cluster["spec"]["shoot"]["metadata"];
            metadata["deletionTimestamp"] = json!(now);
            if is_forced {
                metadata["annotations"][FORCED] = json!("true");
            }
        });
    }

    /// Whether machine-controller-manager is scaled to zero.
    pub(crate) fn is_machine_controller_stopped(&self) -> bool {
        self.actor.get(&DEPLOYMENT, machines::NAME).is_some_and(|deployment| deployment.value["spec"]["replicas"] == 0)
    }

    pub(crate) fn delete(&self) {
        // machine-controller-manager must run to delete machines, even if the shoot is hibernated.
        self.scale_machine_controller(1);
        self.request("delete", |_| {});
        self.actor.delete(&WORKER, WORKER_NAME);
    }

    /// Requests a migration, which can be repeated until the shoot moves.
    pub(crate) fn migrate(&self) {
        self.mirror_hibernation();
        self.migrates.set(true);
        self.actor.note("asks: migrate");
        self.actor.change(&WORKER, WORKER_NAME, |worker| self.requested(worker, "migrate"));
    }

    /// Whether the last operation was a successful migration and the Worker has no finalizers.
    pub(crate) fn has_migrated(&self) -> bool {
        self.actor.get(&WORKER, WORKER_NAME).is_some_and(|worker| {
            let last = &worker.value["status"]["lastOperation"];
            let is_held = worker.value["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty());
            last["type"] == "Migrate" && last["state"] == "Succeeded" && !is_held
        })
    }

    /// Names of the Secrets with boot scripts.
    pub(crate) fn boot_scripts(&self) -> Vec<String> {
        let secrets = self.actor.list(&SECRET);
        let own = secrets.iter().map(|secret| &secret.value).filter(|secret| !is_of_class(secret));
        own.filter(|secret| !secret["data"]["userData"].is_null()).map(|secret| name_of(secret).to_owned()).collect()
    }

    /// Appends to a boot script.
    pub(crate) fn add_to_boot_script(&self, name: &str, addition: &str) {
        self.actor.note(format!("writes another boot script {name}"));
        self.actor.change(&SECRET, name, |secret| {
            let script = secret["data"]["userData"].as_str().and_then(|text| STANDARD.decode(text).ok());
            let script = String::from_utf8(script.unwrap_or_default()).unwrap_or_default();
            secret["stringData"] = json!({"userData": script + addition});
        });
    }

    /// Deletes the remaining objects of a deleted shoot with its namespace.
    pub(crate) fn delete_shoot_objects(&self) {
        self.actor.note("takes the shoot's namespace away");
        for kind in [&MACHINE_DEPLOYMENT, &MACHINE_SET, &MACHINE, &MACHINE_CLASS, &SECRET, &DEPLOYMENT, &POD] {
            self.actor.list(kind).iter().for_each(|object| self.take_away(kind, &object.value));
        }
        self.actor.delete(&CLUSTER, NAMESPACE);
        self.published.set(None);
    }

    fn scale_machine_controller(&self, replicas: u32) {
        self.actor.change(&DEPLOYMENT, machines::NAME, |deployment| deployment["spec"]["replicas"] = json!(replicas));
    }

    /// Removes the finalizers of machine objects, which gardenlet deletes a while later. Returns the machine state to
    /// restore.
    pub(crate) fn remove_machine_finalizers(&self) -> Value {
        let kept = self.kept_machines();
        self.scale_machine_controller(0);
        for kind in MACHINE_OBJECTS {
            self.actor.list(kind).iter().for_each(|object| self.release(kind, &object.value));
        }
        kept
    }

    /// Deletes everything after a migration and recreates it as on another seed, with `kept` or the current machine
    /// state. Does nothing while the Worker has finalizers.
    pub(crate) fn move_over(&self, kept: Option<Value>) -> bool {
        let Some(moved) = self.actor.get(&WORKER, WORKER_NAME) else { return false };
        let kept = kept.unwrap_or_else(|| self.kept_machines());
        self.scale_machine_controller(0);
        for kind in MACHINE_OBJECTS {
            self.actor.list(kind).iter().for_each(|object| self.take_away(kind, &object.value));
        }
        for secret in self.actor.list(&SECRET) {
            if secret.value["metadata"]["labels"]["gardener.cloud/purpose"] == "machineclass" {
                self.take_away(&SECRET, &secret.value);
            } else {
                self.release(&SECRET, &secret.value);
            }
        }
        self.actor.delete(&WORKER, WORKER_NAME);
        if self.actor.get(&WORKER, WORKER_NAME).is_some() {
            return false;
        }
        self.actor.note("moves the shoot to another seed");
        let moved = &moved.value;
        let metadata = json!({"name": WORKER_NAME, "annotations": {OPERATION: "wait-for-state"}});
        let worker =
            json!({"apiVersion": moved["apiVersion"], "kind": "Worker", "spec": moved["spec"], "metadata": metadata});
        self.actor.create(&WORKER, worker);
        self.actor.change_status(&WORKER, WORKER_NAME, |worker| {
            worker["status"] = json!({"state": kept, "providerStatus": moved["status"]["providerStatus"]});
        });
        self.actor.change(&WORKER, WORKER_NAME, |worker| self.requested(worker, "restore"));
        self.migrates.set(false);
        self.restores.set(true);
        true
    }

    fn release(&self, kind: &'static Kind, object: &Value) {
        self.actor.change(kind, name_of(object), |object| object["metadata"]["finalizers"] = Value::Null);
    }

    fn take_away(&self, kind: &'static Kind, object: &Value) {
        self.release(kind, object);
        self.actor.delete(kind, name_of(object));
    }

    /// The machine state in the form of `status.state`.
    fn kept_machines(&self) -> Value {
        let kept = |object: &Value| {
            let metadata = &object["metadata"];
            json!({"metadata": {"name": metadata["name"], "namespace": metadata["namespace"], "labels": metadata["labels"],
                                "annotations": metadata["annotations"]}, "spec": object["spec"]})
        };
        let of = |kind: &'static Kind, deployment: &str| -> Vec<Value> {
            let objects = self.actor.list(kind);
            let own = objects.iter().filter(|object| object.value["metadata"]["labels"]["name"] == deployment);
            own.map(|object| kept(&object.value)).collect()
        };
        let mut deployments = json!({});
        for deployment in self.actor.list(&MACHINE_DEPLOYMENT) {
            let name = name_of(&deployment.value);
            deployments[name] = json!({"replicas": deployment.value["spec"]["replicas"],
                                       "machineSets": of(&MACHINE_SET, name), "machines": of(&MACHINE, name)});
        }
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        let written = serde_json::to_writer(&mut gzip, &json!({"machineDeployments": deployments}));
        written.and_then(|()| gzip.flush().map_err(serde_json::Error::io)).expect("it is written into memory");
        json!({"state": STANDARD.encode(gzip.finish().expect("it is written into memory"))})
    }

    /// Stops waiting for bounds that are published after the request, because a controller's clock is wrong and another
    /// controller continues its work. If the last publication seems to be later than the request, only the controller
    /// whose first reconcile failed would publish again.
    pub(crate) fn ignore_publication(&self) {
        self.ignores_publication.set(true);
    }

    /// Why the last request has not succeeded yet; `None` if it has.
    pub(crate) fn missing(&self) -> Option<String> {
        let worker = self.actor.get(&WORKER, WORKER_NAME);
        let published = if self.ignores_publication.get() { None } else { self.published.get() };
        missing(worker.as_ref().map(|worker| &worker.value), published)
    }

    /// Waits until [`Self::missing`] returns nothing, for at most this time. Returns its last result.
    pub(crate) async fn wait(&self, most: Duration) -> Option<String> {
        let end = Instant::now() + most;
        loop {
            let missing = self.missing();
            if missing.is_none() || Instant::now() >= end {
                return missing;
            }
            sleep(Duration::from_millis(500)).await;
        }
    }

    /// Waits until the last operation has failed with an error that contains this text. Returns false on timeout.
    pub(crate) async fn wait_for_error(&self, text: &str, most: Duration) -> bool {
        let is_it = |worker: &Value| {
            let (last, error) = (&worker["status"]["lastOperation"], &worker["status"]["lastError"]["description"]);
            last["state"] == "Error" && error.as_str().is_some_and(|error| error.contains(text))
        };
        self.wait_until(most, |worker| worker.is_some_and(is_it)).await
    }

    /// Waits until `EveryNodeReady` has a status. Returns false on timeout.
    pub(crate) async fn wait_for_nodes(&self, status: &str, most: Duration) -> bool {
        let has = |condition: &Value| condition["type"] == "EveryNodeReady" && condition["status"] == status;
        let conditions =
            |worker: &Value| worker["status"]["conditions"].as_array().is_some_and(|all| all.iter().any(has));
        self.wait_until(most, |worker| worker.is_some_and(conditions)).await
    }

    /// Waits until the Worker is deleted. Returns false on timeout.
    pub(crate) async fn wait_until_deleted(&self, most: Duration) -> bool {
        self.wait_until(most, |worker| worker.is_none()).await
    }

    async fn wait_until(&self, most: Duration, is_so: impl Fn(Option<&Value>) -> bool) -> bool {
        let end = Instant::now() + most;
        while !is_so(self.actor.get(&WORKER, WORKER_NAME).as_ref().map(|worker| &worker.value)) {
            if Instant::now() >= end {
                return false;
            }
            sleep(Duration::from_millis(500)).await;
        }
        true
    }
}

/// Why gardenlet does not consider the Worker's last operation successful.
fn missing(worker: Option<&Value>, published_before: Option<i64>) -> Option<String> {
    let Some(worker) = worker else { return Some("there is no Worker".to_owned()) };
    let (metadata, status) = (&worker["metadata"], &worker["status"]);
    let last = &status["lastOperation"];
    let requested = seconds(&metadata["annotations"][TIMESTAMP]);
    if !metadata["annotations"][OPERATION].is_null() {
        return Some(format!("the request has not been taken off; {last}, {}", status["lastError"]));
    }
    if last["state"] != "Succeeded" || !status["lastError"].is_null() {
        return Some(format!("it is {last}, {}", status["lastError"]));
    }
    if seconds(&last["lastUpdateTime"]) < requested {
        return Some(format!("the answer is older than the request: {last}"));
    }
    if published(worker).is_none() || status["machineDeployments"].as_array().is_none_or(Vec::is_empty) {
        return Some("no machine deployments are published".to_owned());
    }
    if last["type"] == "Reconcile" && published_before.is_some() && published(worker) <= published_before {
        let time = &status["machineDeploymentsLastUpdateTime"];
        return Some(format!("the machine deployments are not published anew, but at {time}"));
    }
    (status["observedGeneration"] != metadata["generation"])
        .then(|| format!("generation {} is observed of {}", status["observedGeneration"], metadata["generation"]))
}

fn published(worker: &Value) -> Option<i64> {
    seconds(&worker["status"]["machineDeploymentsLastUpdateTime"])
}

fn seconds(time: &Value) -> Option<i64> {
    time.as_str()?.parse::<Timestamp>().ok().map(Timestamp::as_second)
}
