//! When a failed Worker is tried again: after one second, then after twice as long each time, up to five minutes.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(300);

/// Failures in a row, by uid of the Worker.
#[derive(Default)]
pub(super) struct Retries(Mutex<HashMap<String, u32>>);

impl Retries {
    /// Counts a failure and tells the time until the next try.
    pub(super) fn failed(&self, uid: &str) -> Duration {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = failures.entry(uid.to_owned()).or_default();
        let delay = FIRST.saturating_mul(2_u32.saturating_pow(*count)).min(LONGEST);
        *count = count.saturating_add(1);
        delay
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
        let retries = Retries::default();
        let delays: Vec<_> = (0..10).map(|_| retries.failed("w").as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]);
        retries.forget("w");
        assert_eq!(retries.failed("w"), FIRST);
    }
}
