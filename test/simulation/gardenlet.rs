//! gardenlet, as far as a Worker's controller can tell: it makes the Worker and what lies around it, asks for operations, waits for
//! their ends, and moves the shoot to another seed.

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

use crate::api_server::kinds::{
    CLUSTER, DEPLOYMENT, Kind, MACHINE, MACHINE_CLASS, MACHINE_DEPLOYMENT, MACHINE_SET, SECRET, WORKER,
};
use crate::documents::{Documents, NAMESPACE, WORKER_NAME};
use crate::hand::{Hand, name_of};
use crate::machines;

/// What the annotation of a request is called, and that with its time.
const OPERATION: &str = "gardener.cloud/operation";
const TIMESTAMP: &str = "gardener.cloud/timestamp";

/// gardenlet at work.
pub(crate) struct Gardenlet {
    hand: Hand,
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl Gardenlet {
    pub(crate) fn new(hand: Hand, now: Arc<dyn Fn() -> Timestamp + Send + Sync>) -> Self {
        Self { hand, now }
    }

    /// Makes the shoot; the Worker last.
    pub(crate) fn create(&self, documents: &Documents) {
        self.hand.note("creates the shoot");
        let spec = json!({"replicas": 1});
        let deployment =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": machines::NAME}, "spec": spec});
        self.hand.create(&DEPLOYMENT, deployment);
        self.hand.create(&CLUSTER, documents.cluster.clone());
        documents.secrets.iter().for_each(|secret| self.hand.create(&SECRET, secret.clone()));
        let mut worker = documents.worker.clone();
        self.asked(&mut worker, "reconcile");
        self.hand.create(&WORKER, worker);
    }

    fn asked(&self, worker: &mut Value, operation: &str) {
        worker["metadata"]["annotations"][OPERATION] = json!(operation);
        worker["metadata"]["annotations"][TIMESTAMP] = json!((self.now)().to_string());
    }

    /// Asks for a reconcile of the Worker as `change` makes it.
    pub(crate) fn request(&self, why: &str, change: impl FnOnce(&mut Value)) {
        self.hand.note(format!("asks: {why}"));
        if !self.sleeps() {
            self.scale_machine_controller(1);
        }
        self.hand.change(&WORKER, WORKER_NAME, |worker| {
            change(worker);
            self.asked(worker, "reconcile");
        });
    }

    /// Puts the shoot to sleep, or wakes it.
    pub(crate) fn hibernate(&self, is_wanted: bool) {
        self.hand.change(&CLUSTER, NAMESPACE, |cluster| {
            cluster["spec"]["shoot"]["spec"]["hibernation"] = json!({ "enabled": is_wanted });
        });
        self.request(if is_wanted { "hibernate" } else { "wake up" }, |_| {});
    }

    fn sleeps(&self) -> bool {
        let cluster = self.hand.get(&CLUSTER, NAMESPACE);
        cluster.is_some_and(|cluster| cluster.value["spec"]["shoot"]["spec"]["hibernation"]["enabled"] == true)
    }

    pub(crate) fn delete(&self) {
        // Whoever is to delete machines has to run, also where the shoot sleeps.
        self.scale_machine_controller(1);
        self.request("delete", |_| {});
        self.hand.delete(&WORKER, WORKER_NAME);
    }

    pub(crate) fn migrate(&self) {
        self.hand.note("asks: migrate");
        self.hand.change(&WORKER, WORKER_NAME, |worker| self.asked(worker, "migrate"));
    }

    fn scale_machine_controller(&self, replicas: u32) {
        self.hand.change(&DEPLOYMENT, machines::NAME, |deployment| deployment["spec"]["replicas"] = json!(replicas));
    }

    /// Takes everything away after a migration and makes it anew, as on another seed, with what was kept of the machines. Nothing
    /// where the Worker is held by somebody.
    pub(crate) fn move_over(&self) -> bool {
        let Some(moved) = self.hand.get(&WORKER, WORKER_NAME) else { return false };
        let kept = self.kept_machines();
        self.scale_machine_controller(0);
        for kind in [&MACHINE_DEPLOYMENT, &MACHINE_SET, &MACHINE, &MACHINE_CLASS] {
            self.hand.list(kind).iter().for_each(|object| self.take_away(kind, &object.value));
        }
        for secret in self.hand.list(&SECRET) {
            if secret.value["metadata"]["labels"]["gardener.cloud/purpose"] == "machineclass" {
                self.take_away(&SECRET, &secret.value);
            } else {
                self.hand
                    .change(&SECRET, name_of(&secret.value), |secret| secret["metadata"]["finalizers"] = Value::Null);
            }
        }
        self.hand.delete(&WORKER, WORKER_NAME);
        if self.hand.get(&WORKER, WORKER_NAME).is_some() {
            return false;
        }
        self.hand.note("moves the shoot to another seed");
        let moved = &moved.value;
        let metadata = json!({"name": WORKER_NAME, "annotations": {OPERATION: "wait-for-state"}});
        let worker =
            json!({"apiVersion": moved["apiVersion"], "kind": "Worker", "spec": moved["spec"], "metadata": metadata});
        self.hand.create(&WORKER, worker);
        self.hand.change_status(&WORKER, WORKER_NAME, |worker| {
            worker["status"] = json!({"state": kept, "providerStatus": moved["status"]["providerStatus"]});
        });
        self.hand.change(&WORKER, WORKER_NAME, |worker| self.asked(worker, "restore"));
        true
    }

    fn take_away(&self, kind: &'static Kind, object: &Value) {
        self.hand.change(kind, name_of(object), |object| object["metadata"]["finalizers"] = Value::Null);
        self.hand.delete(kind, name_of(object));
    }

    /// What is kept of the machines, in the form of `status.state`.
    fn kept_machines(&self) -> Value {
        let kept = |object: &Value| {
            let metadata = &object["metadata"];
            json!({"metadata": {"name": metadata["name"], "namespace": metadata["namespace"], "labels": metadata["labels"],
                                "annotations": metadata["annotations"]}, "spec": object["spec"]})
        };
        let of = |kind: &'static Kind, deployment: &str| -> Vec<Value> {
            let objects = self.hand.list(kind);
            let own = objects.iter().filter(|object| object.value["metadata"]["labels"]["name"] == deployment);
            own.map(|object| kept(&object.value)).collect()
        };
        let mut deployments = json!({});
        for deployment in self.hand.list(&MACHINE_DEPLOYMENT) {
            let name = name_of(&deployment.value);
            deployments[name] = json!({"replicas": deployment.value["spec"]["replicas"],
                                       "machineSets": of(&MACHINE_SET, name), "machines": of(&MACHINE, name)});
        }
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        let written = serde_json::to_writer(&mut gzip, &json!({"machineDeployments": deployments}));
        written.and_then(|()| gzip.flush().map_err(serde_json::Error::io)).expect("it is written into memory");
        json!({"state": STANDARD.encode(gzip.finish().expect("it is written into memory"))})
    }

    /// What is missing until the last request is answered well; nothing when it is.
    pub(crate) fn missing(&self) -> Option<String> {
        let worker = self.hand.get(&WORKER, WORKER_NAME);
        missing(worker.as_ref().map(|worker| &worker.value))
    }

    /// Waits until nothing is missing, at most so long. Returns what is missing then.
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

    /// Waits until the Worker is gone, at most so long; whether it is.
    pub(crate) async fn wait_until_gone(&self, most: Duration) -> bool {
        let end = Instant::now() + most;
        while self.hand.get(&WORKER, WORKER_NAME).is_some() {
            if Instant::now() >= end {
                return false;
            }
            sleep(Duration::from_millis(500)).await;
        }
        true
    }
}

/// What gardenlet misses in a Worker.
fn missing(worker: Option<&Value>) -> Option<String> {
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
    (status["observedGeneration"] != metadata["generation"])
        .then(|| format!("generation {} is observed of {}", status["observedGeneration"], metadata["generation"]))
}

fn seconds(time: &Value) -> Option<i64> {
    time.as_str()?.parse::<Timestamp>().ok().map(Timestamp::as_second)
}
