//! Pure decisions about a Lease: who holds it, and what this process may do with it.
//!
//! ```text
//!  a leader   holds the lease of leaders
//!  a shard    holds its own lease; in addition, all shards of a ring together hold the lease of leaders, so that shards
//!             and a leader never write at the same time
//! ```
//!
//! Clocks of two machines are never compared. As in client-go, a holder is considered dead if its record has not
//! changed for the lease duration **as seen by our own monotonic clock**. Only the sharder relies on the time in the
//! Lease of a shard.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use tokio::time::Instant;

use crate::process::shard::{RING_LABEL, SHARDER, Shard};

/// Annotation on the lease of a shard with the process that holds it. A force-deleted pod of a StatefulSet may keep
/// running next to its successor of the same name.
const PROCESS: &str = "gardener-extension-worker/process";
/// The sharder takes the lease of a shard after this multiple of its duration.
const SHARDER_WAITS: u32 = 2;

/// Time settings of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTimes {
    /// A lease that was not renewed for this long may be taken.
    pub(crate) lease: Duration,
    /// A holder that can't renew for this long gives up. Shorter than `lease`, so that two holders never write at the
    /// same time.
    pub(crate) renew_deadline: Duration,
    /// Pause between attempts.
    pub(crate) retry: Duration,
}

impl LeaseTimes {
    /// In the proportions of Gardener's extensions: 15 s, 10 s and 2 s.
    pub fn of_lease(lease: Duration) -> Self {
        Self { lease, renew_deadline: lease * 2 / 3, retry: lease * 2 / 15 }
    }
}

/// A process that wants to hold a lease, and its settings.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    /// A name unique to this process.
    pub(crate) process: String,
    pub(crate) role: Role,
    pub(crate) times: LeaseTimes,
}

/// The role in which a process holds a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Leader,
    /// The shard that owns this lease.
    Shard(Shard),
    /// One of the shards of a ring that hold the lease together.
    Ring(Shard),
}

/// An observed Lease, and since when it is unchanged by our own clock.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    record: LeaseSpec,
    process: Option<String>,
    since: Instant,
    seen: Instant,
    /// The record was written after this time; `None` for the first version that was read.
    written_after: Option<Instant>,
}

/// What to do with a Lease.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Decision {
    /// Write this record to hold the lease.
    Write(LeaseSpec),
    /// Another shard of the ring has just renewed it.
    Held,
    /// Another process holds it.
    Wait { holder: String },
}

/// Tracks when the record last changed.
pub(crate) fn observe(before: Option<Observed>, lease: &Lease, now: Instant) -> Observed {
    let record = lease.spec.clone().unwrap_or_default();
    let process = process_of(&lease.metadata);
    match before {
        Some(before) if before.record == record && before.process == process => Observed { seen: now, ..before },
        before => Observed { record, process, since: now, seen: now, written_after: before.map(|before| before.seen) },
    }
}

/// A Lease as written by this process, with a request sent at `asked`.
pub(crate) fn observe_own(written: &Lease, requested: Instant) -> Observed {
    let now = observe(None, written, requested);
    Observed { written_after: Some(requested), ..now }
}

fn process_of(metadata: &ObjectMeta) -> Option<String> {
    metadata.annotations.as_ref()?.get(PROCESS).cloned()
}

impl Claim {
    /// Decides what to do with an existing Lease.
    pub(crate) fn decide(&self, observed: &Observed, now: Instant, clock: Timestamp) -> Decision {
        let record = &observed.record;
        let holder = record.holder_identity.as_deref().unwrap_or_default();
        if self.is_held_by(record, observed.process.as_deref()) {
            let is_ring = matches!(self.role, Role::Ring(_));
            let is_new = |after: Instant| now.saturating_duration_since(after) <= self.times.retry * 2;
            if is_ring && observed.written_after.is_some_and(is_new) {
                return Decision::Held;
            }
            return Decision::Write(self.renewed(record, clock));
        }
        if holder.is_empty() || now.saturating_duration_since(observed.since) >= self.duration_of(record) {
            let transitions = record.lease_transitions.unwrap_or_default();
            return Decision::Write(self.taken(clock, transitions.saturating_add(1)));
        }
        Decision::Wait { holder: holder.to_owned() }
    }

    /// Whether this process holds the Lease.
    pub(crate) fn holds(&self, lease: &Lease) -> bool {
        lease.spec.as_ref().is_some_and(|record| self.is_held_by(record, process_of(&lease.metadata).as_deref()))
    }

    fn is_held_by(&self, record: &LeaseSpec, process: Option<&str>) -> bool {
        let is_named = record.holder_identity.as_deref() == Some(self.holder());
        is_named && (!self.is_shard() || process == Some(&self.process))
    }

    /// Time without a change after which the holder is considered dead. Uses the holder's own duration, which may be
    /// longer than ours.
    fn duration_of(&self, record: &LeaseSpec) -> Duration {
        let message = record.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let message = message.map(Duration::from_secs);
        let is_shards = self.is_shard() && record.holder_identity.as_deref() != Some(SHARDER);
        let duration = message.map(|message| if is_shards { message.saturating_mul(SHARDER_WAITS) } else { message });
        duration.unwrap_or(self.times.lease).max(Duration::from_secs(1))
    }

    fn is_shard(&self) -> bool {
        matches!(self.role, Role::Shard(_))
    }

    /// The holder identity of this process. In the lease of a shard it has to be the name of the shard.
    fn holder(&self) -> &str {
        match &self.role {
            Role::Leader => &self.process,
            Role::Shard(shard) => shard.name(),
            Role::Ring(shard) => shard.ring(),
        }
    }

    /// The record of a newly acquired Lease.
    pub(crate) fn taken(&self, clock: Timestamp, transitions: i32) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(self.holder().to_owned()),
            lease_duration_seconds: Some(self.seconds()),
            acquire_time: Some(MicroTime(clock)),
            renew_time: Some(MicroTime(clock)),
            lease_transitions: Some(transitions),
            ..LeaseSpec::default()
        }
    }

    fn renewed(&self, record: &LeaseSpec, clock: Timestamp) -> LeaseSpec {
        LeaseSpec { lease_duration_seconds: Some(self.seconds()), renew_time: Some(MicroTime(clock)), ..record.clone() }
    }

    /// Lease duration in the record, after which others may take the lease.
    fn seconds(&self) -> i32 {
        let lease = if self.is_shard() { self.times.lease / SHARDER_WAITS } else { self.times.lease };
        i32::try_from(lease.as_secs()).unwrap_or(i32::MAX)
    }

    /// Adds the label and annotation that the lease of a shard needs.
    pub(crate) fn mark(&self, metadata: &mut ObjectMeta) {
        let Role::Shard(shard) = &self.role else { return };
        metadata.labels.get_or_insert_default().insert(RING_LABEL.to_owned(), shard.ring().to_owned());
        metadata.annotations.get_or_insert_default().insert(PROCESS.to_owned(), self.process.clone());
    }
}

/// The record of a released lease: no holder, and one second, the shortest duration that the API allows.
pub(crate) fn released(record: &LeaseSpec, clock: Timestamp) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(String::new()),
        lease_duration_seconds: Some(1),
        renew_time: Some(MicroTime(clock)),
        acquire_time: Some(MicroTime(clock)),
        ..record.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: LeaseTimes = LeaseTimes {
        lease: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry: Duration::from_secs(2),
    };

    fn claim(process: &str) -> Claim {
        Claim { process: process.to_owned(), role: Role::Leader, times: TIMES }
    }

    /// The claim of a process of the shard `a`.
    fn shard(process: &str) -> Claim {
        Claim { role: Role::Shard(Shard::new("ring", "a").unwrap()), ..claim(process) }
    }

    /// The claim of a process of that shard to the lease of leaders.
    fn ring(shard: &str) -> Claim {
        Claim { role: Role::Ring(Shard::new("ring", shard).unwrap()), ..claim(shard) }
    }

    fn lease(holder: &Claim) -> Lease {
        let mut lease = Lease { spec: Some(holder.taken(Timestamp::UNIX_EPOCH, 3)), ..Lease::default() };
        holder.mark(&mut lease.metadata);
        lease
    }

    fn decision(claim: &Claim, lease: &Lease, age: u64) -> Decision {
        let now = Instant::now();
        let observed = observe(None, lease, now);
        claim.decide(&observed, now + Duration::from_secs(age), Timestamp::UNIX_EPOCH)
    }

    fn held_by(holder: &str) -> Lease {
        lease(&claim(holder))
    }

    #[test]
    fn a_living_holder_is_waited_for_however_old_its_clock_is() {
        let decided = decision(&claim("me"), &held_by("other"), 14);
        assert_eq!(decided, Decision::Wait { holder: "other".to_owned() });
    }

    #[test]
    fn a_silent_holder_is_replaced_and_counted() {
        let Decision::Write(record) = decision(&claim("me"), &held_by("other"), 15) else { panic!("not taken") };
        assert_eq!((record.holder_identity.as_deref(), record.lease_transitions), (Some("me"), Some(4)));
    }

    #[test]
    fn a_released_lease_is_taken_at_once() {
        for claim in [claim("me"), shard("me")] {
            let Decision::Write(record) = decision(&claim, &held_by(""), 0) else { panic!("not taken") };
            assert_eq!(record.holder_identity.as_deref(), Some(claim.holder()));
        }
    }

    #[test]
    fn the_own_lease_is_renewed_without_a_transition() {
        for claim in [claim("me"), shard("me")] {
            let Decision::Write(record) = decision(&claim, &lease(&claim), 100) else { panic!("not renewed") };
            assert_eq!(record.lease_transitions, Some(3));
            assert!(claim.holds(&lease(&claim)));
        }
    }

    #[test]
    fn any_change_of_the_record_counts_as_renewal() {
        let start = Instant::now();
        let first = observe(None, &held_by("other"), start);
        let later = start + Duration::from_secs(14);
        let same = observe(Some(first), &held_by("other"), later);
        assert_eq!(same.since, start);
        let mut renewed = held_by("other");
        renewed.spec.as_mut().unwrap().renew_time = Some(MicroTime(Timestamp::MAX));
        assert_eq!(observe(Some(same), &renewed, later).since, later);
    }

    /// The sharder requires the label. It considers a shard dead if its lease has another holder than the shard's
    /// name, and takes the lease after twice its duration.
    #[test]
    fn the_lease_of_a_shard_is_as_the_sharder_reads_it() {
        let Lease { metadata, spec } = lease(&shard("me"));
        assert_eq!(metadata.labels.unwrap()["alpha.sharding.timebertt.dev/controllerring"], "ring");
        let spec = spec.unwrap();
        assert_eq!(spec.holder_identity.as_deref(), Some("a"));
        let taken = Duration::from_secs(spec.lease_duration_seconds.unwrap().try_into().unwrap()) * SHARDER_WAITS;
        assert!(TIMES.renew_deadline < taken && taken <= TIMES.lease, "{taken:?}");
        assert_eq!(held_by("leader").metadata, ObjectMeta::default(), "the lease of a leader is as it always was");
    }

    #[test]
    fn nobody_leads_while_shards_hold_the_lease_of_leaders_and_none_of_them_beside_a_leader() {
        let wait = |holder: &str| Decision::Wait { holder: holder.to_owned() };
        assert_eq!(decision(&claim("me"), &lease(&ring("a")), 14), wait("ring"));
        assert_eq!(decision(&ring("a"), &held_by("leader"), 14), wait("leader"));
        assert!(matches!(decision(&ring("b"), &lease(&ring("a")), 0), Decision::Write(_)), "they hold it together");
        assert_eq!(lease(&ring("a")).metadata, ObjectMeta::default(), "it is no shard to the sharder");
    }

    /// A leader counts from the last change that it has seen. Before it may lead, all shards must have stopped
    /// writing.
    #[test]
    fn shards_renew_the_lease_of_leaders_before_it_is_too_old_for_their_renew_deadline() {
        let start = Instant::now();
        let clock = Timestamp::UNIX_EPOCH;
        let decide =
            |observed: &Observed, after: u64| ring("b").decide(observed, start + Duration::from_secs(after), clock);
        let first = observe(None, &lease(&ring("a")), start);
        assert!(matches!(decide(&first, 0), Decision::Write(_)), "nobody knows how old it is");
        let mut renewed = lease(&ring("a"));
        renewed.spec.as_mut().unwrap().renew_time = Some(MicroTime(Timestamp::MAX));
        for written in [observe(Some(first), &renewed, start + TIMES.retry), observe_own(&renewed, start)] {
            assert_eq!(decide(&written, 4), Decision::Held, "it was written after the start");
            let same = observe(Some(written), &renewed, start + Duration::from_secs(4));
            assert!(matches!(decide(&same, 5), Decision::Write(_)));
        }
        assert!(TIMES.retry * 2 + TIMES.renew_deadline < TIMES.lease);
    }

    #[test]
    fn two_processes_of_one_name_are_never_the_shard_together() {
        let old = lease(&shard("old"));
        let new = shard("new");
        assert!(!new.holds(&old));
        let wait = Decision::Wait { holder: "a".to_owned() };
        assert_eq!(decision(&new, &old, 13), wait, "until after its renew deadline, not what the record says");
        assert!(matches!(decision(&new, &old, 14), Decision::Write(_)));
    }

    #[test]
    fn a_shard_waits_for_the_sharder_that_has_taken_its_lease() {
        let mut taken = lease(&shard("me"));
        let record = taken.spec.as_mut().unwrap();
        (record.holder_identity, record.lease_duration_seconds) = (Some(SHARDER.to_owned()), Some(14));
        assert!(!shard("me").holds(&taken));
        assert_eq!(decision(&shard("me"), &taken, 13), Decision::Wait { holder: SHARDER.to_owned() });
        assert!(matches!(decision(&shard("me"), &taken, 14), Decision::Write(_)));
    }
}
