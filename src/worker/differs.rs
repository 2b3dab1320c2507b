//! I/O step, only for Workers that nobody asks for: whether anything would be written if somebody did. A Cluster changes
//! with each step that its shoot takes, and hardly any of them is about machines.

use jiff::Timestamp;

use super::changes::changes;
use super::cleanup::{MachineController, garbage};
use super::decode;
use super::observe::ObserveError;
use super::place::Place;
use super::plan::plan;
use super::report::{provider_status_patch, published_deployments};
use crate::api::gardener::{Cluster, Worker};
use crate::provider::Provider;

/// Whether the Worker is not what its Cluster and Secrets say now. What can't be planned differs too: somebody has to be
/// told.
///
/// # Errors
/// When something can't be read.
pub async fn differs(
    place: &Place,
    provider: &dyn Provider,
    worker: &Worker,
    cluster: &Cluster,
    now: Timestamp,
) -> Result<bool, ObserveError> {
    let (secrets, live) = tokio::try_join!(place.secrets(worker, true), place.machine_objects())?;
    let Ok(context) = decode::context(worker, cluster, &secrets) else { return Ok(true) };
    let Ok(plan) = plan(provider, context) else { return Ok(true) };
    let published = published_deployments(&plan, worker, &context.shoot.status.technical_id, &live);
    Ok(plan.unplanned().next().is_some()
        || published != worker.status.machine_deployments
        || provider_status_patch(worker, &plan.provider_status).is_some()
        || changes(&context, &plan, &live, now).iter().any(|change| change.is_to_write())
        || !garbage(&plan, &live, MachineController::Running).is_empty())
}
