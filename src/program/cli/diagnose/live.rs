//! Reads the objects of shoot namespaces in a seed. Of Secrets, it requests only metadata.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DynamicObject, ListParams};
use kube::{Client, Resource, ResourceExt};
use serde_json::{Value, json};

use super::requests::{document, list, list_params, resource};
use super::{DiagnosedKinds, Found, Namespace};
use crate::cli::evidence::no_match;
use crate::cli::target::{Fallback, Given, Reading, Scope, client_for, live_scope, not_listed};
use explanations::diagnose::ObjectKind;
use runtime::cluster::machine_reads::MACHINE_CONTROLLER_MANAGER;
use runtime::process::failure_reason::reason;
use wire::api::deployment::Deployment;
use wire::api::gardener::{Cluster, Worker};
use wire::api::machine::{Machine, MachineClass, MachineDeployment, MachineSet};

/// Reads what the names and flags select.
pub(super) async fn read(reading: &Reading, given: &Given, kinds: DiagnosedKinds) -> anyhow::Result<Found> {
    let client = client_for(reading, given).await?;
    let scope = live_scope(&client, reading, &given.names, Fallback::ContextNamespace).await?;
    let namespaces = match &scope {
        Scope::All => super::seed::all_namespaces(&client, reading, given, kinds).await?,
        Scope::Targets(targets) => {
            let names: BTreeSet<&str> = targets.iter().map(|target| target.namespace.as_str()).collect();
            let mut namespaces = Vec::new();
            for name in names {
                namespaces.push(namespace(&client, name, reading).await?);
            }
            namespaces
        }
    };
    Ok(Found { namespaces, scope, unread: Vec::new() })
}

/// Reads a shoot namespace, which must have a Worker. Only a failure to list the Workers is an error; other failures
/// are recorded as unread.
pub(in crate::cli) async fn namespace(client: &Client, name: &str, reading: &Reading) -> anyhow::Result<Namespace> {
    let selected = list_params(reading);
    let workers = match list::<Worker>(client, Some(name), &selected).await {
        Ok(workers) => workers,
        Err(error) => return Err(not_listed(client, &[name.to_owned()], Some(name), error).await),
    };
    if workers.is_empty() {
        let known = known_namespaces(client).await;
        return Err(no_match("Worker in namespace", name, known.iter().map(String::as_str)));
    }
    let mut namespace = Namespace { name: name.to_owned(), objects: workers, ..Namespace::default() };
    let all = ListParams::default();
    let (cluster, deployments, sets, machines, classes, secrets, managers) = tokio::join!(
        one::<Cluster>(Api::all_with(client.clone(), &resource::<Cluster>()), name),
        list::<MachineDeployment>(client, Some(name), &all),
        list::<MachineSet>(client, Some(name), &all),
        list::<Machine>(client, Some(name), &all),
        list::<MachineClass>(client, Some(name), &all),
        secrets(client, name),
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
async fn known_namespaces(client: &Client) -> BTreeSet<String> {
    let listed = workers_of_seed(client).list_metadata(&ListParams::default()).await;
    listed.map(|listed| listed.items.iter().filter_map(ResourceExt::namespace).collect()).unwrap_or_default()
}

/// Namespaces with selected Workers.
pub(in crate::cli) async fn namespaces_of_workers(
    client: &Client,
    reading: &Reading,
) -> anyhow::Result<BTreeSet<String>> {
    match workers_of_seed(client).list_metadata(&list_params(reading)).await {
        Ok(listed) => Ok(listed.items.iter().filter_map(ResourceExt::namespace).collect()),
        Err(error) => Err(not_listed(client, &[], None, error).await),
    }
}

fn workers_of_seed(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &resource::<Worker>())
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
