//! Pure decisions about a leader's Lease: who leads, and what this process may do about it.
//!
//! Clocks of two machines are never compared. A holder is thought dead when its record has not changed for the lease's
//! duration **as seen by our own monotonic clock**, as client-go does.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use tokio::time::Instant;

/// The three times of an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ElectionTimes {
    /// A lease that was not renewed for so long may be taken.
    pub(crate) lease: Duration,
    /// A leader that could not renew for so long gives up; shorter than `lease`, so that two never lead.
    pub(crate) renew_deadline: Duration,
    /// Pause between attempts.
    pub(crate) retry: Duration,
}

impl ElectionTimes {
    /// In Gardener's proportions for extensions, which are 15 s, 10 s and 2 s.
    pub(crate) fn of_lease(lease: Duration) -> Self {
        Self { lease, renew_deadline: lease * 2 / 3, retry: lease * 2 / 15 }
    }
}

/// A Lease as it was seen, and since when it is unchanged by our own clock.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    record: LeaseSpec,
    since: Instant,
}

/// What to do with a Lease.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Decision {
    /// Write this record; then this process leads.
    Write(LeaseSpec),
    /// Somebody else leads.
    Wait { holder: String },
}

/// Remembers when the record last changed.
pub(crate) fn observe(before: Option<Observed>, lease: &Lease, now: Instant) -> Observed {
    let record = lease.spec.clone().unwrap_or_default();
    match before {
        Some(before) if before.record == record => before,
        _ => Observed { record, since: now },
    }
}

/// What to do with a Lease that exists.
pub(crate) fn decide(
    observed: &Observed,
    identity: &str,
    times: &ElectionTimes,
    now: Instant,
    clock: Timestamp,
) -> Decision {
    let record = &observed.record;
    let holder = record.holder_identity.as_deref().unwrap_or_default();
    if holder == identity {
        return Decision::Write(renewed(record, times, clock));
    }
    // The holder's own duration counts: it may be configured for longer than ours.
    let duration = record.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let duration = duration.map_or(times.lease, Duration::from_secs).max(Duration::from_secs(1));
    if holder.is_empty() || now.saturating_duration_since(observed.since) >= duration {
        let transitions = record.lease_transitions.unwrap_or_default();
        return Decision::Write(taken(identity, times, clock, transitions.saturating_add(1)));
    }
    Decision::Wait { holder: holder.to_owned() }
}

/// The record of a Lease that nobody held before.
pub(crate) fn taken(identity: &str, times: &ElectionTimes, clock: Timestamp, transitions: i32) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(identity.to_owned()),
        lease_duration_seconds: Some(seconds(times.lease)),
        acquire_time: Some(MicroTime(clock)),
        renew_time: Some(MicroTime(clock)),
        lease_transitions: Some(transitions),
        ..LeaseSpec::default()
    }
}

fn renewed(record: &LeaseSpec, times: &ElectionTimes, clock: Timestamp) -> LeaseSpec {
    LeaseSpec {
        lease_duration_seconds: Some(seconds(times.lease)),
        renew_time: Some(MicroTime(clock)),
        ..record.clone()
    }
}

/// The record of a leader that goes: one second is the shortest duration the API knows, and nobody holds it.
pub(crate) fn released(record: &LeaseSpec, clock: Timestamp) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(String::new()),
        lease_duration_seconds: Some(1),
        renew_time: Some(MicroTime(clock)),
        acquire_time: Some(MicroTime(clock)),
        ..record.clone()
    }
}

fn seconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_secs()).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: ElectionTimes = ElectionTimes {
        lease: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry: Duration::from_secs(2),
    };

    fn lease(holder: &str) -> Lease {
        let spec = taken(holder, &TIMES, Timestamp::UNIX_EPOCH, 3);
        Lease { spec: Some(spec), ..Lease::default() }
    }

    fn decision(holder: &str, age: Duration) -> Decision {
        let now = Instant::now();
        let observed = observe(None, &lease(holder), now);
        decide(&observed, "me", &TIMES, now + age, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_living_holder_is_waited_for_however_old_its_clock_is() {
        assert_eq!(decision("other", Duration::from_secs(14)), Decision::Wait { holder: "other".to_owned() });
    }

    #[test]
    fn a_silent_holder_is_replaced_and_counted() {
        let Decision::Write(record) = decision("other", Duration::from_secs(15)) else { panic!("not taken") };
        assert_eq!((record.holder_identity.as_deref(), record.lease_transitions), (Some("me"), Some(4)));
    }

    #[test]
    fn a_released_lease_is_taken_at_once() {
        let Decision::Write(record) = decision("", Duration::ZERO) else { panic!("not taken") };
        assert_eq!(record.holder_identity.as_deref(), Some("me"));
    }

    #[test]
    fn the_own_lease_is_renewed_without_a_transition() {
        let Decision::Write(record) = decision("me", Duration::from_secs(100)) else { panic!("not renewed") };
        assert_eq!(record.lease_transitions, Some(3));
    }

    #[test]
    fn any_change_of_the_record_counts_as_renewal() {
        let start = Instant::now();
        let first = observe(None, &lease("other"), start);
        let later = start + Duration::from_secs(14);
        let same = observe(Some(first), &lease("other"), later);
        assert_eq!(same.since, start);
        let mut renewed = lease("other");
        renewed.spec.as_mut().unwrap().renew_time = Some(MicroTime(Timestamp::MAX));
        assert_eq!(observe(Some(same), &renewed, later).since, later);
    }
}
