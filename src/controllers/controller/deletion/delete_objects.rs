//! I/O: deletes many objects in parallel. A missing object is not an error; the first failure is reported after all
//! were tried.

use futures::{StreamExt, stream};
use k8s_openapi::Resource;
use k8s_openapi::api::core::v1::Secret;
use serde_json::Value;

use crate::controller::reconcile::error::ReconcileError;
use decisions::worker::machines::live_machine::LiveMachineSet;
use decisions::worker::machines::machine_objects::DigestedObject;
use decisions::worker::plan::orphans::{Deletions, Seen};
use runtime::cluster::PARALLEL_REQUESTS;
use runtime::cluster::machine_objects::{Cached, DeploymentText};
use runtime::cluster::machine_writes::MachineObjectWriter;

/// Deletes deployments and machine sets, then classes, then their Secrets. machine-controller-manager keeps a
/// finalizer on each Secret until its class is deleted.
///
/// # Errors
/// If an object can't be deleted.
pub(crate) async fn delete_objects(apis: &MachineObjectWriter, deletions: Deletions<'_>) -> Result<(), ReconcileError> {
    let Deletions { deployments, machine_sets, classes, class_secrets } = deletions;
    delete_all::<DeploymentText>(apis, deployments).await?;
    delete_all::<LiveMachineSet>(apis, machine_sets).await?;
    delete_all::<DigestedObject<Value>>(apis, classes).await?;
    delete_all::<DigestedObject<Secret>>(apis, class_secrets).await
}

async fn delete_all<T: Cached>(apis: &MachineObjectWriter, objects: Vec<Seen<'_>>) -> Result<(), ReconcileError> {
    let deletions = objects.into_iter().map(|(name, uid)| async move {
        let kind = T::Kind::KIND;
        apis.delete::<T>(name, uid).await.map_err(|source| ReconcileError::Delete {
            kind,
            name: name.to_owned(),
            source,
        })
    });
    let deletions: Vec<_> = deletions.collect();
    let mut results = stream::iter(deletions).buffer_unordered(PARALLEL_REQUESTS);
    let mut outcome = Ok(());
    while let Some(result) = results.next().await {
        outcome = outcome.and(result);
    }
    outcome
}
