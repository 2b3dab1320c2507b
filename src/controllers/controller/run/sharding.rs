//! Workers of a seed shared by several processes (docs/operations.md#several-processes-for-one-seed): checks before
//! each reconcile which shard a Worker belongs to, and acknowledges drains.
//!
//! The queue runs one task at a time for a Worker. When a drain is acknowledged, no reconcile of the Worker is
//! therefore running here, and another shard may start once the labels are removed.

use std::sync::{Arc, Weak};
use std::time::Duration;

use kube::api::{Api, Patch, PatchParams};
use tracing::{debug, info};

use crate::controller::queue::Requeue;
use crate::controller::reconcile::error::ReconcileError;
use crate::controller::run::context::ControllerContext;
use runtime::cluster::assignment::Assignment;
use runtime::cluster::decode_guard::LazyObject;
use runtime::cluster::identity::Identity;
use runtime::process::shard::{Shard, Standing};
use wire::api::gardener::Worker;

/// How often to check for running background tasks at a cloud. Their end also triggers an event.
const TASK_POLL_PERIOD: Duration = Duration::from_secs(1);
/// Requeue delay after a conflict, in case the watch event is lost.
const CONFLICT_DELAY: Duration = Duration::from_millis(500);

/// Returns a check whether the Worker still belongs to the shard, and has done so without interruption according to
/// the watch.
pub(crate) fn assignment(worker: &LazyObject<Worker>, shard: &Shard, context: &Arc<ControllerContext>) -> Assignment {
    let token = context.memory.of(worker.uid(), |memory| Arc::downgrade(&memory.assignment));
    let name = (worker.namespace().to_owned(), worker.name().to_owned());
    let shard = shard.clone();
    let context = Arc::downgrade(context);
    let uid = worker.uid().to_owned();
    Arc::new(move || {
        let worker = Weak::upgrade(&context).and_then(|context| context.cache.workers.get(&name.0, &name.1));
        token.strong_count() > 0
            && worker.is_some_and(|worker| worker.uid() == uid && shard.standing(worker.labels()) != Standing::NotOurs)
    })
}

/// Acknowledges a drain once no background task runs for the Worker: removes the labels in the version that was read.
///
/// # Errors
/// If the Worker can't be written.
pub(crate) async fn acknowledge_drain(
    guarded: &LazyObject<Worker>,
    shard: &Shard,
    context: &ControllerContext,
) -> Result<Requeue, ReconcileError> {
    // It has no UID or version, so it does not come from an API server.
    let Some(identity) = Identity::of(guarded) else { return Ok(Requeue::OnEvent) };
    let cloud = guarded.object().ok().and_then(|worker| context.clouds.for_worker_type(&worker.spec.worker_type));
    if cloud.is_some_and(|cloud| cloud.is_busy(&identity.uid)) {
        return Ok(Requeue::After(TASK_POLL_PERIOD));
    }
    let api: Api<Worker> = Api::namespaced(context.client.clone(), &identity.namespace);
    let patch = Patch::Merge(shard.acknowledgement(identity.version));
    match api.patch_metadata(&identity.name, &PatchParams::default(), &patch).await {
        // The ring has changed again and reassigned the Worker to this shard. The watch will report that.
        Ok(written) if context.owns(written.metadata.labels.as_ref()) => {
            debug!("drained, and assigned to this shard again");
        }
        Ok(_) => {
            info!("drained: another shard continues");
            context.cache.workers.deleted(&identity);
            context.forget(guarded);
        }
        Err(kube::Error::Api(status)) if status.is_conflict() => return Ok(Requeue::After(CONFLICT_DELAY)),
        // It was deleted. The watch will report that.
        Err(kube::Error::Api(status)) if status.is_not_found() => {}
        Err(error) => return Err(ReconcileError::of_worker(error)),
    }
    Ok(Requeue::OnEvent)
}
