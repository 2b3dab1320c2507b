//! How often one Worker is looked at: at once when something happens after a pause, else at most once in [`PAUSE`],
//! however much happens. A debounce would not do: it starts anew with each event, and the machines of a large Worker make
//! events without a pause for minutes.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// From the end of one look to the beginning of the next.
pub(super) const PAUSE: Duration = Duration::from_millis(200);

/// When Workers were looked at last, by uid.
#[derive(Default)]
pub(super) struct Pace(Mutex<HashMap<String, Instant>>);

impl Pace {
    /// How long to wait before looking at a Worker; `None` when it is time.
    pub(super) fn wait(&self, uid: &str, now: Instant) -> Option<Duration> {
        let looked = *self.0.lock().unwrap_or_else(PoisonError::into_inner).get(uid)?;
        (looked + PAUSE).checked_duration_since(now).filter(|wait| !wait.is_zero())
    }

    /// A look has ended.
    pub(super) fn looked(&self, uid: &str, now: Instant) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(uid.to_owned(), now);
    }

    /// The Worker is gone.
    pub(super) fn forget(&self, uid: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_look_is_at_once_and_the_next_after_a_pause() {
        let (pace, start) = (Pace::default(), Instant::now());
        assert_eq!(pace.wait("w", start), None);
        pace.looked("w", start);
        assert_eq!(
            pace.wait("w", start + PAUSE / 4),
            Some(PAUSE * 3 / 4),
            "counted from the last look, not from the event"
        );
        assert_eq!(pace.wait("other", start), None);
        assert_eq!(pace.wait("w", start + PAUSE), None);
        pace.forget("w");
        assert_eq!(pace.wait("w", start), None);
    }
}
