//! The slots of the roll budget: one process decides about them under one lock, from the MachineDeployments of the whole
//! seed and its own reservations.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::controller::report::metrics::SlotNumbers;
use decisions::worker::plan::desired::DesiredState;
use decisions::worker::plan::roll_budget::RollBudget;
use decisions::worker::plan::slots::{SlotOwner, Slots};
use runtime::cluster::cache::SeedCache;

/// Slots of the roll budget (`--roll-budget`).
pub(crate) struct RollSlots(Mutex<Slots>);

impl RollSlots {
    pub(crate) fn new(limit: usize, is_shard: bool) -> Self {
        Self(Mutex::new(Slots::new(limit, is_shard)))
    }

    /// The budget for a decision that reserves nothing.
    pub(crate) fn view(&self, owner: SlotOwner<'_>, cache: &SeedCache) -> RollBudget {
        let slots = self.0.lock();
        let now = Instant::now().into_std();
        RollBudget { limit: slots.limit(), free: free(&slots, cache), reserved: slots.reserved_by(owner, now) }
    }

    /// Decides about a Worker and reserves the slots that it takes. Slots are counted only if something would be on hold.
    pub(crate) fn decide<'a>(
        &self,
        owner: SlotOwner<'_>,
        cache: &SeedCache,
        decide: impl Fn(&RollBudget) -> DesiredState<'a>,
    ) -> DesiredState<'a> {
        let now = Instant::now().into_std();
        let mut budget = {
            let slots = self.0.lock();
            RollBudget { limit: slots.limit(), free: 0, reserved: slots.reserved_by(owner, now) }
        };
        let without_slot = decide(&budget);
        if without_slot.plan.budget.held.is_empty() && budget.reserved.is_empty() {
            return without_slot;
        }
        let mut slots = self.0.lock();
        budget.free = free(&slots, cache);
        let decided = if budget.free > 0 { decide(&budget) } else { without_slot };
        slots.reserve(owner, &decided.plan.budget.taken, now);
        decided
    }

    /// Ends the reservations of a Worker whose writes had responses. `unanswered` are the pools with other writes.
    pub(crate) fn settle(&self, owner: SlotOwner<'_>, unanswered: &BTreeSet<String>) {
        self.0.lock().settle(owner, unanswered, Instant::now().into_std());
    }

    /// Ends the reservations of a Worker that was deleted or belongs to another process.
    pub(crate) fn forget(&self, uid: &str) {
        self.0.lock().forget(uid);
    }

    #[cfg(test)]
    pub(crate) fn reserve_for_test(&self, owner: SlotOwner<'_>, pool: &str) {
        self.0.lock().reserve(owner, &[pool.to_owned()].into(), Instant::now().into_std());
    }

    /// The limit, and the slots in use.
    pub(crate) fn numbers(&self, cache: &SeedCache) -> SlotNumbers {
        let slots = self.0.lock();
        let marked = cache.machine_objects.pools_with_slots();
        let mut used = BTreeMap::new();
        for (namespace, _) in slots.used(&marked, Instant::now().into_std()) {
            *used.entry(namespace.clone()).or_default() += 1;
        }
        SlotNumbers { limit: slots.limit(), used }
    }
}

/// While the watch of MachineDeployments is behind, no slot is known to be free.
fn free(slots: &Slots, cache: &SeedCache) -> usize {
    let objects = &cache.machine_objects;
    if !objects.deployments.is_fresh() {
        return 0;
    }
    slots.free(&objects.pools_with_slots(), Instant::now().into_std())
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use decisions::worker::plan::slots::PoolOfSeed;

    const WORKERS: usize = 1_000;
    const LIMIT: usize = 3;
    /// Requests of other Workers while a roll lasts: half an hour, if each Worker has one request a day.
    const REQUESTS_OF_ROLL: usize = 20;

    /// Days until all pools of 1,000 Workers with three pools each have rolled, at most 100.
    fn days_until_rolled(rolls_succeed: bool) -> usize {
        let mut slots = Slots::new(LIMIT, false);
        let now = std::time::Instant::now();
        let (mut marked, mut rolled) = (BTreeSet::<PoolOfSeed>::new(), BTreeSet::<PoolOfSeed>::new());
        let mut rolling = VecDeque::new();
        for request in 0..100 * WORKERS {
            let namespace = format!("ns-{}", request % WORKERS);
            let owner = SlotOwner { namespace: &namespace, uid: &namespace };
            while rolling.front().is_some_and(|(_, end)| rolls_succeed && *end <= request) {
                let Some((pool, _)) = rolling.pop_front() else { break };
                marked.remove(&pool);
                rolled.insert(pool);
            }
            let pools = ["a", "b", "c"].map(|pool| (namespace.clone(), pool.to_owned()));
            let waiting = pools.into_iter().filter(|pool| !rolled.contains(pool) && !marked.contains(pool));
            let taken: Vec<PoolOfSeed> = waiting.take(slots.free(&marked, now)).collect();
            slots.reserve(owner, &taken.iter().map(|(_, pool)| pool.clone()).collect(), now);
            rolling.extend(taken.iter().map(|pool| (pool.clone(), request + REQUESTS_OF_ROLL)));
            marked.extend(taken);
            slots.settle(owner, &BTreeSet::new(), now);
            assert!(marked.len() <= LIMIT, "{marked:?}");
            if rolled.len() == 3 * WORKERS {
                return request / WORKERS;
            }
        }
        assert_eq!(marked.len(), LIMIT, "failing rolls keep their slots");
        100
    }

    #[test]
    fn a_thousand_workers_keep_to_the_limit() {
        assert_eq!(days_until_rolled(false), 100);
        assert!((15..30).contains(&days_until_rolled(true)), "{}", days_until_rolled(true));
    }
}
