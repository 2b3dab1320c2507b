//! When a failed Worker is tried again: after one second, then after twice as long each time, up to five minutes. A try
//! that has written something has got on, so the time begins anew with it.
//!
//! Events of machine objects lead to looks in between. A failure that such a look finds does not count: else a busy Worker
//! would be at five minutes after some seconds.
//!
//! Who was outrun by somebody else has not failed: they look again at once, a few times in a row.
//!
//! When there is no API server, no Worker has failed: each is tried again after seconds, however long that has lasted. When
//! it is back, no event need come that would lead to a look. How many are tried at a time is bounded by the workers of the
//! queue.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::tries::random_half;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(300);
/// The longest time between tries without an API server, and up to half of it more.
const LONGEST_ALONE: Duration = Duration::from_secs(3);
/// How often in a row somebody else may be faster.
const OUTRUN: u32 = 5;

/// Failures in a row, by uid of the Worker.
#[derive(Default)]
pub(super) struct Retries(Mutex<HashMap<String, Failures>>);

struct Failures {
    count: u32,
    next_try: Instant,
    /// How often somebody else was faster since the last success.
    outrun: u32,
    /// How often in a row there was no API server.
    alone: u32,
}

impl Failures {
    fn none(now: Instant) -> Self {
        Self { count: 0, next_try: now, outrun: 0, alone: 0 }
    }
}

/// When to try again after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Retry {
    /// The time until the next try.
    pub(super) delay: Duration,
    /// Whether the try that has failed was due; else it came in between and changes nothing.
    pub(super) was_due: bool,
}

impl Retries {
    /// Tells the time until the next try, and counts the failure if the try was due and has got nothing done.
    pub(super) fn failed(&self, uid: &str, got_on: bool, now: Instant) -> Retry {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let failures = failures.entry(uid.to_owned()).or_insert(Failures::none(now));
        if got_on {
            *failures = Failures::none(now);
        }
        failures.alone = 0;
        if let Some(delay) = failures.next_try.checked_duration_since(now).filter(|delay| !delay.is_zero()) {
            return Retry { delay, was_due: false };
        }
        let delay = FIRST.saturating_mul(2_u32.saturating_pow(failures.count)).min(LONGEST);
        (failures.count, failures.next_try) = (failures.count.saturating_add(1), now + delay);
        Retry { delay, was_due: true }
    }

    /// There was no API server: tells the time until the next try.
    pub(super) fn alone(&self, uid: &str, now: Instant) -> Duration {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let failures = failures.entry(uid.to_owned()).or_insert(Failures::none(now));
        let delay = FIRST.saturating_mul(2_u32.saturating_pow(failures.alone)).min(LONGEST_ALONE);
        failures.alone = failures.alone.saturating_add(1);
        delay + delay.mul_f64(random_half())
    }

    /// Whether to look again at once because somebody else was faster; false when that has become a failure.
    pub(super) fn is_outrun(&self, uid: &str, now: Instant) -> bool {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let failures = failures.entry(uid.to_owned()).or_insert(Failures::none(now));
        failures.outrun = failures.outrun.saturating_add(1);
        failures.outrun <= OUTRUN
    }

    /// Forgets the failures of a Worker.
    pub(super) fn forget(&self, uid: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_five_minutes() {
        let (retries, mut now) = (Retries::default(), Instant::now());
        let mut delays = Vec::new();
        for _ in 0..10 {
            let retry = retries.failed("w", false, now);
            assert!(retry.was_due);
            delays.push(retry.delay.as_secs());
            now += retry.delay;
        }
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]);
        retries.forget("w");
        assert_eq!(retries.failed("w", false, now).delay, FIRST);
    }

    #[test]
    fn a_failure_in_between_changes_nothing() {
        let (retries, start) = (Retries::default(), Instant::now());
        retries.failed("w", false, start);
        for _ in 0..10 {
            let retry = retries.failed("w", false, start + FIRST / 4);
            assert_eq!(retry, Retry { delay: FIRST * 3 / 4, was_due: false });
        }
        assert_eq!(retries.failed("w", false, start + FIRST), Retry { delay: FIRST * 2, was_due: true });
    }

    #[test]
    fn who_gets_on_is_tried_again_soon() {
        let (retries, start) = (Retries::default(), Instant::now());
        retries.failed("w", false, start);
        retries.failed("w", false, start + FIRST);
        assert_eq!(retries.failed("w", true, start + FIRST * 2), Retry { delay: FIRST, was_due: true });
        assert_eq!(retries.failed("w", false, start + FIRST * 3), Retry { delay: FIRST * 2, was_due: true });
    }

    #[test]
    fn an_outage_is_no_failure_of_a_worker() {
        let (retries, start) = (Retries::default(), Instant::now());
        let delays: Vec<Duration> = (0..100).map(|_| retries.alone("w", start)).collect();
        assert!(delays[0] < FIRST * 2, "{:?}", delays[0]);
        assert!(delays.iter().all(|delay| *delay < Duration::from_secs(5)), "{delays:?}");
        assert!(delays[50..].windows(2).any(|two| two[0] != two[1]), "not all Workers at the same time");
        assert_eq!(retries.failed("w", false, start), Retry { delay: FIRST, was_due: true }, "its own first failure");
        assert!(retries.alone("w", start) < FIRST * 2, "the API server was there meanwhile");
    }

    #[test]
    fn who_is_always_outrun_has_failed() {
        let (retries, now) = (Retries::default(), Instant::now());
        assert!((0..OUTRUN).all(|_| retries.is_outrun("w", now)));
        assert!(!retries.is_outrun("w", now));
        retries.forget("w");
        assert!(retries.is_outrun("w", now));
    }
}
