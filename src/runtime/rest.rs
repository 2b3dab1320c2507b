//! A Worker that rests: whether a person has done something about its machines that it has to follow, and the condition that
//! gardenlet reads all the time. Both come from what the watches have shown; nothing is asked, and nothing is written as
//! long as the condition says what is so.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kube::ResourceExt;
use kube::runtime::controller::Action;

use super::controller::Shared;
use super::look::LookError;
use super::record;
use crate::api::gardener::Worker;
use crate::provider::Provider;
use crate::worker::conditions::{
    Fact, Holds, every_node_ready, every_node_unknown, is_recorded_hibernated, is_said_to_hold, is_written,
};
use crate::worker::in_place::{has_pools_by_hand, is_update_due};
use crate::worker::observe::ObserveError;
use crate::worker::operation::{Notice, notice};
use crate::worker::place::Place;
use crate::worker::report::with_conditions;

/// Bad news of nodes is told when it has lasted so long: the Go extension looks that often, and an autoscaler's change, which
/// machine-controller-manager takes a moment to see, is no fault.
const LASTING: Duration = Duration::from_secs(30);

/// How often is looked whether the watches are back. Without them a look would cost requests.
const WATCHES: Duration = Duration::from_secs(5);

/// Since when nodes are said to be otherwise than they are, by uid of the Worker.
#[derive(Default)]
pub(super) struct Untold(Mutex<HashMap<String, Instant>>);

impl Untold {
    /// How long a difference has to last yet before it is told; `None` when it is time.
    fn wait(&self, uid: &str, now: Instant) -> Option<Duration> {
        let since = *self.since().entry(uid.to_owned()).or_insert(now);
        (since + LASTING).checked_duration_since(now).filter(|wait| !wait.is_zero())
    }

    /// There is no difference any more, or no Worker.
    pub(super) fn forget(&self, uid: &str) {
        self.since().remove(uid);
    }

    fn since(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What becomes of a Worker that rests.
pub(super) enum Rest {
    /// It goes on resting.
    Lasts(Action),
    /// An operation has to begin.
    Ends,
}

/// Looks at a Worker for which there is nothing to do.
pub(super) async fn look_at_rest(worker: &Worker, provider: &dyn Provider, shared: &Shared) -> Result<Rest, LookError> {
    let uid = worker.uid().unwrap_or_default();
    let place = shared.place(worker);
    if notice(worker) == Notice::Nothing {
        return Ok(Rest::Lasts(Action::await_change()));
    }
    if !place.watches_are_trusted() {
        return Ok(Rest::Lasts(Action::requeue(WATCHES)));
    }
    if let Some(wait) = shared.pace.until_look(&uid, Instant::now()) {
        return Ok(Rest::Lasts(Action::requeue(wait)));
    }
    shared.pace.looked(&uid, Instant::now());
    if has_pools_by_hand(worker) && is_update_due(worker, &place.machine_objects().await?) {
        return Ok(Rest::Ends);
    }
    let fact = nodes(worker, &place, provider).await?;
    let is_told = is_told(worker, &fact);
    if !is_told
        && fact.holds != Holds::True
        && let Some(wait) = shared.untold.wait(&uid, Instant::now())
    {
        return Ok(Rest::Lasts(Action::requeue(wait)));
    }
    shared.untold.forget(&uid);
    let news: &[Fact] = if is_told { &[] } else { std::slice::from_ref(&fact) };
    if let Some(patch) = with_conditions(worker, news, Timestamp::now(), None) {
        record::at_rest(worker, patch, shared).await?;
    }
    Ok(Rest::Lasts(Action::await_change()))
}

/// Whether the Worker says so. That all is well may be said in other words: those of the Go extension, whose health checks may
/// still run, would change places with ours for ever.
fn is_told(worker: &Worker, fact: &Fact) -> bool {
    let conditions = &worker.status.conditions;
    is_written(conditions, fact) || fact.holds == Holds::True && is_said_to_hold(conditions, fact.condition)
}

/// Whether all nodes are ready, as machine deployments tell.
async fn nodes(worker: &Worker, place: &Place, provider: &dyn Provider) -> Result<Fact, ObserveError> {
    let sleeps = match is_recorded_hibernated(&worker.status.conditions) {
        Some(sleeps) => sleeps,
        // The last operation was another extension's.
        None => match place.cluster(false).await {
            Ok(cluster) => {
                let shoot = cluster.as_ref().and_then(|cluster| cluster.spec.shoot.as_ref());
                shoot.is_some_and(|shoot| shoot.is_hibernation_wanted())
            }
            // Whoever asks for an operation is told.
            Err(ObserveError::Cluster { .. }) => false,
            Err(error) => return Err(error),
        },
    };
    Ok(match place.shown_deployments() {
        Ok(deployments) => every_node_ready(&deployments, sleeps, |code, text| provider.error_codes(code, text)),
        Err(error) => every_node_unknown(&error.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lasts_is_told() {
        let (untold, start) = (Untold::default(), Instant::now());
        assert_eq!(untold.wait("w", start), Some(LASTING));
        assert_eq!(untold.wait("w", start + LASTING / 2), Some(LASTING / 2), "counted from the first time");
        assert_eq!(untold.wait("other", start + LASTING), Some(LASTING));
        assert_eq!(untold.wait("w", start + LASTING), None);
        untold.forget("w");
        assert_eq!(untold.wait("w", start + LASTING), Some(LASTING));
    }
}
