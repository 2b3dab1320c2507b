//! The location of a case: its own namespaces in the shared cluster, and its own subscription at Azure. Names of
//! namespaces and subscriptions are replaced where they are a whole value, and restored in everything that is compared.
//! They are part of no other name and of no hash.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use kube::Client;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use serde_json::{Value, json};

use crate::case::Given;

/// Finalizer of the test, which keeps a deleted Worker for the comparison.
const KEPT: &str = "test.gardener.cloud/kept";
const FINALIZER: &str = "extensions.gardener.cloud/worker";
/// The subscription in the ids of all measured scale sets, whatever the credentials contain.
const MEASURED_SUBSCRIPTION: &str = "sub";
const MACHINES: &str = "machine.sapcloud.io/v1alpha1";

pub(crate) struct Location {
    pub(crate) client: Client,
    /// Given names of namespaces and their names here.
    namespaces: BTreeMap<String, String>,
    /// The Keystone URL in the credentials of OpenStack.
    keystone: String,
    /// Whether the credentials name a subscription.
    has_subscription: bool,
    number: usize,
    /// The given objects as they were created here.
    given: Vec<Value>,
    /// The Worker's namespace here.
    pub(crate) namespace: String,
    pub(crate) worker_name: String,
}

/// The API server refuses a given object, so no controller ever receives it.
#[derive(Debug)]
pub(crate) struct NotStorable(pub(crate) String);

impl Location {
    /// A location that no other case uses.
    pub(crate) fn new(client: Client, number: usize, given: &Given) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut location = Self {
            client,
            namespaces: BTreeMap::new(),
            keystone: String::new(),
            has_subscription: false,
            number,
            given: Vec::new(),
            namespace: String::new(),
            worker_name: text(&given.worker["metadata"]["name"]),
        };
        location.namespace = location.own(&text(&given.worker["metadata"]["namespace"]));
        location
    }

    /// The name of a given namespace here.
    fn own(&mut self, namespace: &str) -> String {
        let name = format!("flow-{:04}-{}", self.number, self.namespaces.len());
        self.namespaces.entry(namespace.to_owned()).or_insert(name).clone()
    }

    /// Requests for OpenStack tokens are sent to this URL, whatever the case specifies.
    pub(crate) fn send_openstack_requests_to(&mut self, url: &str) {
        self.keystone = url.to_owned();
    }

    fn exchange(&mut self, location: &mut Value) {
        if let Value::String(namespace) = location {
            let own = self.own(namespace);
            *location = json!(own);
        }
    }

    /// The subscription of the case at Azure.
    pub(crate) fn subscription(&self) -> Option<String> {
        self.has_subscription.then(|| self.own_subscription())
    }

    fn own_subscription(&self) -> String {
        format!("subscription-of-flow-{:04}", self.number)
    }

    /// Creates everything except the Worker's request.
    pub(crate) async fn prepare(&mut self, given: &Given) -> Result<Result<(), NotStorable>> {
        self.given = given.objects.iter().map(|object| self.moved(object.clone())).collect();
        let garden: Vec<Value> = given.garden.iter().map(|object| self.moved(object.clone())).collect();
        let cluster = self.moved(given.cluster.clone());
        let worker = self.moved(given.worker.clone());
        for namespace in self.namespaces.values() {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            self.create(namespace).await?.map_err(|refused| anyhow::anyhow!("{}", refused.0))?;
        }
        let cluster = (!cluster.is_null()).then_some(cluster);
        for object in self.given.clone().into_iter().chain(garden).chain(cluster).chain([worker]) {
            if let Err(refused) = self.create(object).await? {
                return Ok(Err(refused));
            }
        }
        Ok(Ok(()))
    }

    /// A given object in the form in which it is created here.
    fn moved(&mut self, mut object: Value) -> Value {
        if object.is_null() {
            return object;
        }
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            for member in ["uid", "resourceVersion", "managedFields"] {
                metadata.remove(member);
            }
            if let Some(namespace) = metadata.get_mut("namespace") {
                self.exchange(namespace);
            }
        }
        match kind.as_str() {
            "Cluster" => {
                self.exchange(&mut object["metadata"]["name"]);
                if let Some(namespace) = object.pointer_mut("/spec/shoot/metadata/namespace") {
                    self.exchange(namespace);
                }
            }
            "Worker" => {
                if let Some(namespace) = object.pointer_mut("/spec/secretRef/namespace") {
                    self.exchange(namespace);
                }
                let metadata = &mut object["metadata"];
                metadata["annotations"]["gardener.cloud/operation"] = json!("wait-for-state");
                let mut finalizers = metadata["finalizers"].as_array().cloned().unwrap_or_default();
                finalizers.extend([json!(KEPT), json!(FINALIZER)]);
                metadata["finalizers"] = json!(finalizers);
            }
            "MachineClass" => {
                for reference in ["secretRef", "credentialsSecretRef"] {
                    if let Some(namespace) = object.pointer_mut(&format!("/{reference}/namespace")) {
                        self.exchange(namespace);
                    }
                }
            }
            "Secret" => {
                self.move_subscription(&mut object);
                if ["data", "stringData"].iter().any(|member| !object[member]["tenantName"].is_null()) {
                    object["stringData"]["authURL"] = json!(self.keystone);
                }
            }
            _ => {}
        }
        object
    }

    /// Replaces the subscription in cloud credentials, given as text or as base64.
    fn move_subscription(&mut self, secret: &mut Value) {
        let base64 =
            |text: &str| serde_json::to_value(k8s_openapi::ByteString(text.as_bytes().to_vec())).unwrap_or_default();
        let own = self.own_subscription();
        for (member, is_base64) in [("stringData", false), ("data", true)] {
            let Some(location) = secret.pointer_mut(&format!("/{member}/subscriptionID")) else { continue };
            let given = if is_base64 {
                let bytes: k8s_openapi::ByteString = serde_json::from_value(location.take()).unwrap_or_default();
                String::from_utf8_lossy(&bytes.0).into_owned()
            } else {
                location.as_str().unwrap_or_default().to_owned()
            };
            // A missing value is part of a case.
            let moved = if given.is_empty() { String::new() } else { own.clone() };
            *location = if is_base64 { base64(&moved) } else { json!(moved) };
            self.has_subscription |= !given.is_empty();
        }
    }

    /// Creates an object with its status. A refusal of its content is returned separately from other failures.
    async fn create(&self, object: Value) -> Result<Result<(), NotStorable>> {
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        let api = self.api_of(&object);
        let (name, status) =
            (object["metadata"]["name"].as_str().unwrap_or_default().to_owned(), object["status"].clone());
        let is_deleted = !object["metadata"]["deletionTimestamp"].is_null();
        let created = api.create(&PostParams::default(), &serde_json::from_value(object)?).await;
        match created {
            Err(kube::Error::Api(refusal)) if refusal.code == 422 || refusal.code == 400 => {
                return Ok(Err(NotStorable(refusal.message)));
            }
            outcome => outcome.with_context(|| format!("creating {kind} {name}"))?,
        };
        if status.as_object().is_some_and(|status| !status.is_empty()) {
            let patch = Patch::Merge(json!({"status": status}));
            match api.patch_status(&name, &PatchParams::default(), &patch).await {
                Err(kube::Error::Api(refusal)) if refusal.code == 422 || refusal.code == 400 => {
                    return Ok(Err(NotStorable(refusal.message)));
                }
                outcome => outcome.with_context(|| format!("writing the status of {kind} {name}"))?,
            };
        }
        if is_deleted {
            api.delete(&name, &DeleteParams::default()).await?;
        }
        Ok(Ok(()))
    }

    /// The API of an object with the names of this location.
    fn api_of(&self, object: &Value) -> Api<DynamicObject> {
        let text = |member: &str| object[member].as_str().unwrap_or_default();
        let resource = resource(text("apiVersion"), text("kind"));
        match object["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    /// The API of a kind in the Worker's namespace.
    pub(crate) fn api(&self, group_version: &str, kind: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource(group_version, kind))
    }

    /// The API of a kind of machine objects in the Worker's namespace.
    pub(crate) fn machines(&self, kind: &str) -> Api<DynamicObject> {
        self.api(MACHINES, kind)
    }

    pub(crate) fn workers(&self) -> Api<DynamicObject> {
        self.api("extensions.gardener.cloud/v1alpha1", "Worker")
    }

    /// All objects of a kind in the Worker's namespace, in the order of names.
    pub(crate) async fn list(&self, group_version: &str, kind: &str) -> Result<Vec<Value>> {
        let mut objects = self.api(group_version, kind).list(&ListParams::default()).await?.items;
        objects.sort_by_key(kube::ResourceExt::name_any);
        let documents = objects.into_iter().map(|object| {
            // Items of a list have no `apiVersion` and `kind`.
            let mut document = serde_json::to_value(object)?;
            document["apiVersion"] = json!(group_version);
            document["kind"] = json!(kind);
            Ok(document)
        });
        documents.collect()
    }

    /// All machine objects of a kind.
    pub(crate) async fn list_machines(&self, kind: &str) -> Result<Vec<Value>> {
        self.list(MACHINES, kind).await
    }

    /// The given objects that have been deleted, as `Kind/name`.
    pub(crate) async fn deleted(&self) -> Result<Vec<String>> {
        let mut deleted = Vec::new();
        for object in &self.given {
            let name = object["metadata"]["name"].as_str().context("an object has a name")?;
            if self.api_of(object).get_opt(name).await?.is_none() {
                deleted.push(format!("{}/{name}", object["kind"].as_str().unwrap_or_default()));
            }
        }
        deleted.sort();
        Ok(deleted)
    }

    /// Requests an operation as gardenlet does.
    pub(crate) async fn request(&self, operation: &str) -> Result<()> {
        let (api, name) = (self.workers(), &self.worker_name);
        let annotation = match operation {
            "reconcile" | "restore" | "migrate" => json!(operation),
            "delete" => {
                api.delete(name, &DeleteParams::default()).await?;
                Value::Null
            }
            other => bail!("no operation {other:?}"),
        };
        let patch = json!({"metadata": {"annotations": {"gardener.cloud/operation": annotation}}});
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Restores the given names in the state found here.
    pub(crate) fn in_given_names(&self, found: &Value) -> Result<Value> {
        let mut text = serde_json::to_string(found)?;
        for (given, own) in &self.namespaces {
            text = text.replace(own, given);
        }
        text = text.replace(&self.own_subscription(), MEASURED_SUBSCRIPTION);
        Ok(serde_json::from_str(&text)?)
    }
}

fn resource(group_version: &str, kind: &str) -> ApiResource {
    let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}
