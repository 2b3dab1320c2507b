//! Deadline until which a reconcile occupies its slot. Each response of the API server extends it.
//!
//! On a busy machine a reconcile may run for long and be active all the time. One without a response for half a second
//! is waiting, so another reconcile gets the slot. It does not get the slot back, because the API server is slow.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

/// How long a reconcile keeps its slot without a response.
pub const SLOT_TIMEOUT: Duration = Duration::from_millis(500);

tokio::task_local! {
    static OWN: Slot;
}

/// The slot of one reconcile. Clones share their state.
#[derive(Clone, Debug)]
pub struct Slot(Arc<Mutex<Instant>>);

impl Slot {
    pub fn taken(now: Instant) -> Self {
        Self(Arc::new(Mutex::new(now + SLOT_TIMEOUT)))
    }

    /// When the slot expires unless a response extends it.
    pub fn ends(&self) -> Instant {
        *self.state()
    }

    /// Extends the slot after a response, unless it has expired.
    pub fn extend(&self, now: Instant) {
        let mut ends = self.state();
        if now <= *ends {
            *ends = now + SLOT_TIMEOUT;
        }
    }

    /// Runs a reconcile in this slot, so that its responses extend it.
    pub fn reconcile<F: Future>(self, reconcile: F) -> impl Future<Output = F::Output> {
        OWN.scope(self, reconcile)
    }

    fn state(&self) -> MutexGuard<'_, Instant> {
        self.0.lock()
    }
}

/// Extends the slot of the current reconcile, if there is one.
pub(crate) fn responded(now: Instant) {
    // Requests outside of reconciles have no slot.
    let _no_slot = OWN.try_with(|slot| slot.extend(now));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn late_response_does_not_extend_slot() {
        let start = Instant::now();
        let slot = Slot::taken(start);
        let at = |tenths: u32| start + Duration::from_millis(100) * tenths;
        let ends_after = async |tenths| slot.clone().reconcile(async { responded(at(tenths)) }).await;
        for (response, ends) in [(3, 8), (7, 12), (12, 17), (18, 17), (19, 17)] {
            ends_after(response).await;
            assert_eq!(slot.ends(), at(ends), "after an answer at {response}");
        }
        responded(at(20));
        assert_eq!(slot.ends(), at(17), "an answer to somebody else");
    }
}
