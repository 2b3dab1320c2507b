//! I/O step of a shoot that has moved to this seed: its machines, which run on at the cloud, get their objects back
//! (docs/contract.md#migration).
//!
//! ```text
//!  machine sets, machines ──► class, Secret, deployment ──► machine-controller-manager starts ──► as any other reconcile
//! ```
//!
//! A deployment is made after all that it owns, so one that exists is back: a reconcile that begins after a crash brings
//! back only what belongs to deployments that do not exist, and nothing that machine-controller-manager has deleted since.

use std::collections::BTreeMap;

use futures::{StreamExt, stream};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use tracing::info;

use crate::api::machine::{Machine, MachineSet};
use crate::cluster::PARALLEL_REQUESTS;
use crate::cluster::garden::{Garden, GardenError};
use crate::process::failure_reason::reason;
use crate::provider::WorkerContext;
use crate::worker::machine_objects::MachineObjects;
use crate::worker::machine_state::{DeploymentState, KeptDocument, MachineState, MachineStateError};
use crate::worker::plan::Plan;

/// Objects that are in memory as documents at a time.
const OBJECTS_AT_A_TIME: usize = 100;

/// Why the machines of a shoot can't be brought back.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RestoreError {
    /// They are not in the Worker and can't be had from the garden.
    #[error(transparent)]
    Garden(#[from] GardenError),
    /// What was kept of them can't be read.
    #[error(transparent)]
    State(#[from] MachineStateError),
    /// An object can't be made.
    #[error("could not restore {kind} '{namespace}/{name}': {}", reason(source))]
    Create {
        /// Kind of the object.
        kind: &'static str,
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Why.
        source: kube::Error,
    },
    /// What was kept is no object that can be sent.
    #[error("{kind} of a kept machine deployment is no object: {source}")]
    Document {
        /// Kind of the object.
        kind: &'static str,
        /// Why.
        source: serde_json::Error,
    },
}

/// Makes the machine sets and machines of all planned deployments that do not exist yet and were kept. Returns the
/// replicas of these deployments.
///
/// # Errors
/// When what was kept can't be had or read, or an object can't be made; then no deployment may be made either.
pub(crate) async fn bring_back(
    client: &Client,
    garden: &Garden,
    context: &WorkerContext<'_>,
    plan: &Plan,
    live: &MachineObjects,
) -> Result<BTreeMap<String, i32>, RestoreError> {
    let mut missing = plan.wanted_deployments();
    missing.retain(|name| !live.deployments.contains_key(&name.0));
    if missing.is_empty() {
        return Ok(BTreeMap::new());
    }
    let state = machine_state(garden, context).await?;
    let kept: Vec<(&str, &DeploymentState)> =
        missing.iter().filter_map(|name| Some((name.0.as_str(), state.of_deployment(&name.0)?))).collect();
    info!(deployments = missing.len(), kept = kept.len(), "bringing machines back");
    let namespace = context.worker.metadata.namespace.as_deref().unwrap_or_default();
    let sets = kept.iter().flat_map(|(_, state)| state.machine_sets(namespace));
    create_all(&api::<MachineSet>(client, namespace), "MachineSet", namespace, sets).await?;
    let machines = kept.iter().flat_map(|(_, state)| state.machines(namespace));
    create_all(&api::<Machine>(client, namespace), "Machine", namespace, machines).await?;
    Ok(kept.into_iter().map(|(name, state)| (name.to_owned(), state.replicas)).collect())
}

/// What was kept, in the Worker or in the garden.
async fn machine_state(garden: &Garden, context: &WorkerContext<'_>) -> Result<MachineState, RestoreError> {
    if let Some(document) = &context.worker.status.state {
        return Ok(MachineState::read(document.get())?);
    }
    let of_shoot = |text: &Option<String>| text.clone().unwrap_or_default();
    let (namespace, name) = (of_shoot(&context.shoot.metadata.namespace), of_shoot(&context.shoot.metadata.name));
    let shoot_state = garden.shoot_state(&namespace, &name).await?;
    Ok(shoot_state.machine_state().map(|document| MachineState::read(document.get())).transpose()?.unwrap_or_default())
}

fn api<K>(client: &Client, namespace: &str) -> Api<DynamicObject>
where
    K: kube::Resource<DynamicType = ()>,
{
    Api::namespaced_with(client.clone(), namespace, &ApiResource::erase::<K>(&()))
}

/// Creates objects side by side. One failure is reported after all were tried.
async fn create_all(
    api: &Api<DynamicObject>,
    kind: &'static str,
    namespace: &str,
    mut documents: impl Iterator<Item = KeptDocument> + Send,
) -> Result<(), RestoreError> {
    let mut outcome = Ok(());
    loop {
        // A few at a time: as documents they take ten times the memory.
        let some: Vec<_> = documents.by_ref().take(OBJECTS_AT_A_TIME).collect();
        if some.is_empty() {
            return outcome;
        }
        let creations = some.into_iter().map(|document| create(api.clone(), kind, namespace.to_owned(), document));
        let creations: Vec<_> = creations.collect();
        let mut results = stream::iter(creations).buffer_unordered(PARALLEL_REQUESTS);
        while let Some(result) = results.next().await {
            outcome = outcome.and(result);
        }
    }
}

/// Creates an object; one that exists is left as it is.
async fn create(
    api: Api<DynamicObject>,
    kind: &'static str,
    namespace: String,
    document: KeptDocument,
) -> Result<(), RestoreError> {
    let document = document?;
    let name = document["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let object = serde_json::from_value(document).map_err(|source| RestoreError::Document { kind, source })?;
    match api.create(&PostParams::default(), &object).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        Err(source) => Err(RestoreError::Create { kind, namespace, name, source }),
    }
}
