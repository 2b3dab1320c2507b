//! I/O step: marks machines so that machine-controller-manager deletes them without draining, because the shoot is
//! being deleted or hibernated.

use futures::{StreamExt, stream};
use serde_json::json;

use crate::controller::reconcile::error::ReconcileError;
use crate::controller::reconcile::reconcile_context::ReconcileContext;
use decisions::worker::machines::live_machine::{FORCE_DELETION_LABEL, LiveMachine};
use runtime::cluster::PARALLEL_REQUESTS;
use runtime::cluster::machine_writes::MachineObjectWriter;

/// Marks all unmarked machines in parallel.
///
/// # Errors
/// If a machine can't be marked; the others are marked anyway. [`ReconcileError::WorkerChanged`] if the Worker changed in
/// the meantime.
pub(crate) async fn mark_machines(
    context: &ReconcileContext<'_>,
    machines: &[LiveMachine],
) -> Result<(), ReconcileError> {
    let apis = context.shoot.apis();
    let unmarked = machines.iter().filter(|machine| !machine.is_marked_for_force_deletion);
    let patches: Vec<_> = unmarked.map(|machine| mark(&apis, &machine.member.name)).collect();
    if !patches.is_empty() {
        context.ensure_still_current().await?;
    }
    let mut results = stream::iter(patches).buffer_unordered(PARALLEL_REQUESTS);
    let mut outcome = Ok(());
    while let Some(result) = results.next().await {
        outcome = outcome.and(result);
    }
    outcome
}

async fn mark(apis: &MachineObjectWriter, name: &str) -> Result<(), ReconcileError> {
    let patch = json!({"metadata": {"labels": {FORCE_DELETION_LABEL.0: FORCE_DELETION_LABEL.1}}});
    let written = apis.patch::<LiveMachine>(name, patch).await;
    written.map_err(|source| ReconcileError::Write { what: format!("Machine {name:?}"), source })
}
