//! I/O step of a deletion: keeps the classes usable that machines still need, as far as they can be planned. Errors
//! do not block the deletion.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::controller::reconcile::apply::{Applied, ApplyError, apply};
use crate::controller::reconcile::error::ReconcileError;
use crate::controller::reconcile::reconcile_context::ReconcileContext;
use decisions::worker::deletion::deletion_prerequisites::{DeletionPrerequisites, repairs};
use decisions::worker::machines::machine_objects::MachineObjects;
use decisions::worker::plan::desired::{CloudView, DesiredState};
use decisions::worker::status::reconcile_outcome::Failure;
use runtime::cluster::error::ReadError;
use wire::api::gardener::{Cluster, Worker};
use wire::api::secret::Secrets;

/// User data Secrets are not watched, and a write that was refused as outdated has to be retried.
const UNWATCHED_PERIOD: Duration = Duration::from_secs(10);

/// Result of a repair.
pub(crate) struct RepairResult {
    /// The current machine objects.
    pub(crate) live: MachineObjects,
    /// Prerequisites of machines that can't be created.
    pub(crate) missing: Option<Failure>,
    pub(crate) writes: usize,
    /// When to reconcile again even without an event.
    pub(crate) requeue_after: Option<Duration>,
}

/// Writes missing or differing classes, and their Secrets, if they exist or are in use. Sends no requests to clouds:
/// the dependencies of pools are read from the provider status.
///
/// # Errors
/// If machine objects can't be read. [`ReconcileError::WorkerChanged`] if the Worker changed in the meantime.
pub(crate) async fn repair_classes(
    context: &ReconcileContext<'_>,
    worker: &Worker,
    cluster: Option<&Cluster>,
    secrets: &Result<Secrets, ReadError>,
    mut live: MachineObjects,
) -> Result<RepairResult, ReconcileError> {
    let shoot = &context.shoot;
    let namespace = shoot.name();
    let planned = match secrets {
        Ok(secrets) => DesiredState::of_worker(context.provider, worker, cluster, secrets, CloudView::Context)
            .map(|desired| desired.beside(shoot.others()).plan)
            .map_err(|error| Failure { message: error.to_string(), codes: error.code().into_iter().collect() }),
        Err(error) => Err(Failure::new(error.to_string())),
    };
    let mut writes = 0;
    let mut errors = Vec::new();
    if let Ok(plan) = &planned
        && !repairs(plan, namespace, &live).is_empty()
    {
        // Nothing may be created once the machines are deleted, so this is decided from a fresh read.
        live = shoot.read_machine_objects().await?;
        context.ensure_still_current().await?;
        let repairs = repairs(plan, namespace, &live);
        Applied { errors, writes, .. } = apply(&shoot.apis(), repairs, live).await;
        live = shoot.machine_objects().await?;
    }
    let has_conflict = errors.iter().any(|error| error.source.is_outdated());
    let refused = refused(&errors);
    let cluster_shoot = cluster.and_then(|cluster| cluster.spec.shoot.as_ref());
    let prerequisites = DeletionPrerequisites {
        worker,
        technical_id: cluster_shoot.map_or("", |shoot| &shoot.status.technical_id),
        plan: planned.as_ref(),
        refused: &refused,
        without_credentials: secrets.as_ref().is_ok_and(|secrets| !has_credentials(worker, secrets)),
    };
    let missing = prerequisites.missing(&live);
    if let (Some(_), Ok(secrets)) = (&missing, secrets) {
        // One of the Secrets may be missing or wrong, so all are read again.
        shoot.forget_secrets(secrets);
    }
    let requeue_after = (has_conflict || missing.is_some()).then_some(UNWATCHED_PERIOD);
    Ok(RepairResult { live, missing, writes, requeue_after })
}

/// Errors of refused writes by object name. Conflicts are left out, because they are retried.
fn refused(errors: &[ApplyError]) -> BTreeMap<String, String> {
    let refused = errors.iter().filter(|error| !error.source.is_outdated());
    refused.map(|error| (error.name.clone(), error.to_string())).collect()
}

/// Whether the Secret exists that the Worker refers to. True without a reference.
fn has_credentials(worker: &Worker, secrets: &Secrets) -> bool {
    let reference = &worker.spec.secret_ref;
    match (&reference.namespace, &reference.name) {
        (Some(namespace), Some(name)) => secrets.get(namespace, name).is_some(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use runtime::cluster::error::WriteError;
    use wire::api::secret::SecretContent;

    #[test]
    fn credentials_that_are_named_have_to_be_there() {
        let worker = |reference: serde_json::Value| -> Worker {
            let document = json!({"metadata": {}, "spec": {"type": "azure", "secretRef": reference}});
            serde_json::from_str(&document.to_string()).unwrap()
        };
        let named = worker(json!({"namespace": "shoot--p--s", "name": "cloudprovider"}));
        let mut secrets = Secrets::default();
        assert!(!has_credentials(&named, &secrets));
        assert!(has_credentials(&worker(json!({"namespace": "shoot--p--s"})), &secrets), "none is named");
        secrets.insert("shoot--p--s", "cloudprovider", SecretContent::default());
        assert!(has_credentials(&named, &secrets));
        secrets = Secrets::default();
        secrets.insert("shoot--p--other", "cloudprovider", SecretContent::default());
        assert!(!has_credentials(&named, &secrets), "that of another shoot");
    }

    #[test]
    fn what_is_tried_again_at_once_is_not_missing() {
        let error = |name: &str, source| ApplyError {
            pool: "a".to_owned(),
            kind: "MachineClass",
            name: name.to_owned(),
            source,
        };
        let errors = [error("outrun", WriteError::Going), error("refused", WriteError::NotDeleted)];
        let names: Vec<String> = refused(&errors).into_keys().collect();
        assert_eq!(names, ["refused"]);
    }
}
