//! What nothing needs any more is deleted once every planned machine is there: old deployments carry the workload until then.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use serde_json::Value;

use crate::cluster::machine_objects::DeploymentText;
use crate::cluster::machine_writes::MachineApis;
use crate::cluster::shoot_namespace::ShootNamespace;
use crate::controller::delete_objects::delete_all;
use crate::controller::error::ReconcileError;
use crate::worker::machine_objects::{Digested, MachineObjects};
use crate::worker::orphans::{MachineController, Orphans, is_being_deleted, orphans};
use crate::worker::outcome::{PendingDeletion, PendingDeployment};
use crate::worker::plan::Plan;
use crate::worker::progress::{Hibernation, Progress};

/// Deletes what nothing needs any more, once every planned machine is there. Old deployments carry the workload until
/// then. Where that is to be decided, `progress` and `live` are brought up to date.
pub(crate) async fn clean_up(
    shoot: &ShootNamespace,
    plan: &Plan,
    progress: &mut Progress,
    live: &mut MachineObjects,
    hibernation: Hibernation,
    now: Timestamp,
) -> Result<PendingDeletion, ReconcileError> {
    if !progress.is_ready() || orphans(plan, live, MachineController::Running).is_empty() {
        return Ok(PendingDeletion::default());
    }
    let machine_controller = shoot.machine_controller().await?;
    let mut found = orphans(plan, live, machine_controller);
    if found.is_to_delete(live) {
        // What is deleted is gone for good: it is judged by what is there now, not by what watches have shown.
        *live = shoot.read_users_of_classes().await?;
        *progress = crate::worker::progress::progress(plan, shoot.name(), live, hibernation);
        if !progress.is_ready() {
            return Ok(PendingDeletion::default());
        }
        found = orphans(plan, live, machine_controller);
        delete_orphans(&shoot.apis(), &found, live).await?;
    }
    Ok(match machine_controller {
        MachineController::Stopped => PendingDeletion::default(),
        MachineController::Running => pending_deletion(found, live, now),
    })
}

/// What stays for a while after it was asked to go.
fn pending_deletion(found: Orphans, live: &MachineObjects, now: Timestamp) -> PendingDeletion {
    let deployments = found.deployments.into_iter().map(|name| {
        let object = live.deployments.get(&name).map(|live| &live.object);
        let asked = object.and_then(|object| object.metadata.deletion_timestamp.as_ref()).map(|time| time.0);
        let failed_machines = live.deployments.get(&name).map(|live| live.failed_machines.clone()).unwrap_or_default();
        PendingDeployment { name, since: asked.unwrap_or(now), failed_machines }
    });
    PendingDeletion { deployments: deployments.collect(), classes: found.classes_in_use.into_iter().collect() }
}

async fn delete_orphans(apis: &MachineApis, found: &Orphans, live: &MachineObjects) -> Result<(), ReconcileError> {
    let deployments = found.deployments.iter().filter_map(|name| {
        let deployment = live.deployments.get(name).filter(|deployment| !is_being_deleted(&deployment.document))?;
        Some((name.as_str(), deployment.object.metadata.uid.as_deref()))
    });
    delete_all::<DeploymentText>(apis, deployments.collect()).await?;
    let classes = Digested::still_to_delete(&live.classes, |name| found.classes.contains(name));
    delete_all::<Digested<Value>>(apis, classes).await?;
    let secrets = Digested::still_to_delete(&live.class_secrets, |name| found.class_secrets.contains(name));
    delete_all::<Digested<Secret>>(apis, secrets).await
}
