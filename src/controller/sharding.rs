//! Workers of a seed that several processes share (docs/operations.md#several-processes-for-one-seed): before each reconcile, whose a
//! Worker is; and the end of what this process does for one that it has to let go.
//!
//! The queue does one thing at a time for a Worker. So when it comes to letting one go, no reconcile of it is under way here, and
//! once the labels are off, another shard may begin.

use std::sync::{Arc, Weak};
use std::time::Duration;

use kube::api::{Api, Patch, PatchParams};
use tracing::{debug, info};

use crate::api::gardener::Worker;
use crate::cluster::assignment::Assignment;
use crate::cluster::decode_guard::Guarded;
use crate::cluster::identity::Identity;
use crate::controller::context::ControllerContext;
use crate::controller::error::ReconcileError;
use crate::controller::queue::Requeue;
use crate::process::shard::{Shard, Standing};

/// How often is checked whether background tasks at a cloud have ended; their end is an event as well.
const TASKS: Duration = Duration::from_secs(1);
/// When a Worker was changed meanwhile, the watch shows it; this is for a watch that has failed.
const AFTER_A_CONFLICT: Duration = Duration::from_millis(500);

/// Tells whether a Worker is still the shard's: whether the watch shows it so, and has shown it so ever since.
pub(crate) fn assignment(worker: &Guarded<Worker>, shard: &Shard, context: &Arc<ControllerContext>) -> Assignment {
    let token = context.memory.of(worker.uid(), |memory| Arc::downgrade(&memory.assignment));
    let name = (worker.namespace().to_owned(), worker.name().to_owned());
    let (shard, context, uid) = (shard.clone(), Arc::downgrade(context), worker.uid().to_owned());
    Arc::new(move || {
        let worker = Weak::upgrade(&context).and_then(|context| context.cache.workers.get(&name.0, &name.1));
        token.strong_count() > 0
            && worker.is_some_and(|worker| worker.uid() == uid && shard.standing(worker.labels()) != Standing::NotOurs)
    })
}

/// Lets a Worker go that is drained: takes the labels off the version that says so, once nothing is done for it any more.
///
/// # Errors
/// When the Worker can't be written.
pub(crate) async fn let_drained_go(
    guarded: &Guarded<Worker>,
    shard: &Shard,
    context: &ControllerContext,
) -> Result<Requeue, ReconcileError> {
    // No API server has sent it.
    let Some(identity) = Identity::of(guarded) else { return Ok(Requeue::OnEvent) };
    let cloud = guarded.object().ok().and_then(|worker| context.clouds.for_worker_type(&worker.spec.worker_type));
    if cloud.is_some_and(|cloud| cloud.is_busy(&identity.uid)) {
        return Ok(Requeue::After(TASKS));
    }
    let api: Api<Worker> = Api::namespaced(context.client.clone(), &identity.namespace);
    let patch = Patch::Merge(shard.acknowledgement(identity.version));
    match api.patch_metadata(&identity.name, &PatchParams::default(), &patch).await {
        // The ring has changed again, and the Worker has come back: the watch shows it.
        Ok(written) if context.owns(written.metadata.labels.as_ref()) => {
            debug!("drained, and assigned to this shard again");
        }
        Ok(_) => {
            info!("drained: another shard goes on");
            context.cache.workers.gone(&identity);
            context.forget(guarded);
        }
        Err(kube::Error::Api(status)) if status.is_conflict() => return Ok(Requeue::After(AFTER_A_CONFLICT)),
        // It is deleted, and the watch shows that.
        Err(kube::Error::Api(status)) if status.is_not_found() => {}
        Err(error) => return Err(ReconcileError::of_worker(error)),
    }
    Ok(Requeue::OnEvent)
}
