//! What nothing needs any more is deleted once every planned machine is there: old deployments carry the workload until then.

use jiff::Timestamp;

use crate::cluster::shoot_namespace::ShootNamespace;
use crate::controller::delete_objects::delete_objects;
use crate::controller::error::ReconcileError;
use crate::worker::machine_objects::MachineObjects;
use crate::worker::orphans::{MachineController, Orphans, orphans};
use crate::worker::outcome::{PendingDeletion, PendingDeployment};
use crate::worker::plan::Plan;
use crate::worker::progress::{self, Hibernation, Progress};

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
    if !found.deletions(live).is_empty() {
        // What is deleted is gone for good: it is judged by what is there now, not by what watches have shown.
        *live = shoot.read_users_of_classes().await?;
        *progress = self::progress::progress(plan, shoot.name(), live, hibernation);
        if !progress.is_ready() {
            return Ok(PendingDeletion::default());
        }
        found = orphans(plan, live, machine_controller);
        delete_objects(&shoot.apis(), found.deletions(live)).await?;
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
        let deleted_at = object.and_then(|object| object.metadata.deletion_timestamp.as_ref()).map(|time| time.0);
        let failed_machines = live.deployments.get(&name).map(|live| live.failed_machines.clone()).unwrap_or_default();
        PendingDeployment { name, since: deleted_at.unwrap_or(now), failed_machines }
    });
    PendingDeletion { deployments: deployments.collect(), classes: found.classes_in_use.into_iter().collect() }
}
