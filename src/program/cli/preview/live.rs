//! Workers in a seed as the old side. Existing machine objects are compared, regardless of which program created them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt};
use serde_json::Value;

use super::pairs::{Key, Loaded, Observed, Unreadable, load_text};
use super::shoots::ShootReader;
use super::{Comparison, NewSide};
use crate::cli::evidence::{Evidence, no_match};
use crate::cli::progress::Progress;
use crate::cli::target::{Fallback, Reading, Scope, live_scope, not_listed};
use explanations::preview::{Baseline, CloudProfiles, Inputs, WorkerChange, compare};
use runtime::cluster::error::ReadError;
use runtime::cluster::machine_reads;
use runtime::cluster::secret_cache::SecretCache;
use runtime::process::threads::block_on;
use runtime::reader::files::NamedFile;
use wire::api::gardener::Worker;
use wire::api::gotext::json::{decode_lenient, to_go_json};

/// Number of Workers read concurrently.
const AT_ONCE: usize = 10;

/// Compares the Workers of the seed with the files, with NEW as derived by `made`, or with their own machine objects.
pub(super) fn compare_live(
    reading: &Reading,
    names: &[String],
    files: Option<Vec<NamedFile>>,
    evidence: Evidence,
    made: &NewSide,
    profiles: &CloudProfiles,
) -> anyhow::Result<Comparison> {
    let mut comparison = Comparison::new(evidence);
    let mut required = files.map(|files| load(files, &mut comparison, (profiles, &made.of_shoots))).transpose()?;
    let namespace = reading.namespace.as_deref();
    if let (Some(namespace), Some(required)) = (namespace, &mut required) {
        let known: BTreeSet<String> = required.keys().map(|key| key.0.clone()).collect();
        required.retain(|key, _| key.0 == namespace);
        if required.is_empty() && comparison.evidence.is_complete() {
            return Err(no_match("Worker of NEW in namespace", namespace, known.iter().map(String::as_str)));
        }
    }
    let observed = async {
        let client = reading.seed.client().await?;
        let scope = live_scope(&client, reading, names, Fallback::All).await?;
        let is_required = |key: &Key| required.as_ref().is_none_or(|required| required.contains_key(key));
        let observed = observe_workers(&client, reading, &scope, is_required, profiles).await?;
        anyhow::Ok((observed, scope))
    };
    let (Observed { loaded: mut observed, unreadable, .. }, scope) = block_on(observed)?;
    if let Some(required) = &mut required {
        required.retain(|key, _| scope.includes(&key.0, &key.1));
    }
    let is_old_empty = observed.is_empty() && unreadable.is_empty();
    match (&required, namespace) {
        (Some(required), _) => ensure!(!required.is_empty() || !comparison.evidence.is_complete(), "no Worker in NEW"),
        (None, Some(namespace)) => ensure!(!is_old_empty, "no Worker in namespace {namespace:?} of the cluster"),
        (None, None) => ensure!(!is_old_empty, "no Worker in the cluster"),
    }
    comparison.workers.extend(unreadable.iter().map(Unreadable::change));
    let Some(required) = required else {
        for old in observed.into_values() {
            let change = made.compare(&old, Baseline::Live, profiles, &mut comparison.replaced);
            comparison.workers.push(change);
        }
        keep_pools(&mut comparison, &scope);
        return Ok(comparison);
    };
    // Without its old side, a Worker would appear to be new.
    let is_readable = |key: &Key| unreadable.iter().all(|worker| worker.key != *key);
    for (key, new) in required.into_iter().filter(|(key, _)| is_readable(key)) {
        let old = observed.remove(&key);
        let live = old.as_ref().map_or(&new.live, |old| &old.live);
        let old = old.as_ref().map(|old| &old.inputs);
        let new = old.map_or_else(|| new.inputs.clone(), |old| new.inputs.clone().completed_by(old));
        comparison.workers.push(compare(old, Some(&new), live, Baseline::Live, profiles));
    }
    keep_pools(&mut comparison, &scope);
    Ok(comparison)
}

/// Leaves out pools that the names do not select.
fn keep_pools(comparison: &mut Comparison, scope: &Scope) {
    for worker in &mut comparison.workers {
        let WorkerChange { namespace, name, placements, .. } = worker;
        placements.retain(|placement| scope.includes_pool(namespace, name, &placement.pool));
    }
}

fn load(
    files: Vec<NamedFile>,
    comparison: &mut Comparison,
    context: (&CloudProfiles, &ShootReader),
) -> anyhow::Result<BTreeMap<Key, Loaded>> {
    let mut required = BTreeMap::new();
    for file in files {
        let loaded = file.text().and_then(|text| load_text(&text, &file, context).with_context(|| file.name()));
        match loaded {
            Ok((workers, warnings)) => {
                required.extend(workers);
                comparison.warnings.extend(warnings);
            }
            Err(error) => comparison.evidence.unread(&error),
        }
    }
    Ok(required)
}

/// Reads the selected Workers in a seed or one of its namespaces, with their inputs and machine objects. A Worker that
/// cannot be decoded does not affect others.
pub(in crate::cli) async fn observe_workers(
    client: &Client,
    reading: &Reading,
    scope: &Scope,
    is_required: impl Fn(&Key) -> bool,
    profiles: &CloudProfiles,
) -> anyhow::Result<Observed> {
    let resource = |kind, plural| {
        let kind = GroupVersionKind::gvk("extensions.gardener.cloud", "v1alpha1", kind);
        ApiResource::from_gvk_with_plural(&kind, plural)
    };
    let worker_resource = resource("Worker", "workers");
    let workers: Api<DynamicObject> = match scope.only_namespace() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &worker_resource),
        None => Api::all_with(client.clone(), &worker_resource),
    };
    let clusters: Api<DynamicObject> = Api::all_with(client.clone(), &resource("Cluster", "clusters"));
    let selected = match &reading.selector {
        Some(selector) => ListParams::default().labels(selector.as_str()),
        None => ListParams::default(),
    };
    let listed = match workers.list(&selected).await {
        Ok(listed) => listed,
        Err(error) => return Err(not_listed(client, &[], scope.only_namespace(), error).await),
    };
    let mut observed = Observed::default();
    let mut chosen = Vec::new();
    for worker in listed.items {
        let namespace = worker.namespace().unwrap_or_default();
        let name = worker.name_any();
        if scope.includes(&namespace, &name) && is_required(&(namespace.clone(), name)) {
            chosen.push(worker);
        } else {
            observed.other_namespaces.insert(namespace);
        }
    }
    let observe = async |worker: DynamicObject| -> anyhow::Result<_> {
        let key = (worker.namespace().unwrap_or_default(), worker.name_any());
        let cluster = clusters.get_opt(&key.0).await.with_context(|| format!("Cluster {:?}", key.0))?;
        let worker = serde_json::to_value(worker)?;
        match load_live(client, &key.0, worker.clone(), cluster, profiles).await {
            Ok(loaded) => Ok((key, Ok(loaded))),
            Err(LoadError::Content(reason)) => Ok((key.clone(), Err(Unreadable { key, worker, reason }))),
            Err(LoadError::Api(error)) => Err(error.into()),
        }
    };
    let progress = Progress::new("Workers read", chosen.len());
    let mut workers = stream::iter(chosen).map(observe).buffer_unordered(AT_ONCE);
    while let Some((key, worker)) = workers.try_next().await? {
        progress.step();
        match worker {
            Ok(loaded) => drop(observed.loaded.insert(key, loaded)),
            Err(unreadable) => observed.unreadable.push(unreadable),
        }
    }
    observed.unreadable.sort_by(|left, right| left.key.cmp(&right.key));
    Ok(observed)
}

/// Why a Worker was not loaded.
enum LoadError {
    /// Part of it cannot be decoded.
    Content(String),
    /// The API server returned an error or did not respond.
    Api(ReadError),
}

impl From<ReadError> for LoadError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Api { .. } => Self::Api(error),
            ReadError::Decode { .. } | ReadError::Cluster { .. } => Self::Content(error.to_string()),
        }
    }
}

async fn load_live(
    client: &Client,
    namespace: &str,
    worker: Value,
    cluster: Option<DynamicObject>,
    profiles: &CloudProfiles,
) -> Result<Loaded, LoadError> {
    let typed: Worker = decode_lenient(&to_go_json(&worker)).map_err(|error| LoadError::Content(error.to_string()))?;
    let secrets = SecretCache::default().read(client, &typed).await?;
    let live = machine_reads::machine_objects(client, namespace).await?;
    let cluster =
        cluster.map(serde_json::to_value).transpose().map_err(|error| LoadError::Content(error.to_string()))?;
    let inputs = Inputs::new(worker, cluster, secrets, profiles)
        .map_err(|error| LoadError::Content(format!("Cluster {namespace:?}: {}", error.within("spec.cloudProfile"))))?;
    Ok(Loaded { inputs, live })
}
