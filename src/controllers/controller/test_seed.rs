//! A seed for tests: an API server that stores objects, with a shoot whose Worker has one pool in one zone.

use std::collections::BTreeMap;
use std::io::Write;
use std::mem::take;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::controller::queue::Requeue;
use crate::controller::reconcile::error::ReconcileError;
use crate::controller::reconcile::reconcile;
use crate::controller::run::context::ControllerContext;
use crate::controller::test_support::{ReceivedRequest, controller_over, refusal};
use decisions::worker::request::FINALIZER;
use runtime::cluster::identity::Identity;
use wire::api::gardener::Worker;
use wire::api::gotext::yaml;

/// Namespace of the shoot, and name of its Cluster.
pub(crate) const NAMESPACE: &str = "shoot--garden--mail";
/// Keys in [`Seed`] of the Worker, Cluster, machine deployment, credentials and machine-controller-manager.
pub(crate) const WORKER: &str = "workers/mail";
pub(crate) const CLUSTER: &str = "clusters/shoot--garden--mail";
pub(crate) const DEPLOYMENT: &str = "machinedeployments/shoot--garden--mail-web-z1";
pub(crate) const DEPLOYMENT_NAME: &str = "shoot--garden--mail-web-z1";
pub(crate) const CREDENTIALS: &str = "secrets/cloudprovider";
pub(crate) const CONTROLLER: &str = "deployments/machine-controller-manager";

/// Stored objects, by plural of their kind and name.
pub(crate) type Objects = BTreeMap<String, Value>;

/// A change of the Worker by another client that no watch has reported.
pub(crate) const CHANGED: fn(&mut Objects) = |objects| {
    let metadata = &mut objects.get_mut(WORKER).unwrap()["metadata"];
    (metadata["resourceVersion"], metadata["annotations"]) = (json!("1000"), json!({"somebody": "else"}));
};
type Change = Box<dyn FnOnce(&mut Objects) + Send>;
type Refusal = Box<dyn FnMut(&str, &Value) -> Option<(u16, &'static str)> + Send>;

/// An API server that stores objects. Clones share their state.
#[derive(Clone, Default)]
pub(crate) struct Seed(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    objects: Objects,
    version: u64,
    requested: Vec<(String, Value)>,
    refusal: Option<Refusal>,
    change: Option<(String, Change)>,
}

impl Seed {
    /// A seed with a pending request to create the machines of a shoot, and its controller.
    pub(crate) fn new() -> (Self, Arc<ControllerContext>) {
        let seed = Self::default();
        let documents = yaml::documents(include_str!("../../../example/gcp.yaml")).unwrap();
        for mut document in documents {
            let kind = document["kind"].as_str().unwrap().to_lowercase();
            let name = format!("{kind}s/{}", document["metadata"]["name"].as_str().unwrap());
            if kind == "worker" {
                document["metadata"]["generation"] = json!(1);
                document["metadata"]["annotations"] = json!({"gardener.cloud/operation": "reconcile"});
                let pools = document["spec"]["pools"].as_array_mut().unwrap();
                pools.truncate(1);
                pools[0]["zones"] = json!(["europe-west1-b"]);
            }
            if kind == "secret" {
                document.as_object_mut().unwrap().remove("stringData");
                document["data"] = json!({"serviceaccount.json": "e30=", "userData": "IyEvYmluL2Jhc2gK"});
            }
            seed.put(&name, document);
        }
        let deployment = json!({"metadata": {}, "spec": {"replicas": 1, "selector": {}, "template": {}}});
        seed.put(CONTROLLER, deployment);
        let context = seed.controller();
        (seed, context)
    }

    /// A seed to which the Worker was migrated, with the machines that gardenlet has saved.
    pub(crate) fn moved(kept: &Value) -> (Self, Arc<ControllerContext>) {
        let (seed, context) = Self::new();
        let last = json!({"type": "Migrate", "state": "Succeeded", "progress": 100});
        seed.merge(WORKER, json!({"status": {"lastOperation": last, "state": kept}}));
        seed.request("restore");
        seed.merge(CONTROLLER, json!({"spec": {"replicas": 0}}));
        (seed, context)
    }

    /// A controller with an empty cache.
    pub(crate) fn controller(&self) -> Arc<ControllerContext> {
        let seed = self.clone();
        controller_over(None, move |call, _| seed.response(call)).0
    }

    /// A seed with existing machines and a finished operation, and a controller without state of it.
    pub(crate) async fn settled() -> (Self, Arc<ControllerContext>) {
        let (seed, context) = Self::new();
        seed.reconcile(&context).await.unwrap();
        seed.machines_come();
        seed.reconcile(&context).await.unwrap();
        assert_eq!(seed.state(), "Succeeded", "{}", seed.get(WORKER).unwrap()["status"]);
        context.memory.forget("uid-workers/mail");
        seed.requested();
        (seed, context)
    }

    /// Reconciles the Worker after a pause.
    pub(crate) async fn reconcile(&self, context: &ControllerContext) -> Result<Requeue, ReconcileError> {
        tokio::time::advance(Duration::from_secs(2)).await;
        let worker = self.worker();
        reconcile(Identity::of(&worker).unwrap(), &worker, context).await
    }

    pub(crate) fn worker(&self) -> Worker {
        serde_json::from_str(&self.get(WORKER).unwrap().to_string()).unwrap()
    }

    /// State of the last operation of the Worker.
    pub(crate) fn state(&self) -> String {
        self.last("/status/lastOperation/state")
    }

    /// Value at that place in the Worker, or an empty string.
    pub(crate) fn last(&self, pointer: &str) -> String {
        let worker = self.get(WORKER).unwrap_or_default();
        worker.pointer(pointer).map(|value| value.as_str().map_or(value.to_string(), str::to_owned)).unwrap_or_default()
    }

    /// Requests an operation, as gardenlet does.
    pub(crate) fn request(&self, operation: &str) {
        self.merge(WORKER, json!({"metadata": {"annotations": {"gardener.cloud/operation": operation}}}));
    }

    /// Deletes the Worker, with an operation that began at that time.
    pub(crate) fn delete(&self, since: jiff::Timestamp) {
        let last =
            json!({"type": "Delete", "state": "Processing", "progress": 50, "lastUpdateTime": since.to_string()});
        self.merge(WORKER, json!({"metadata": {"deletionTimestamp": since}, "status": {"lastOperation": last}}));
    }

    /// Hibernates the shoot.
    pub(crate) fn hibernate(&self) {
        self.merge(CLUSTER, json!({"spec": {"shoot": {"spec": {"hibernation": {"enabled": true}}}}}));
    }

    /// Creates the machines of the machine deployments, as machine-controller-manager does.
    pub(crate) fn machines_come(&self) {
        self.remove("machines/");
        for (name, deployment) in self.all("machinedeployments/") {
            let replicas = &deployment["spec"]["replicas"];
            let class = &deployment["spec"]["template"]["spec"]["class"];
            let plain = deployment["metadata"]["name"].as_str().unwrap();
            let api_version = "machine.sapcloud.io/v1alpha1";
            let owner =
                |kind: &str, name: String| json!([{"apiVersion": api_version, "kind": kind, "name": name, "uid": "u"}]);
            let status = json!({
                "observedGeneration": deployment["metadata"]["generation"], "replicas": replicas, "updatedReplicas": replicas,
                "availableReplicas": replicas, "unavailableReplicas": 0,
                "conditions": [{"type": "Available", "status": "True"}],
            });
            let spec = json!({"class": class, "replicas": replicas, "template": {"spec": {"class": class}}});
            let owners = owner("MachineDeployment", plain.to_owned());
            let set = json!({"metadata": {"name": format!("{plain}-s"), "ownerReferences": owners}, "spec": spec,
                "status": {"observedGeneration": 1, "replicas": replicas}});
            self.put(&format!("machinesets/{plain}-s"), set);
            for number in 0..replicas.as_i64().unwrap_or_default() {
                let owners = owner("MachineSet", format!("{plain}-s"));
                let machine = json!({"metadata": {"name": format!("{plain}-{number}"), "ownerReferences": owners},
                    "spec": {"class": class}, "status": {"currentStatus": {"phase": "Running"}}});
                self.put(&format!("machines/{plain}-{number}"), machine);
            }
            self.merge(&name, json!({ "status": status }));
        }
    }

    /// Changes the pool of the Worker.
    pub(crate) fn change_pool(&self, change: impl FnOnce(&mut Value)) {
        let mut worker = self.get(WORKER).unwrap();
        change(&mut worker["spec"]["pools"][0]);
        self.put(WORKER, worker);
    }

    /// Makes some machines unavailable.
    pub(crate) fn machines_fail(&self) {
        self.merge(DEPLOYMENT, json!({"status": {"availableReplicas": 1, "unavailableReplicas": 2}}));
    }

    /// Requests since the last call: method, plural and name.
    pub(crate) fn requested(&self) -> Vec<(String, Value)> {
        take(&mut self.lock().requested)
    }

    /// Writes since the last call.
    pub(crate) fn writes(&self) -> Vec<String> {
        self.requested().into_iter().map(|(line, _)| line).filter(|line| !line.starts_with("GET ")).collect()
    }

    /// Refuses matching requests from now on.
    pub(crate) fn refuse(&self, refusal: impl FnMut(&str, &Value) -> Option<(u16, &'static str)> + Send + 'static) {
        self.lock().refusal = Some(Box::new(refusal));
    }

    /// Changes the objects once, at the next request that matches.
    pub(crate) fn when(&self, line: &str, change: impl FnOnce(&mut Objects) + Send + 'static) {
        self.lock().change = Some((line.to_owned(), Box::new(change)));
    }

    pub(crate) fn get(&self, name: &str) -> Option<Value> {
        self.lock().objects.get(name).cloned()
    }

    /// Objects whose keys begin with the prefix.
    pub(crate) fn all(&self, prefix: &str) -> Vec<(String, Value)> {
        let state = self.lock();
        let meant = state.objects.iter().filter(|(name, _)| name.starts_with(prefix));
        meant.map(|(name, object)| (name.clone(), object.clone())).collect()
    }

    /// Stores an object verbatim, with a new version.
    pub(crate) fn put(&self, name: &str, object: Value) {
        self.lock().put(name, object);
    }

    /// Changes an object as another client.
    pub(crate) fn merge(&self, name: &str, patch: Value) {
        let mut object = self.get(name).unwrap();
        json_patch::merge(&mut object, &patch);
        self.put(name, object);
    }

    /// Removes objects whose keys begin with the prefix.
    pub(crate) fn remove(&self, prefix: &str) {
        self.lock().objects.retain(|name, _| !name.starts_with(prefix));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn response(&self, call: &ReceivedRequest) -> (u16, Value) {
        let name = location(&call.path);
        let line = format!("{} {name}", call.method);
        let mut state = self.lock();
        state.requested.push((line.clone(), call.body.clone()));
        if let Some((_, change)) = state.change.take_if(|(awaited, _)| *awaited == line) {
            change(&mut state.objects);
        }
        let refused = state.refusal.as_mut().and_then(|refusal| refusal(&line, &call.body));
        if let Some((code, reason)) = refused {
            return refusal(code, reason);
        }
        match call.method.as_str() {
            "GET" if name.contains('/') => {
                state.objects.get(&name).cloned().map_or_else(absent, |object| (200, object))
            }
            "GET" => (200, state.list(&name, &call.query)),
            "POST" => state.create(&name, call.body.clone()),
            "PUT" => state.write(&name, |object| {
                let metadata = object["metadata"].clone();
                *object = call.body.clone();
                for kept in ["uid", "generation", "resourceVersion"] {
                    object["metadata"][kept] = metadata[kept].clone();
                }
                Ok(())
            }),
            "DELETE" => state.delete(&name),
            _ => state.patch(&name, &call.body),
        }
    }
}

/// Four machines of the machine deployment, in the form that gardenlet saves for a migration.
pub(crate) fn kept_machines() -> Value {
    const NAME: &str = DEPLOYMENT_NAME;
    let object =
        |name: String| json!({"metadata": {"name": name, "labels": {"name": NAME}}, "spec": {"class": {"name": "c"}}});
    let machines: Vec<Value> = (0..4).map(|number| object(format!("{NAME}-{number}"))).collect();
    let deployment = json!({"replicas": 4, "machineSets": [object(format!("{NAME}-s"))], "machines": machines});
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(json!({"machineDeployments": {NAME: deployment}}).to_string().as_bytes()).unwrap();
    json!({"state": STANDARD.encode(encoder.finish().unwrap())})
}

impl State {
    fn put(&mut self, name: &str, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(format!("uid-{name}"));
        }
        if !name.starts_with(CLUSTER) {
            object["metadata"]["namespace"] = json!(NAMESPACE);
        }
        self.objects.insert(name.to_owned(), object);
    }

    fn list(&self, plural: &str, query: &str) -> Value {
        let labels = |object: &Value| object["metadata"]["labels"].as_object().cloned().unwrap_or_default();
        let is_meant = |object: &Value| {
            let mut labels = labels(object).into_iter();
            !query.contains("labelSelector")
                || labels.any(|(_, value)| value.as_str().is_some_and(|value| query.contains(value)))
        };
        let of_plural = self.objects.iter().filter(|(name, _)| name.split('/').next() == Some(plural));
        let items: Vec<&Value> = of_plural.map(|(_, object)| object).filter(|object| is_meant(object)).collect();
        json!({"kind": "List", "metadata": {"resourceVersion": self.version.to_string()}, "items": items})
    }

    fn create(&mut self, plural: &str, mut object: Value) -> (u16, Value) {
        let name = format!("{plural}/{}", object["metadata"]["name"].as_str().unwrap_or("generated"));
        if plural != "events" && self.objects.contains_key(&name) {
            return refusal(409, "AlreadyExists");
        }
        object["metadata"]["generation"] = json!(1);
        self.put(&name, object);
        (201, self.objects[&name].clone())
    }

    fn patch(&mut self, name: &str, patch: &Value) -> (u16, Value) {
        let scaled = name.strip_suffix("/scale");
        let name = scaled.or_else(|| name.strip_suffix("/status")).unwrap_or(name);
        let (code, response) = self.write(name, |object| {
            if patch.is_array() {
                let patch: json_patch::Patch = serde_json::from_value(patch.clone()).unwrap();
                return json_patch::patch(object, &patch).map_err(|_| refusal(422, "Invalid"));
            }
            let version = &patch["metadata"]["resourceVersion"];
            if !version.is_null() && *version != object["metadata"]["resourceVersion"] {
                return Err(refusal(409, "Conflict"));
            }
            json_patch::merge(object, patch);
            Ok(())
        });
        if scaled.is_some() && code == 200 {
            let version = &response["metadata"]["resourceVersion"];
            let spec = json!({"replicas": response["spec"]["replicas"]});
            return (200, json!({"metadata": {"resourceVersion": version}, "spec": spec}));
        }
        (code, response)
    }

    fn write(&mut self, name: &str, change: impl FnOnce(&mut Value) -> Result<(), (u16, Value)>) -> (u16, Value) {
        let Some(before) = self.objects.get(name).cloned() else { return absent() };
        let mut object = before.clone();
        if let Err(refused) = change(&mut object) {
            return refused;
        }
        if object["spec"] != before["spec"] {
            object["metadata"]["generation"] = json!(before["metadata"]["generation"].as_i64().unwrap_or_default() + 1);
        }
        self.put(name, object);
        let written = self.objects[name].clone();
        if !written["metadata"]["deletionTimestamp"].is_null() && !is_held(&written) {
            self.objects.remove(name);
        }
        (200, written)
    }

    fn delete(&mut self, name: &str) -> (u16, Value) {
        let Some(object) = self.objects.remove(name) else { return absent() };
        if is_held(&object) {
            let mut going = object;
            going["metadata"]["deletionTimestamp"] = json!(jiff::Timestamp::now());
            self.put(name, going);
            return (200, self.objects[name].clone());
        }
        (200, json!({"kind": "Status", "status": "Success"}))
    }
}

fn is_held(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty())
}

fn absent() -> (u16, Value) {
    refusal(404, "NotFound")
}

/// Plural, name and subresource in a path.
fn location(path: &str) -> String {
    let of_namespace = path.split_once("/namespaces/").and_then(|(_, rest)| rest.split_once('/'));
    let location = of_namespace.map(|(_, location)| location);
    location.or_else(|| path.find("clusters/").map(|at| &path[at..])).unwrap_or(path).to_owned()
}

#[tokio::test(start_paused = true)]
async fn the_worker_of_the_seed_is_held_and_done() {
    let (seed, _) = Seed::settled().await;
    assert_eq!(seed.worker().metadata.finalizers.unwrap_or_default(), [FINALIZER]);
    assert_eq!(seed.all("machines/").len(), 3);
}
