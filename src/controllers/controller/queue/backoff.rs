//! Retry delay of a failed Worker: one second, doubled with each failure, up to five minutes. A reconcile that wrote
//! something made progress, so it resets the delay.
//!
//! Events of machine objects trigger reconciles before the delay is over. Failures of those don't count, because a
//! busy Worker would otherwise reach five minutes within seconds.
//!
//! A write conflict is not a failure. The reconcile is repeated immediately, a limited number of times in a row.
//!
//! If the API server does not answer, no Worker has failed. Each is retried every few seconds for as long as the
//! outage lasts, because no event may arrive when it ends. The queue bounds how many are retried at a time.

use std::time::Duration;

use tokio::time::Instant;

use runtime::process::jitter::random_half;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(300);
/// Maximum retry delay while the API server is unreachable, before up to 50 % jitter.
const MAX_UNREACHABLE_DELAY: Duration = Duration::from_secs(3);
/// Maximum number of write conflicts in a row that are retried immediately.
const MAX_CONFLICTS: u32 = 5;

#[derive(Debug, Default)]
pub(crate) struct Backoff {
    /// Consecutive failures.
    failures: u32,
    next_try: Option<Instant>,
    conflicts: u32,
    unreachable: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Retry {
    pub(crate) delay: Duration,
    /// Whether the failed reconcile was due. If not, it ran early because of an event and does not count.
    pub(crate) was_due: bool,
}

impl Backoff {
    /// Returns the time until the next try. Counts the failure if the try was due and wrote nothing.
    pub(crate) fn failed(&mut self, has_written: bool, now: Instant) -> Retry {
        if has_written {
            *self = Self::default();
        }
        self.unreachable = 0;
        let left = self.next_try.and_then(|next| next.checked_duration_since(now)).filter(|left| !left.is_zero());
        if let Some(delay) = left {
            return Retry { delay, was_due: false };
        }
        let delay = doubled(self.failures).min(LONGEST);
        (self.failures, self.next_try) = (self.failures.saturating_add(1), Some(now + delay));
        Retry { delay, was_due: true }
    }

    /// Returns the time until the next try after the API server did not answer. The jitter of up to 50 % spreads the
    /// retries of all Workers.
    pub(crate) fn unreachable(&mut self) -> Duration {
        let delay = doubled(self.unreachable).min(MAX_UNREACHABLE_DELAY);
        self.unreachable = self.unreachable.saturating_add(1);
        delay + delay.mul_f64(random_half())
    }

    /// Whether to retry a write conflict immediately. False once there were too many in a row, which makes it a
    /// failure.
    pub(crate) fn is_conflict_repeated(&mut self) -> bool {
        self.conflicts = self.conflicts.saturating_add(1);
        self.conflicts <= MAX_CONFLICTS
    }

    /// Called after a success or a new request.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }
}

fn doubled(times: u32) -> Duration {
    FIRST.saturating_mul(2_u32.saturating_pow(times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_five_minutes() {
        let mut backoff = Backoff::default();
        let mut now = Instant::now();
        let mut delays = Vec::new();
        for _ in 0..10 {
            let retry = backoff.failed(false, now);
            assert!(retry.was_due);
            delays.push(retry.delay.as_secs());
            now += retry.delay;
        }
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]);
        backoff.reset();
        assert_eq!(backoff.failed(false, now).delay, FIRST);
    }

    #[test]
    fn a_failure_in_between_changes_nothing() {
        let mut backoff = Backoff::default();
        let start = Instant::now();
        backoff.failed(false, start);
        for _ in 0..10 {
            let retry = backoff.failed(false, start + FIRST / 4);
            assert_eq!(retry, Retry { delay: FIRST * 3 / 4, was_due: false });
        }
        assert_eq!(backoff.failed(false, start + FIRST), Retry { delay: FIRST * 2, was_due: true });
    }

    #[test]
    fn a_reconcile_that_wrote_something_is_repeated_soon() {
        let mut backoff = Backoff::default();
        let start = Instant::now();
        backoff.failed(false, start);
        backoff.failed(false, start + FIRST);
        assert_eq!(backoff.failed(true, start + FIRST * 2), Retry { delay: FIRST, was_due: true });
        assert_eq!(backoff.failed(false, start + FIRST * 3), Retry { delay: FIRST * 2, was_due: true });
    }

    #[test]
    fn an_outage_is_no_failure_of_a_worker() {
        let mut backoff = Backoff::default();
        let start = Instant::now();
        let delays: Vec<Duration> = (0..100).map(|_| backoff.unreachable()).collect();
        assert!(delays[0] < FIRST * 2, "{:?}", delays[0]);
        assert!(delays.iter().all(|delay| *delay < Duration::from_secs(5)), "{delays:?}");
        assert!(delays[50..].windows(2).any(|two| two[0] != two[1]), "not all Workers at the same time");
        assert_eq!(backoff.failed(false, start), Retry { delay: FIRST, was_due: true }, "its own first failure");
        assert!(backoff.unreachable() < FIRST * 2, "the API server was there meanwhile");
    }

    #[test]
    fn conflicts_without_end_are_a_failure() {
        let mut backoff = Backoff::default();
        assert!((0..MAX_CONFLICTS).all(|_| backoff.is_conflict_repeated()));
        assert!(!backoff.is_conflict_repeated());
        backoff.reset();
        assert!(backoff.is_conflict_repeated());
    }
}
