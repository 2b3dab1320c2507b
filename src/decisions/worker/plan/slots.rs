//! Pure: counts the slots of the budget over the pools of a seed.
//!
//! A pool has a slot while one of its MachineDeployments has the mark of the budget. A reservation covers the time until
//! the written mark is in the store, so that two Workers of one process never use the same slot.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// A shard takes at most one slot in this time, because watches report the marks of other shards with a delay.
const SETTLING: Duration = Duration::from_secs(10);

/// How long a write without a response counts as a slot: longer than an API server processes a request and a watch
/// reports it.
const UNANSWERED_TIMEOUT: Duration = Duration::from_secs(120);

/// A pool of the seed: namespace and name.
pub type PoolOfSeed = (String, String);

/// A Worker of the seed, which owns reservations.
#[derive(Clone, Copy, Debug)]
pub struct SlotOwner<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its UID.
    pub uid: &'a str,
}

/// Reservations of a process.
#[derive(Clone, Debug)]
pub struct Slots {
    limit: usize,
    is_shard: bool,
    reserved: BTreeMap<PoolOfSeed, Reservation>,
    last_taken: Option<Instant>,
}

/// A reservation.
#[derive(Clone, Debug)]
struct Reservation {
    /// UID of the Worker.
    owner: String,
    /// When its write ended without a response, so that the mark may exist.
    unanswered_since: Option<Instant>,
}

impl Reservation {
    fn is_of(&self, owner: SlotOwner<'_>) -> bool {
        self.owner == owner.uid
    }

    /// Whether the store shows the result of the write.
    fn has_expired(&self, now: Instant) -> bool {
        self.unanswered_since.is_some_and(|since| now.saturating_duration_since(since) >= UNANSWERED_TIMEOUT)
    }
}

impl Slots {
    /// No reservation of a process, which is a shard or not.
    #[must_use]
    pub fn new(limit: usize, is_shard: bool) -> Self {
        Self { limit, is_shard, reserved: BTreeMap::new(), last_taken: None }
    }

    /// At most this many pools of the seed have an unrequested roll in progress.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The pools that use a slot, if the stored MachineDeployments of `marked` have the mark.
    #[must_use]
    pub fn used<'a>(&'a self, marked: &'a BTreeSet<PoolOfSeed>, now: Instant) -> BTreeSet<&'a PoolOfSeed> {
        let reserved = self.reserved.iter().filter(|(_, reservation)| !reservation.has_expired(now));
        marked.iter().chain(reserved.map(|(pool, _)| pool)).collect()
    }

    /// Number of slots that the process may take now.
    #[must_use]
    pub fn free(&self, marked: &BTreeSet<PoolOfSeed>, now: Instant) -> usize {
        let free = self.limit.saturating_sub(self.used(marked, now).len());
        if !self.is_shard {
            return free;
        }
        let is_settling = self.last_taken.is_some_and(|taken| now.saturating_duration_since(taken) < SETTLING);
        if is_settling { 0 } else { free.min(1) }
    }

    /// Names of the pools of a Worker with a reservation.
    #[must_use]
    pub fn reserved_by(&self, owner: SlotOwner<'_>, now: Instant) -> BTreeSet<String> {
        let own = self.reserved.iter().filter(|(_, reservation)| reservation.is_of(owner));
        let own = own.filter(|(_, reservation)| !reservation.has_expired(now));
        own.map(|((_, pool), _)| pool.clone()).collect()
    }

    /// Reserves a slot for each of these pools of a Worker. Its other reservations end, unless a write had no response.
    pub fn reserve(&mut self, owner: SlotOwner<'_>, pools: &BTreeSet<String>, now: Instant) {
        self.reserved.retain(|(_, pool), reservation| {
            let is_used = pools.contains(pool) || reservation.unanswered_since.is_some();
            !reservation.is_of(owner) || is_used && !reservation.has_expired(now)
        });
        for pool in pools {
            let reservation = Reservation { owner: owner.uid.to_owned(), unanswered_since: None };
            if self.reserved.insert((owner.namespace.to_owned(), pool.clone()), reservation).is_none() {
                self.last_taken = Some(now);
            }
        }
    }

    /// Ends the reservations of a Worker after its writes: the store contains their marks, or nothing was written. Only
    /// those of pools with an unanswered write stay.
    pub fn settle(&mut self, owner: SlotOwner<'_>, unanswered: &BTreeSet<String>, now: Instant) {
        self.reserved.retain(|(_, pool), reservation| {
            let is_own = reservation.is_of(owner);
            if is_own && unanswered.contains(pool) {
                reservation.unanswered_since = Some(now);
            }
            !is_own || reservation.unanswered_since.is_some()
        });
    }

    /// Ends all reservations of a Worker, which was deleted or belongs to another process.
    pub fn forget(&mut self, uid: &str) {
        self.reserved.retain(|_, reservation| reservation.owner != uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(name: &str) -> PoolOfSeed {
        ("ns".to_owned(), name.to_owned())
    }

    /// Each pool has its own Worker.
    fn owner(name: &str) -> SlotOwner<'_> {
        SlotOwner { namespace: "ns", uid: name }
    }

    /// A process, and the marks in its store.
    struct Process {
        slots: Slots,
        seen: BTreeSet<PoolOfSeed>,
        now: Instant,
    }

    impl Process {
        fn new(limit: usize, is_shard: bool) -> Self {
            Self { slots: Slots::new(limit, is_shard), seen: BTreeSet::new(), now: Instant::now() }
        }

        /// Whether the pool gets a slot.
        fn take(&mut self, name: &str) -> bool {
            let pool = pool(name);
            if self.seen.contains(&pool) || !self.slots.reserved_by(owner(name), self.now).is_empty() {
                return true;
            }
            let is_free = self.slots.free(&self.seen, self.now) > 0;
            if is_free {
                self.slots.reserve(owner(name), &[pool.1].into(), self.now);
            }
            is_free
        }

        /// The response to the write of the mark arrives.
        fn written(&mut self, name: &str) {
            self.seen.insert(pool(name));
            self.slots.settle(owner(name), &BTreeSet::new(), self.now);
        }

        fn rejected(&mut self, name: &str) {
            self.slots.settle(owner(name), &BTreeSet::new(), self.now);
        }

        fn lost(&mut self, name: &str) {
            self.slots.settle(owner(name), &[name.to_owned()].into(), self.now);
        }
    }

    /// L1, L4 and L5.
    #[test]
    fn reservation_ends_with_the_response() {
        let mut process = Process::new(1, false);
        assert!(process.take("p") && !process.take("q") && process.take("p"));
        process.lost("p");
        assert!(!process.take("q"), "the mark may exist");
        process.slots.reserve(owner("p"), &BTreeSet::new(), process.now);
        assert!(!process.take("q"), "also if the pool no longer needs it");
        process.now += UNANSWERED_TIMEOUT;
        assert!(process.take("q"), "the store would show the mark");
        process.rejected("q");
        assert!(process.take("r"));
    }

    /// L2, L3 and L8.
    #[test]
    fn slot_survives_the_process_only_with_its_mark() {
        let mut process = Process::new(1, false);
        assert!(process.take("p"));
        process = Process::new(1, false);
        assert!(process.take("q"), "nothing of P has started");
        process = Process::new(1, false);
        process.seen.insert(pool("p"));
        assert!(process.take("p") && !process.take("q"));
        process.seen.remove(&pool("p"));
        assert!(process.take("q"), "P is done");
    }

    /// L6 and L7.
    #[test]
    fn shards_exceed_the_limit_by_one() {
        let mut shards = [Process::new(1, true), Process::new(1, true)];
        assert!(shards[0].take("p") && shards[1].take("q"));
        for shard in &mut shards {
            shard.seen = [pool("p"), pool("q")].into();
            shard.now += SETTLING;
        }
        assert!(!shards[0].take("r") && !shards[1].take("s"));

        let mut shards = [Process::new(3, true), Process::new(3, true)];
        assert!(shards[0].take("a") && shards[1].take("c"));
        shards[0].written("a");
        shards[1].written("c");
        assert!(!shards[0].take("b") && !shards[1].take("d"), "one in ten seconds");
        for shard in &mut shards {
            shard.seen = [pool("a"), pool("c")].into();
            shard.now += SETTLING;
        }
        assert!(shards[0].take("b") && shards[1].take("d"));
        for shard in &mut shards {
            shard.seen = ["a", "b", "c", "d"].map(pool).into();
            shard.slots.forget("b");
            shard.slots.forget("d");
            shard.now += SETTLING;
        }
        assert!(!shards[0].take("e") && !shards[1].take("f"));
    }

    #[test]
    fn unused_decision_ends_with_the_next_one() {
        let mut slots = Slots::new(2, false);
        let now = Instant::now();
        let worker = owner("w");
        slots.reserve(worker, &["a".to_owned(), "b".to_owned()].into(), now);
        assert_eq!(slots.free(&BTreeSet::new(), now), 0);
        slots.reserve(worker, &["b".to_owned()].into(), now);
        assert_eq!((slots.free(&BTreeSet::new(), now), slots.reserved_by(worker, now).len()), (1, 1));
        slots.reserve(owner("other"), &BTreeSet::new(), now);
        assert_eq!(slots.reserved_by(worker, now).len(), 1, "another Worker of the namespace");
        assert_eq!(slots.used(&[pool("b")].into(), now).len(), 1, "a mark and its reservation are one");
        assert_eq!(Slots::new(0, false).free(&[pool("p")].into(), now), 0, "a lower limit affects only new pools");
    }

    #[test]
    fn shard_takes_one_slot_for_several_pools() {
        assert_eq!(Slots::new(5, true).free(&BTreeSet::new(), Instant::now()), 1);
    }
}
