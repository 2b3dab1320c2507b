//! Which events a look at a Worker leads to: one for each transition, none for a state that lasts.
//!
//! How pools stood is remembered in the process. After a restart the first look says nothing, so that nothing is told twice.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use kube::{Resource, ResourceExt};

use super::controller::Shared;
use super::worker_events;
use crate::api::gardener::Worker;
use crate::provider::Provider;
use crate::worker::conditions::{PoolState, pool_states};
use crate::worker::operation::Operation;
use crate::worker::reconcile::Pass;
use crate::worker::roll::Roll;

/// How the pools of each Worker stood when they were looked at last, by uid of the Worker.
#[derive(Default)]
pub(super) struct PoolStates(Mutex<HashMap<String, BTreeMap<String, PoolState>>>);

impl PoolStates {
    /// Remembers how pools stand now, and returns those that changed. A Worker that is seen for the first time has no
    /// transitions, unless it is new.
    fn transitions(&self, uid: &str, states: BTreeMap<String, PoolState>) -> Vec<(String, PoolState)> {
        let mut remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = remembered.insert(uid.to_owned(), states.clone());
        let Some(before) = before else { return Vec::new() };
        states.into_iter().filter(|(pool, state)| before.get(pool) != Some(state)).collect()
    }

    /// A Worker is gone.
    pub(super) fn forget(&self, uid: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }
}

/// Writes the events of a look: at most one for each reason, but for pools that fail.
pub(super) async fn tell(shared: &Shared, provider: &dyn Provider, worker: &Worker, operation: Operation, pass: &Pass) {
    let (recorder, reference) = (&shared.recorder, worker.object_ref(&()));
    let mut rolls: BTreeMap<&str, Vec<&Roll>> = BTreeMap::new();
    for roll in &pass.rolls {
        shared.metrics.rolled(roll.cause.as_str());
        rolls.entry(&roll.pool).or_default().push(roll);
    }
    if !rolls.is_empty() {
        worker_events::roll_started(recorder, &reference, &rolls).await;
    }
    if let Some(stuck) = &pass.restarted {
        worker_events::machine_controller_restarted(recorder, &reference, stuck).await;
    }
    let (Some(plan), Some(progress)) = (&pass.plan, &pass.progress) else { return };
    let states = pool_states(plan, progress, |code, text| provider.error_codes(code, text));
    let mut ready = Vec::new();
    for (pool, state) in shared.pool_states.transitions(&worker.uid().unwrap_or_default(), states) {
        match state {
            PoolState::Ready => ready.push(pool),
            PoolState::Waiting => {}
            PoolState::Failed { message, codes } => {
                let codes: Vec<&str> = codes.iter().map(|code| code.as_str()).collect();
                worker_events::pool_failed(recorder, &reference, &pool, &message, &codes.join(", ")).await;
            }
        }
    }
    // Of a new Worker the end of its operation tells the same.
    if !ready.is_empty() && operation != Operation::Create {
        worker_events::pools_ready(recorder, &reference, &ready).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_transitions_are_told() {
        let known = PoolStates::default();
        let states = |state: PoolState| BTreeMap::from([("a".to_owned(), state)]);
        assert!(known.transitions("uid", states(PoolState::Waiting)).is_empty(), "it may have been told before");
        assert_eq!(known.transitions("uid", states(PoolState::Ready)).len(), 1);
        assert!(known.transitions("uid", states(PoolState::Ready)).is_empty(), "it lasts");
        known.forget("uid");
        assert!(known.transitions("uid", states(PoolState::Waiting)).is_empty());
    }
}
