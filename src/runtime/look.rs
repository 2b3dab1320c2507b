//! One look at a Worker: what it asks for, the pass that does it, and what became of it.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use futures::join;
use jiff::Timestamp;
use kube::ResourceExt;
use kube::runtime::controller::Action;
use kube::runtime::reflector::ObjectRef;
use serde_json::Value;
use tracing::{Instrument, info, warn};

use super::controller::Shared;
use super::measure::measure;
use super::newest::Newer;
use super::pace::LOOKS;
use super::record::{self, Beginning};
use super::rest::{Rest, look_at_rest};
use super::tell::tell;
use super::{traces, unasked};
use crate::api::gardener::{Cluster, Worker};
use crate::provider::Provider;
use crate::worker::decode::is_shoot_failed;
use crate::worker::delete::delete;
use crate::worker::observe::ObserveError;
use crate::worker::operation::{Decision, Operation, decide};
use crate::worker::place::Place;
use crate::worker::reconcile::{Hands, Pass, PassError, reconcile};
use crate::worker::report::{Outcome, status_patch, with_conditions, with_in_place_updates};

/// Why a look ended without being written down in the status.
#[derive(Debug, thiserror::Error)]
pub(super) enum LookError {
    #[error("Worker can't be written: {0}")]
    Write(#[from] kube::Error),
    #[error(transparent)]
    Read(#[from] ObserveError),
}

impl LookError {
    /// Whether there was no API server, rather than one that refuses something.
    pub(super) fn says_that_nobody_answers(&self) -> bool {
        match self {
            Self::Write(source) | Self::Read(ObserveError::Api { source, .. }) => match source {
                kube::Error::Api(status) => matches!(status.code, 429 | 502 | 503 | 504),
                kube::Error::Service(_) | kube::Error::HyperError(_) => true,
                _ => false,
            },
            Self::Read(ObserveError::Decode { .. } | ObserveError::Cluster { .. }) => false,
        }
    }
}

/// When a Worker was changed while its operation began, the watch shows it; this is for a watch that has failed.
const AFTER_A_CONFLICT: Duration = Duration::from_millis(500);

/// A Worker that waits is looked at again after this time even if nothing is heard, and then without believing the watches:
/// a connection that has died without a word shows nothing for as long.
const SILENCE: Duration = Duration::from_secs(10 * 60);

/// Looks at a Worker that can be decoded, and tells when to look again.
pub(super) async fn look_at_worker(worker: &Worker, shared: &Shared) -> Result<Action, LookError> {
    let Some(provider) = shared.served.provider_of(worker) else { return Ok(Action::await_change()) };
    if shared.newest.is_gone(worker) {
        return Ok(Action::await_change());
    }
    let (newer, shown);
    let worker = match shared.newest.newer_than(worker) {
        Newer::Nothing => worker,
        Newer::Written(written) => {
            newer = written;
            &*newer
        }
        Newer::Shown => {
            shown =
                shared.workers.get(&ObjectRef::new(&worker.name_any()).within(&worker.namespace().unwrap_or_default()));
            match shown.as_deref().map(|shown| &shown.object) {
                Some(Ok(shown)) => shown,
                // Its own look follows.
                None | Some(Err(_)) => return Ok(Action::await_change()),
            }
        }
    };
    let (operation, begins) = match decide(worker, Timestamp::now()) {
        Decision::Nothing if shared.begins_unasked && unasked::begins(worker, provider, shared).await? => {
            (Operation::Reconcile, true)
        }
        Decision::Nothing => match look_at_rest(worker, provider, shared).await? {
            Rest::Lasts(action) => return Ok(action),
            Rest::Ends => (Operation::Reconcile, true),
        },
        Decision::Begin(operation) => (operation, true),
        Decision::GoOn(operation) => (operation, false),
    };
    let uid = worker.uid().unwrap_or_default();
    // A request is answered at once.
    if let Some(wait) = shared.pace.until_look(&uid, Instant::now()).filter(|_| !begins) {
        return Ok(Action::requeue(wait));
    }
    let span = traces::of_look(worker, operation, begins);
    carry_out(worker, operation, begins, provider, shared).instrument(span).await
}

/// Does what the look is for.
async fn carry_out(
    worker: &Worker,
    operation: Operation,
    begins: bool,
    provider: &dyn Provider,
    shared: &Shared,
) -> Result<Action, LookError> {
    let uid = worker.uid().unwrap_or_default();
    let began = Instant::now();
    let was_silent = shared.pace.since_look(&uid, began).is_some_and(|since| since >= SILENCE);
    let place = if was_silent { shared.place(worker).without_watches() } else { shared.place(worker) };
    // Whether it begins at all is known only when a pass has found something to do.
    let may_wait = begins && record::may_be_settled(worker, operation);
    let (cluster, ()) = join!(place.cluster(begins), async {
        if may_wait {
            read_secrets(&place, worker, operation).await;
        }
    });
    // Nothing may be done for a shoot that Gardener has given up, not even a request taken off.
    if cluster.as_ref().ok().and_then(Option::as_ref).is_some_and(|cluster| is_shoot_failed(cluster)) {
        shared.pace.looked(&uid, Instant::now());
        return Ok(Action::await_change());
    }
    let beginning = Beginning::of(worker, operation, shared);
    if begins {
        if !may_wait && !join!(beginning.try_say(), read_secrets(&place, worker, operation)).0? {
            return Ok(Action::requeue(AFTER_A_CONFLICT));
        }
        info!(operation = operation.as_str(), "operation begins");
        shared.retries.forget(&uid);
    }
    let hands = Hands {
        place: &place,
        provider,
        cloud: shared.clouds.for_worker_type(&worker.spec.worker_type),
        opening: if may_wait { Some(&beginning) } else { None },
    };
    let (span, pass_began) = (traces::of_pass(), SystemTime::now());
    let looked_at = beginning.begun().unwrap_or(worker);
    let result = pass(hands, looked_at, cluster, operation, begins, shared).instrument(span.clone()).await;
    shared.pace.looked(&uid, Instant::now());
    let was_overtaken = matches!(result, Err(PassError::Overtaken));
    let pass = result.unwrap_or_else(|error| Pass::failed(operation, &error));
    let is_unsaid = may_wait && beginning.begun().is_none();
    let is_settled = is_unsaid && pass.outcome == Outcome::Succeeded;
    if was_overtaken || is_unsaid && !is_settled && !beginning.try_say().await? {
        return Ok(Action::requeue(AFTER_A_CONFLICT));
    }
    let worker = beginning.begun().unwrap_or(worker);
    traces::passed(&span, pass_began, &pass);
    drop(span);
    measure(&shared.metrics, worker, operation, begins, &pass, began.elapsed());
    tell(&shared.recorder, &shared.metrics, worker, &pass).await;
    let has_not_planned = || pass.plan.as_ref().is_none_or(|plan| plan.errors().next().is_some());
    if operation != Operation::Delete && has_not_planned() {
        // It may be a Secret that is missing or wrong.
        place.forget_secrets(worker);
    }
    finish(&place, worker, operation, pass, is_settled, shared).await
}

/// Reads the Secrets that an operation begins with, while it is said that it begins.
async fn read_secrets(place: &Place, worker: &Worker, operation: Operation) {
    if operation != Operation::Migrate && place.secrets(worker, true).await.is_err() {
        // The pass reads them again, and says what is wrong.
        place.forget_secrets(worker);
    }
}

async fn pass(
    hands: Hands<'_>,
    worker: &Worker,
    cluster: Result<Option<Arc<Cluster>>, ObserveError>,
    operation: Operation,
    begins: bool,
    shared: &Shared,
) -> Result<Pass, PassError> {
    let now = Timestamp::now();
    match operation {
        Operation::Create | Operation::Reconcile => reconcile(hands, worker, cluster, begins, None, now).await,
        Operation::Restore => reconcile(hands, worker, cluster, begins, Some(&shared.garden), now).await,
        Operation::Delete => delete(hands, worker, cluster, now).await,
        // gardenlet has kept the machines and takes their objects away.
        Operation::Migrate => Ok(Pass::ended(Outcome::Succeeded)),
    }
}

/// Writes the end of a pass down and tells when to look again. Where everything was found `settled`, the request still stands.
async fn finish(
    place: &Place,
    worker: &Worker,
    operation: Operation,
    pass: Pass,
    settled: bool,
    shared: &Shared,
) -> Result<Action, LookError> {
    let uid = worker.uid().unwrap_or_default();
    if pass.is_outdated && shared.retries.is_outrun(&uid, Instant::now()) {
        record::goes_on(worker, operation, shared).await?;
        return Ok(Action::requeue(LOOKS));
    }
    let now = Timestamp::now();
    let mut patch = status_patch(worker, operation, &pass.outcome, pass.published.as_ref(), now);
    if let (Some(plan), Some(progress), Outcome::Succeeded) = (&pass.plan, &pass.progress, &pass.outcome) {
        patch = with_in_place_updates(worker, plan, progress, patch);
    }
    let patch = with_conditions(worker, &pass.facts, now, patch);
    if let Some(patch) = &patch
        && can_wait(worker, &pass, patch)
        && let Some(wait) = shared.pace.until_word(&uid, Instant::now())
    {
        return Ok(Action::requeue(pass.look_again.map_or(wait, |again| again.min(wait))));
    }
    let written = match settled {
        true => match record::settled(worker, patch, shared).await? {
            None => return Ok(Action::requeue(AFTER_A_CONFLICT)),
            written => written,
        },
        false => record::status(worker, patch, shared).await?,
    };
    shared.pace.told(&uid);
    match &pass.outcome {
        Outcome::Failed(failure) => {
            let retry = shared.retries.failed(&uid, pass.writes > 0, Instant::now());
            let delay = pass.look_again.map_or(retry.delay, |again| again.min(retry.delay));
            if retry.was_due {
                warn!(operation = operation.as_str(), error = failure.message, ?delay, "operation failed");
            }
            return Ok(Action::requeue(delay));
        }
        Outcome::Succeeded => {
            shared.retries.forget(&uid);
            info!(operation = operation.as_str(), "operation succeeded");
            place.rest(worker);
            record::end(written.as_deref().unwrap_or(worker), operation, shared).await?;
        }
        Outcome::Begun | Outcome::Waiting(..) => {
            shared.retries.forget(&uid);
            return Ok(Action::requeue(pass.look_again.map_or(SILENCE, |again| again.min(SILENCE))));
        }
    }
    Ok(pass.look_again.map_or_else(Action::await_change, Action::requeue))
}

/// Whether a patch only tells in other words how the operation stands: nobody acts on it. What events were written about is
/// recorded at once, or the next look would write them again.
fn can_wait(worker: &Worker, pass: &Pass, patch: &Value) -> bool {
    let state = worker.status.last_operation.as_ref().map(|last| last.state.as_str());
    let is_same_state = match pass.outcome {
        Outcome::Waiting(..) => state == Some("Processing"),
        Outcome::Failed(_) => state == Some("Error") && worker.status.observed_generation == worker.metadata.generation,
        Outcome::Begun | Outcome::Succeeded => false,
    };
    let mut members = patch["status"].as_object().into_iter().flat_map(serde_json::Map::keys);
    is_same_state
        && pass.transitions.is_empty()
        && members
            .all(|member| ["lastOperation", "lastError", "observedGeneration", "conditions"].contains(&member.as_str()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::worker::transitions::Transition;

    #[test]
    fn only_words_wait_for_their_turn() {
        let last = json!({"type": "Reconcile", "state": "Processing", "description": "", "progress": 1});
        let worker = json!({"spec": {"type": "azure"}, "status": {"lastOperation": last}});
        let worker: Worker = serde_json::from_str(&worker.to_string()).unwrap();
        let text = json!({"status": {"lastOperation": {"description": "2 of 3"}, "conditions": []}});
        let waits = || Pass::ended(Outcome::Waiting("2 of 3".to_owned(), 50));
        assert!(can_wait(&worker, &waits(), &text));
        let ready = Transition::PoolsReady { pools: vec!["a".to_owned()], asleep: false };
        let told = Pass { transitions: vec![ready], ..waits() };
        assert!(!can_wait(&worker, &told, &text), "its event would be written by each look until then");
        let bounds = json!({"status": {"lastOperation": {}, "machineDeployments": []}});
        assert!(!can_wait(&worker, &waits(), &bounds), "the autoscaler acts on it");
        assert!(!can_wait(&worker, &Pass::ended(Outcome::Succeeded), &text), "gardenlet acts on it");
    }
}
