//! Reads machine deployments, from a seed or from files.

use std::collections::BTreeSet;

use anyhow::{Context, bail};
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::{Client, ResourceExt};
use serde_json::Value;

use crate::cli::evidence::{Evidence, no_match};
use crate::cli::target::{
    Fallback, Given, NameIndex, Reading, Scope, Target, client_for, live_scope, not_listed, targets_in_files,
};
use decisions::worker::machines::machine_objects::LiveDeployment;
use runtime::reader::files::{files, name_of};
use wire::api::gardener::Worker;
use wire::api::machine::MachineDeployment;

/// Reads the machine deployments that the names and flags select in a seed.
pub(super) async fn of_seed(reading: &Reading, given: &Given) -> anyhow::Result<Vec<LiveDeployment>> {
    let client = client_for(reading, given).await?;
    if let [name] = given.names.as_slice()
        && let Some((namespace, name)) = name.split_once('/')
        && let Some(deployment) = named_deployment(&client, namespace, name).await?
    {
        return Ok(vec![deployment]);
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
    Ok(deployments)
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

/// Reads the machine deployments that the names and flags select in files.
pub(super) fn of_files(
    reading: &Reading,
    given: &Given,
    evidence: &mut Evidence,
) -> anyhow::Result<Vec<LiveDeployment>> {
    let mut deployments = Vec::new();
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
            if object["kind"] == "MachineDeployment" {
                let deployment = LiveDeployment::read_without_codes(object);
                deployments.push(deployment.context("a MachineDeployment is malformed").with_context(|| file.name())?);
            }
        }
    }
    if deployments.is_empty() {
        let names: Vec<String> = given.files.iter().map(|file| name_of(file)).collect();
        bail!("{}: no MachineDeployment in it", names.join(", "));
    }
    let scope = targets_in_files(&index, reading, &given.names)?;
    let known: BTreeSet<String> =
        deployments.iter().filter_map(|live| live.object.metadata.namespace.clone()).collect();
    deployments.retain(|live| {
        let namespace = live.object.metadata.namespace.as_deref().unwrap_or_default();
        is_selected(live, &scope) && selected.as_ref().is_none_or(|selected| selected.contains(namespace))
    });
    if deployments.is_empty() {
        let wanted = reading.namespace.as_deref().unwrap_or("(all namespaces)");
        return Err(no_match("MachineDeployment in namespace", wanted, known.iter().map(String::as_str)));
    }
    Ok(deployments)
}

fn namespace_of(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or_default()
}
