//! I/O step: machine-controller-manager itself. gardenlet deploys it; it is put to sleep with a shoot, started for one that has
//! moved, and started anew when it is stuck (spec/azure-worker.md sections 11 and 13.3).

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use serde_json::json;
use tracing::{info, warn};

use super::cleanup::MachineController;
use super::observe::{MACHINE_CONTROLLER_MANAGER, ObserveError};
use super::place::Place;
use super::progress::Stuck;
use super::reconcile::PassError;

/// Label of its pods.
const PODS: &str = "role=machine-controller-manager";
/// How long it may leave a new machine class without a machine set.
pub const PATIENCE: SignedDuration = SignedDuration::from_mins(2);

/// Scales it to one replica, or to none; nothing when it is so already.
///
/// # Errors
/// When its Deployment can't be read or scaled.
pub async fn scale(place: &Place, wanted: MachineController) -> Result<(), PassError> {
    if place.machine_controller().await? == wanted {
        return Ok(());
    }
    let replicas = match wanted {
        MachineController::Running => 1,
        MachineController::Stopped => 0,
    };
    let api: Api<Deployment> = Api::namespaced(place.client().clone(), place.namespace());
    let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
    match api.patch_scale(MACHINE_CONTROLLER_MANAGER, &PatchParams::default(), &patch).await {
        Ok(_) => info!(replicas, "machine-controller-manager is scaled"),
        // Without the Deployment there is nothing to scale.
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        Err(source) => {
            let what = format!("the scale of Deployment {MACHINE_CONTROLLER_MANAGER:?}");
            return Err(PassError::Write { what, source: source.into() });
        }
    }
    Ok(())
}

/// Deletes the pods that had their time for a change and did nothing about it, once for each change: the pod that follows
/// is younger than that. Returns whether there was one.
///
/// # Errors
/// When pods can't be listed or deleted.
pub async fn restart_stuck(place: &Place, stuck: &Stuck) -> Result<bool, PassError> {
    let api: Api<Pod> = Api::namespaced(place.client().clone(), place.namespace());
    let pods = api
        .list(&ListParams::default().labels(PODS))
        .await
        .map_err(|source| ObserveError::Api { what: "pods of machine-controller-manager".to_owned(), source })?;
    let mut restarted = false;
    for pod in pods {
        let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let is_due = pod.metadata.deletion_timestamp.is_none() && created.is_some_and(|created| is_due(created, stuck));
        let Some(name) = pod.metadata.name.filter(|_| is_due) else { continue };
        let of_uid = Preconditions { uid: pod.metadata.uid, resource_version: None };
        match api.delete(&name, &DeleteParams::default().preconditions(of_uid)).await {
            Ok(_) => {
                warn!(pod = name, deployment = stuck.deployment, "machine-controller-manager is stuck and starts anew");
                restarted = true;
            }
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(source) => return Err(PassError::Delete { kind: "Pod", name, source: source.into() }),
        }
    }
    Ok(restarted)
}

/// Whether a pod was there for the whole time that the change had. Times of objects have whole seconds.
fn is_due(created: Timestamp, stuck: &Stuck) -> bool {
    created.as_second() < stuck.since.as_second().saturating_add(PATIENCE.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_restarts_it_once() {
        let since: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
        let stuck = Stuck { deployment: "a-z1".to_owned(), since };
        assert!(is_due("2026-11-20T00:00:00Z".parse().unwrap(), &stuck), "it was there before the change");
        assert!(is_due("2026-11-21T10:01:00Z".parse().unwrap(), &stuck), "it came soon after");
        assert!(!is_due("2026-11-21T10:02:01Z".parse().unwrap(), &stuck), "this is the pod that followed");
    }
}
