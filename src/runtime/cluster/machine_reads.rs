//! I/O: reads of machine objects, in parallel where the order does not matter.

use std::fmt::Display;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ListParams, Request};
use kube::{Client, Resource, ResourceExt};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::cluster::error::ReadError;
use crate::cluster::identity::Identity;
use crate::cluster::machine_objects::{Cached, DeploymentText, MachineObjectCache};
use decisions::worker::machines::live_machine::{LiveMachine, LiveMachineSet};
use decisions::worker::machines::machine_objects::{DigestedObject, LiveDeployment, MachineObjects};
use wire::api::deployment::Deployment;
use wire::api::gotext::json::decode_lenient;

/// Name of machine-controller-manager's Deployment in each shoot namespace.
pub const MACHINE_CONTROLLER_MANAGER: &str = "machine-controller-manager";

fn api_error(what: impl Into<String>) -> impl FnOnce(kube::Error) -> ReadError {
    let what = what.into();
    move |source| ReadError::Api { what, source }
}

/// All machine objects of a namespace, complete.
///
/// # Errors
/// When a list can't be read or an object can't be decoded.
pub async fn machine_objects(client: &Client, namespace: &str) -> Result<MachineObjects, ReadError> {
    let (deployments, classes, class_secrets, machine_sets, machines) = tokio::try_join!(
        list::<DeploymentText>(client, namespace),
        list::<DigestedObject<Value>>(client, namespace),
        list::<DigestedObject<Secret>>(client, namespace),
        list::<LiveMachineSet>(client, namespace),
        list::<LiveMachine>(client, namespace),
    )?;
    let mut objects = MachineObjects::default();
    let name = |document: &Value| document["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let deployments = deployments.decoded(|text| decode_lenient(text).and_then(LiveDeployment::read_without_codes))?;
    objects.deployments = deployments.into_iter().map(|live| (name(&live.document), live)).collect();
    let class = |document: Value| Ok((name(&document), DigestedObject::class(document)?));
    objects.classes = classes.decoded(|text| decode_lenient(text).and_then(class))?.into_iter().collect();
    let secrets = class_secrets.decoded(decode_lenient::<Secret>)?.into_iter();
    objects.class_secrets = secrets.map(|secret| (secret.name_any(), DigestedObject::secret(secret))).collect();
    objects.machine_sets = machine_sets.decoded(decode_lenient)?;
    objects.machines = machines.decoded(decode_lenient)?;
    Ok(objects)
}

/// Lists the classes of a namespace and their Secrets into the store.
///
/// # Errors
/// When a list can't be read.
pub(crate) async fn renew_classes(
    client: &Client,
    namespace: &str,
    cache: &MachineObjectCache,
) -> Result<(), ReadError> {
    tokio::try_join!(
        renew_kind::<DigestedObject<Value>>(client, namespace, cache),
        renew_kind::<DigestedObject<Secret>>(client, namespace, cache),
    )?;
    Ok(())
}

/// Lists the users of classes into the store: deployments, machine sets and machines. Owners come first, so that no
/// object created meanwhile is missed.
///
/// # Errors
/// When a list can't be read.
pub(crate) async fn renew_users_of_classes(
    client: &Client,
    namespace: &str,
    cache: &MachineObjectCache,
) -> Result<(), ReadError> {
    renew_kind::<DeploymentText>(client, namespace, cache).await?;
    renew_kind::<LiveMachineSet>(client, namespace, cache).await?;
    renew_kind::<LiveMachine>(client, namespace, cache).await
}

async fn renew_kind<T: Cached>(client: &Client, namespace: &str, cache: &MachineObjectCache) -> Result<(), ReadError> {
    let read = T::store(cache).read();
    let list = list::<T>(client, namespace).await?;
    let object = |text| Identity::read(text).map(|identity| (identity, move || cache.kept(text)));
    read.of_namespace(namespace, list.version, list.decoded(object)?);
    Ok(())
}

/// A list of one kind, with its items as text.
struct ObjectTexts {
    kind: &'static str,
    version: u64,
    items: Vec<Box<RawValue>>,
}

impl ObjectTexts {
    /// Decodes all items with `read`. The error names the first one that fails.
    fn decoded<'a, T, E: Display>(&'a self, read: impl Fn(&'a str) -> Result<T, E>) -> Result<Vec<T>, ReadError> {
        let texts = self.items.iter().map(|item| item.get());
        texts
            .map(|text| {
                read(text).map_err(|reason| ReadError::Decode { what: self.name_of(text), reason: reason.to_string() })
            })
            .collect()
    }

    fn name_of(&self, text: &str) -> String {
        let document: Option<Value> = decode_lenient(text).ok();
        match document.as_ref().and_then(|document| document.pointer("/metadata/name")?.as_str()) {
            Some(name) => format!("{} {name:?}", self.kind),
            None => format!("a {}", self.kind),
        }
    }
}

async fn list<T: Cached>(client: &Client, namespace: &str) -> Result<ObjectTexts, ReadError> {
    #[derive(Deserialize)]
    struct List {
        metadata: ListMetadata,
        items: Vec<Box<RawValue>>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ListMetadata {
        resource_version: String,
    }
    let kind = <T::Kind as k8s_openapi::Resource>::KIND;
    let what = || <T::Kind as k8s_openapi::Resource>::URL_PATH_SEGMENT.to_owned();
    let unreadable = |reason: String| ReadError::Decode { what: what(), reason };
    let parameters = T::SELECTOR.map_or_else(ListParams::default, |selector| ListParams::default().labels(selector));
    let request = Request::new(<T::Kind as Resource>::url_path(&(), Some(namespace)))
        .list(&parameters)
        .map_err(|error| api_error(what())(kube::Error::BuildRequest(error)))?;
    let text = client.request_text(request).await.map_err(api_error(what()))?;
    let List { metadata, items } = decode_lenient(&text).map_err(|error| unreadable(error.to_string()))?;
    let version = metadata.resource_version.parse().map_err(|_| unreadable("its version is no number".to_owned()))?;
    Ok(ObjectTexts { kind, version, items })
}

/// The Deployment of machine-controller-manager, or `None` if it does not exist.
///
/// # Errors
/// When it can't be read.
pub(crate) async fn machine_controller(client: &Client, namespace: &str) -> Result<Option<Deployment>, ReadError> {
    let api: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    api.get_opt(MACHINE_CONTROLLER_MANAGER)
        .await
        .map_err(api_error(format!("Deployment {MACHINE_CONTROLLER_MANAGER:?}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cluster::test_support::{ApiServer, list as listed};

    /// An object with this name that serves as any kind.
    fn object(name: &Value) -> Value {
        let class = json!({"kind": "MachineClass", "name": "c"});
        json!({"metadata": {"name": name}, "spec": {"class": class, "template": {"spec": {"class": class}}}})
    }

    #[tokio::test]
    async fn reads_complete_machine_objects() {
        let server = ApiServer::new(|requested| listed(&[object(&format!("a-{}", requested.last()).into())]));
        let objects = machine_objects(&server.client, "ns").await.unwrap();
        let requested = server.requested();
        let mut lines: Vec<&str> = requested.iter().map(|requested| requested.line.as_str()).collect();
        lines.sort_unstable();
        const MACHINE_OBJECTS: &str = "GET /apis/machine.sapcloud.io/v1alpha1/namespaces/ns";
        let kinds = ["machineclasses", "machinedeployments", "machines", "machinesets"];
        let expected: Vec<String> = kinds.iter().map(|kind| format!("{MACHINE_OBJECTS}/{kind}")).collect();
        assert_eq!(lines[1..], expected);
        assert_eq!(lines[0], "GET /api/v1/namespaces/ns/secrets");
        for requested in &requested {
            let is_of_classes = requested.query.contains("labelSelector=gardener.cloud%2Fpurpose%3Dmachineclass");
            assert_eq!(is_of_classes, requested.last() == "secrets", "{requested:?}");
        }
        assert_eq!(objects.deployments.keys().collect::<Vec<_>>(), ["a-machinedeployments"]);
        assert!(
            objects.classes["a-machineclasses"].whole.is_some() && objects.class_secrets["a-secrets"].whole.is_some()
        );
        let [sets, machines] = [&objects.machine_sets[0].member, &objects.machines[0].member];
        assert_eq!((&*sets.name, &*machines.name, &*machines.class), ("a-machinesets", "a-machines", "c"));
    }

    #[tokio::test]
    async fn names_undecodable_object() {
        let refused = async |name: Value| {
            let server = ApiServer::new(move |requested| match requested.last() {
                "machines" => {
                    let mut machine = object(&name);
                    machine["spec"]["class"] = json!("planted-secret");
                    listed(&[machine])
                }
                _ => listed(&[]),
            });
            let error = machine_objects(&server.client, "ns").await.err().unwrap().to_string();
            assert!(!error.contains("planted-secret"), "{error}");
            error
        };
        let named = refused("m".into()).await;
        assert!(named.starts_with("Machine \"m\" can't be decoded: spec.class"), "{named}");
        let nameless = refused(Value::Null).await;
        assert!(nameless.starts_with("a Machine can't be decoded: spec.class"), "{nameless}");
    }
}
