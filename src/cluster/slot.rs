//! Until when a reconcile occupies its slot: each answer of the API server extends it, silence ends it.
//!
//! On a busy machine a reconcile may last long and be at work all the time; one that gets no answer for half a second waits, and
//! the processors have time for another one. Who has waited so once does not get its slot back: it is a slow API server's.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long a reconcile without an answer occupies its slot.
pub(crate) const SLOT_TIME: Duration = Duration::from_millis(500);

tokio::task_local! {
    static OWN: Slot;
}

/// The slot of one reconcile. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Slot(Arc<Mutex<Instant>>);

impl Slot {
    pub(crate) fn taken(now: Instant) -> Self {
        Self(Arc::new(Mutex::new(now + SLOT_TIME)))
    }

    /// Until when it is occupied, if no answer comes before.
    pub(crate) fn ends(&self) -> Instant {
        *self.state()
    }

    /// The API server has answered.
    pub(crate) fn extend(&self, now: Instant) {
        let mut ends = self.state();
        if now <= *ends {
            *ends = now + SLOT_TIME;
        }
    }

    /// A reconcile whose answers extend this slot.
    pub(crate) fn reconcile<F: Future>(self, reconcile: F) -> impl Future<Output = F::Output> {
        OWN.scope(self, reconcile)
    }

    fn state(&self) -> MutexGuard<'_, Instant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The API server has answered whoever asks here: a reconcile, or somebody without a slot.
pub(crate) fn answered(now: Instant) {
    // There is none outside of a reconcile.
    let _no_slot = OWN.try_with(|slot| slot.extend(now));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_answer_extends_a_slot_until_one_is_late() {
        let start = Instant::now();
        let slot = Slot::taken(start);
        let at = |tenths: u32| start + Duration::from_millis(100) * tenths;
        let ends_after = async |tenths| slot.clone().reconcile(async { answered(at(tenths)) }).await;
        for (answer, ends) in [(3, 8), (7, 12), (12, 17), (18, 17), (19, 17)] {
            ends_after(answer).await;
            assert_eq!(slot.ends(), at(ends), "after an answer at {answer}");
        }
        answered(at(20));
        assert_eq!(slot.ends(), at(17), "an answer to somebody else");
    }
}
