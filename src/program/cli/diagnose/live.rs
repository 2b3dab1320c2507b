//! Reads the objects of a shoot namespace in a seed. Of Secrets, it requests only metadata.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::{Client, Resource, ResourceExt};
use serde_json::{Value, json};

use super::Namespace;
use explanations::diagnose::ObjectKind;
use runtime::cluster::machine_reads::MACHINE_CONTROLLER_MANAGER;
use runtime::cluster::seed::{Seed, workers_unlisted};
use runtime::process::failure_reason::reason;
use wire::api::deployment::Deployment;
use wire::api::gardener::{Cluster, Worker};
use wire::api::machine::{Machine, MachineClass, MachineDeployment, MachineSet};

/// Reads a shoot namespace. Only a failure to list the Workers is an error; other failures are recorded as unread.
pub(in crate::cli) async fn namespace(seed: &Seed, name: &str) -> anyhow::Result<Namespace> {
    let client = seed.client().await?;
    let workers = list::<Worker>(&client, name).await.map_err(workers_unlisted)?;
    let namespaces = if workers.is_empty() { namespaces_of_workers(&client).await } else { BTreeSet::new() };
    let mut namespace = Namespace { objects: workers, namespaces, ..Namespace::default() };
    let (cluster, deployments, sets, machines, classes, secrets, managers) = tokio::join!(
        one::<Cluster>(Api::all_with(client.clone(), &resource::<Cluster>()), name),
        list::<MachineDeployment>(&client, name),
        list::<MachineSet>(&client, name),
        list::<Machine>(&client, name),
        list::<MachineClass>(&client, name),
        secrets(&client, name),
        one::<Deployment>(
            Api::namespaced_with(client.clone(), name, &resource::<Deployment>()),
            MACHINE_CONTROLLER_MANAGER
        ),
    );
    for (kind, read) in [
        (ObjectKind::Cluster, cluster),
        (ObjectKind::MachineDeployment, deployments),
        (ObjectKind::MachineSet, sets),
        (ObjectKind::Machine, machines),
        (ObjectKind::MachineClass, classes),
        (ObjectKind::Secret, secrets),
        (ObjectKind::Deployment, managers),
    ] {
        match read {
            Ok(objects) => {
                namespace.known.insert(kind);
                namespace.objects.extend(objects);
            }
            Err(error) => namespace.unread.push(format!("{}: {}", kind.as_str(), reason(&error))),
        }
    }
    Ok(namespace)
}

/// Namespaces with Workers, to suggest the closest name. Empty if the user may not list Workers in all namespaces.
async fn namespaces_of_workers(client: &Client) -> BTreeSet<String> {
    let workers: Api<DynamicObject> = Api::all_with(client.clone(), &resource::<Worker>());
    let listed = workers.list_metadata(&ListParams::default()).await;
    listed.map(|listed| listed.items.iter().filter_map(ResourceExt::namespace).collect()).unwrap_or_default()
}

fn resource<T: Resource<DynamicType = ()>>() -> ApiResource {
    ApiResource::erase::<T>(&())
}

async fn list<T: Resource<DynamicType = ()>>(client: &Client, namespace: &str) -> Result<Vec<Value>, kube::Error> {
    let resource = resource::<T>();
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    let listed = api.list(&ListParams::default()).await?;
    // Items of a list may omit their kind.
    listed.items.into_iter().map(|object| document(object, &resource.kind)).collect()
}

async fn one<T: Resource<DynamicType = ()>>(api: Api<DynamicObject>, name: &str) -> Result<Vec<Value>, kube::Error> {
    let kind = T::kind(&());
    api.get_opt(name).await?.into_iter().map(|object| document(object, &kind)).collect()
}

async fn secrets(client: &Client, namespace: &str) -> Result<Vec<Value>, kube::Error> {
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let listed = api.list_metadata(&ListParams::default()).await?;
    let metadata = listed
        .items
        .iter()
        .map(|secret| json!({"name": secret.name_any(), "namespace": namespace, "labels": secret.labels()}));
    Ok(metadata.map(|metadata| json!({"kind": "Secret", "metadata": metadata})).collect())
}

fn document(object: DynamicObject, kind: &str) -> Result<Value, kube::Error> {
    let mut document = serde_json::to_value(object).map_err(kube::Error::SerdeError)?;
    document["kind"] = kind.into();
    Ok(document)
}
