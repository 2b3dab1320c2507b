//! Reads machine deployments, from a seed or from files.

use std::collections::BTreeSet;

use anyhow::{Context, bail};
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::{Client, Resource, ResourceExt};
use serde_json::Value;

use crate::cli::evidence::{Evidence, no_match};
use crate::cli::target::{
    Fallback, Given, NameIndex, Reading, Scope, Target, client_for, live_scope, not_listed, targets_in_files,
};
use decisions::worker::machines::machine_objects::LiveDeployment;
use runtime::reader::files::{files, name_of};
use wire::api::gardener::{Cluster, Worker};
use wire::api::machine::{Machine, MachineDeployment};

/// What explains rolls.
pub(super) struct Records {
    pub(super) deployments: Vec<LiveDeployment>,
    /// Workers and Clusters, as far as they are known, and selected machines.
    pub(super) objects: Vec<Value>,
    pub(super) scope: Scope,
}

impl Records {
    /// The selected machines.
    pub(super) fn machines(&self) -> impl Iterator<Item = &Value> {
        let Scope::Targets(targets) = &self.scope else { return Vec::new().into_iter() };
        let is_target = |machine: &&Value| {
            let metadata = &machine["metadata"];
            let is_it = |target: &Target| {
                metadata["namespace"] == *target.namespace
                    && target.machine.as_ref().is_some_and(|name| metadata["name"] == **name)
            };
            machine["kind"] == "Machine" && targets.iter().any(is_it)
        };
        self.objects.iter().filter(is_target).collect::<Vec<_>>().into_iter()
    }

    /// Whether the names select machine deployments or machines, not shoots.
    pub(super) fn is_about_deployments(&self) -> bool {
        matches!(&self.scope, Scope::Targets(targets) if targets.iter().any(|target| target.deployment.is_some()))
    }
}

/// Reads what the names and flags select in a seed.
pub(super) async fn of_seed(reading: &Reading, given: &Given) -> anyhow::Result<Records> {
    let client = client_for(reading, given).await?;
    if let [name] = given.names.as_slice()
        && let Some((namespace, name)) = name.split_once('/')
        && let Some(deployment) = named_deployment(&client, namespace, name).await?
    {
        let target = Target { namespace: namespace.to_owned(), deployment: Some(name.to_owned()), ..Target::default() };
        let scope = Scope::Targets(vec![target]);
        return Ok(Records { deployments: vec![deployment], objects: Vec::new(), scope });
    }
    let scope = match live_scope(&client, reading, &given.names, Fallback::ContextNamespace).await {
        Ok(scope) => scope,
        Err(error) => match given.names.as_slice() {
            [name] if name.contains('/') => {
                return Err(error.context(format!("MachineDeployment {name} does not exist")));
            }
            _ => return Err(error),
        },
    };
    let mut deployments = Vec::new();
    for namespace in namespaces(&client, reading, &scope).await? {
        deployments.extend(list(&client, namespace.as_deref()).await?);
    }
    deployments.retain(|live| is_selected(live, &scope));
    if deployments.is_empty() {
        bail!("no machine deployment of that name, or none in the namespace");
    }
    let objects = surroundings(&client, &scope).await;
    Ok(Records { deployments, objects, scope })
}

/// The Clusters, Workers and machines of the targets. They only add to records, so failures leave gaps.
async fn surroundings(client: &Client, scope: &Scope) -> Vec<Value> {
    let Scope::Targets(targets) = scope else { return Vec::new() };
    let mut objects = Vec::new();
    let namespaces: BTreeSet<&str> = targets.iter().map(|target| target.namespace.as_str()).collect();
    for namespace in namespaces {
        objects.extend(document(&all::<Cluster>(client), namespace, "Cluster").await);
        if let Ok(workers) = within::<Worker>(client, namespace).list(&ListParams::default()).await {
            objects.extend(workers.items.into_iter().filter_map(|worker| with_kind(worker, "Worker")));
        }
    }
    for target in targets {
        if let Some(machine) = &target.machine {
            objects.extend(document(&within::<Machine>(client, &target.namespace), machine, "Machine").await);
        }
    }
    objects
}

fn all<Kind: Resource<DynamicType = ()>>(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &ApiResource::erase::<Kind>(&()))
}

fn within<Kind: Resource<DynamicType = ()>>(client: &Client, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &ApiResource::erase::<Kind>(&()))
}

async fn document(api: &Api<DynamicObject>, name: &str, kind: &str) -> Option<Value> {
    with_kind(api.get_opt(name).await.ok()??, kind)
}

fn with_kind(object: DynamicObject, kind: &str) -> Option<Value> {
    let mut document = serde_json::to_value(object).ok()?;
    document["kind"] = kind.into();
    Some(document)
}

/// Gets a machine deployment without other requests, because its reader may have no further rights.
async fn named_deployment(client: &Client, namespace: &str, name: &str) -> anyhow::Result<Option<LiveDeployment>> {
    let is_name =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte));
    if !is_name(namespace) || !is_name(name) {
        return Ok(None);
    }
    let title = || format!("MachineDeployment {namespace}/{name}");
    let api: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), namespace, &ApiResource::erase::<MachineDeployment>(&()));
    let Some(object) = api.get_opt(name).await.with_context(title)? else { return Ok(None) };
    LiveDeployment::read_without_codes(serde_json::to_value(object)?).map(Some).with_context(title)
}

/// The namespaces to list; `None` for all of them.
async fn namespaces(client: &Client, reading: &Reading, scope: &Scope) -> anyhow::Result<BTreeSet<Option<String>>> {
    let of_scope: BTreeSet<Option<String>> = match scope {
        Scope::All => BTreeSet::from([None]),
        Scope::Targets(targets) => targets.iter().map(|target| Some(target.namespace.clone())).collect(),
    };
    let Some(selector) = &reading.selector else { return Ok(of_scope) };
    let mut selected = BTreeSet::new();
    for namespace in of_scope {
        let resource = ApiResource::erase::<Worker>(&());
        let workers: Api<DynamicObject> = match &namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        match workers.list_metadata(&ListParams::default().labels(selector.as_str())).await {
            Ok(listed) => selected.extend(listed.items.iter().map(ResourceExt::namespace)),
            Err(error) => return Err(not_listed(client, &[], namespace.as_deref(), error).await),
        }
    }
    Ok(selected)
}

async fn list(client: &Client, namespace: Option<&str>) -> anyhow::Result<Vec<LiveDeployment>> {
    let resource = ApiResource::erase::<MachineDeployment>(&());
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let listed = api.list(&ListParams::default()).await.context("machine deployments can't be listed")?;
    let read = |object: DynamicObject| {
        let name = object.name_any();
        LiveDeployment::read_without_codes(serde_json::to_value(object)?)
            .with_context(|| format!("MachineDeployment {name:?}"))
    };
    listed.items.into_iter().map(read).collect()
}

fn is_selected(live: &LiveDeployment, scope: &Scope) -> bool {
    let Scope::Targets(targets) = scope else { return true };
    let metadata = &live.object.metadata;
    let is_it = |target: &Target| {
        metadata.namespace.as_deref().unwrap_or_default() == target.namespace
            && target.pool.as_deref().is_none_or(|pool| live.pool() == Some(pool))
            && (target.deployment.is_none() || target.deployment == metadata.name)
    };
    targets.iter().any(is_it)
}

/// Reads what the names and flags select in files.
pub(super) fn of_files(reading: &Reading, given: &Given, evidence: &mut Evidence) -> anyhow::Result<Records> {
    let mut deployments = Vec::new();
    let mut objects = Vec::new();
    let mut index = NameIndex::default();
    let mut selected: Option<BTreeSet<String>> = reading.selector.as_ref().map(|_| BTreeSet::new());
    for file in evidence.note_skipped(files(&given.files)) {
        for object in file.objects()? {
            index.add(&object);
            if let (Some(selected), Some(selector)) = (&mut selected, &reading.selector)
                && object["kind"] == "Worker"
                && selector.selects(&object)
            {
                selected.insert(namespace_of(&object).to_owned());
            }
            match object["kind"].as_str() {
                Some("MachineDeployment") => {
                    let deployment = LiveDeployment::read_without_codes(object);
                    let deployment = deployment.context("a MachineDeployment is malformed");
                    deployments.push(deployment.with_context(|| file.name())?);
                }
                Some("Worker" | "Cluster" | "Machine") => objects.push(object),
                _ => {}
            }
        }
    }
    if deployments.is_empty() {
        let names: Vec<String> = given.files.iter().map(|file| name_of(file)).collect();
        bail!("{}: no MachineDeployment in it", names.join(", "));
    }
    index.add_namespaces_without_worker();
    let scope = targets_in_files(&index, reading, &given.names)?;
    let known: BTreeSet<String> =
        deployments.iter().filter_map(|live| live.object.metadata.namespace.clone()).collect();
    deployments.retain(|live| {
        let namespace = live.object.metadata.namespace.as_deref().unwrap_or_default();
        is_selected(live, &scope) && selected.as_ref().is_none_or(|selected| selected.contains(namespace))
    });
    if deployments.is_empty() {
        let required = reading.namespace.as_deref().unwrap_or("(all namespaces)");
        return Err(no_match("MachineDeployment in namespace", required, known.iter().map(String::as_str)));
    }
    Ok(Records { deployments, objects, scope })
}

fn namespace_of(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or_default()
}
