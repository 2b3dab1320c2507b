//! Reads all shoot namespaces of a seed with one list per kind.
//!
//! Clusters and Secrets are left out, because those of a seed have hundreds of megabytes. Of machine classes, only the
//! names are read.

use std::collections::BTreeMap;

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use serde_json::{Value, json};

use super::requests::{list, list_params};
use super::{DiagnosedKinds, Namespace};
use crate::cli::target::{Given, Reading, not_listed};
use explanations::diagnose::ObjectKind;
use runtime::cluster::machine_reads::MACHINE_CONTROLLER_MANAGER;
use runtime::process::failure_reason::reason;
use wire::api::deployment::Deployment;
use wire::api::gardener::Worker;
use wire::api::machine::{Machine, MachineClass, MachineDeployment, MachineSet};

/// Reads the namespaces with a selected Worker, sorted by name.
pub(super) async fn all_namespaces(
    client: &Client,
    reading: &Reading,
    given: &Given,
    kinds: DiagnosedKinds,
) -> anyhow::Result<Vec<Namespace>> {
    let workers = match list::<Worker>(client, None, &list_params(reading)).await {
        Ok(workers) => workers,
        Err(error) => return Err(not_listed(client, &given.names, None, error).await),
    };
    let mut namespaces: BTreeMap<String, Namespace> = BTreeMap::new();
    for worker in workers {
        let name = namespace_of(&worker).to_owned();
        let namespace = namespaces.entry(name.clone()).or_insert_with(|| Namespace { name, ..Namespace::default() });
        namespace.objects.push(worker);
    }
    let all = ListParams::default();
    let managers = ListParams::default().fields(&format!("metadata.name={MACHINE_CONTROLLER_MANAGER}"));
    let (deployments, machines) =
        tokio::join!(list::<MachineDeployment>(client, None, &all), list::<Machine>(client, None, &all));
    add(&mut namespaces, ObjectKind::MachineDeployment, deployments);
    add(&mut namespaces, ObjectKind::Machine, machines);
    if kinds == DiagnosedKinds::All {
        let (sets, classes, managers) = tokio::join!(
            list::<MachineSet>(client, None, &all),
            class_names(client),
            list::<Deployment>(client, None, &managers),
        );
        add(&mut namespaces, ObjectKind::MachineSet, sets);
        add(&mut namespaces, ObjectKind::MachineClass, classes);
        add(&mut namespaces, ObjectKind::Deployment, managers);
    }
    Ok(namespaces.into_values().collect())
}

/// Adds the objects of a kind to their namespaces, or to each namespace that they are not known.
fn add(namespaces: &mut BTreeMap<String, Namespace>, kind: ObjectKind, read: Result<Vec<Value>, kube::Error>) {
    let objects = match read {
        Ok(objects) => objects,
        Err(error) => {
            let unread = format!("{}: {}", kind.as_str(), reason(&error));
            // The same failure is reported once.
            if let Some(first) = namespaces.values_mut().next() {
                first.unread.push(unread);
            }
            return;
        }
    };
    for namespace in namespaces.values_mut() {
        namespace.known.insert(kind);
    }
    for object in objects {
        if let Some(namespace) = namespaces.get_mut(namespace_of(&object)) {
            namespace.objects.push(object);
        }
    }
}

async fn class_names(client: &Client) -> Result<Vec<Value>, kube::Error> {
    let classes: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::erase::<MachineClass>(&()));
    let listed = classes.list_metadata(&ListParams::default()).await?;
    let class = |name: &Option<String>, namespace: &Option<String>| json!({"kind": "MachineClass", "metadata": {"name": name, "namespace": namespace}});
    Ok(listed.items.iter().map(|object| class(&object.metadata.name, &object.metadata.namespace)).collect())
}

fn namespace_of(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or_default()
}
