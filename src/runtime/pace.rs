//! How often one Worker is looked at, and how often it is told what it waits for: at once when something happens after a
//! pause, else at most once in [`LOOKS`] and [`WORDS`], however much happens. A debounce would not do: it starts anew with
//! each event, and the machines of a large Worker make events without a pause for minutes.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// From the end of one look to the beginning of the next.
pub(super) const LOOKS: Duration = Duration::from_millis(400);
/// Between two texts about what is waited for. Whoever reads them sees a change within two seconds.
pub(super) const WORDS: Duration = Duration::from_millis(1500);

/// When Workers were looked at and told last, by uid.
#[derive(Default)]
pub(super) struct Pace(Mutex<HashMap<String, Last>>);

#[derive(Clone, Copy, Default)]
struct Last {
    look: Option<Instant>,
    word: Option<Instant>,
}

impl Pace {
    /// How long to wait before looking at a Worker; `None` when it is time.
    pub(super) fn until_look(&self, uid: &str, now: Instant) -> Option<Duration> {
        left(self.last().get(uid)?.look? + LOOKS, now)
    }

    /// How long ago a Worker was looked at last; `None` when it never was.
    pub(super) fn since_look(&self, uid: &str, now: Instant) -> Option<Duration> {
        now.checked_duration_since(self.last().get(uid)?.look?)
    }

    /// How long to wait before telling a Worker what it waits for; `None` when it is time.
    pub(super) fn until_word(&self, uid: &str, now: Instant) -> Option<Duration> {
        left(self.last().get(uid)?.word? + WORDS, now)
    }

    /// A look has ended.
    pub(super) fn looked(&self, uid: &str, now: Instant) {
        self.last().entry(uid.to_owned()).or_default().look = Some(now);
    }

    /// The status was written.
    pub(super) fn told(&self, uid: &str, now: Instant) {
        self.last().entry(uid.to_owned()).or_default().word = Some(now);
    }

    /// The Worker is gone.
    pub(super) fn forget(&self, uid: &str) {
        self.last().remove(uid);
    }

    fn last(&self) -> MutexGuard<'_, HashMap<String, Last>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn left(time: Instant, now: Instant) -> Option<Duration> {
    time.checked_duration_since(now).filter(|wait| !wait.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_look_is_at_once_and_the_next_after_a_pause() {
        let (pace, start) = (Pace::default(), Instant::now());
        assert_eq!(pace.until_look("w", start), None);
        pace.looked("w", start);
        assert_eq!(
            pace.until_look("w", start + LOOKS / 4),
            Some(LOOKS * 3 / 4),
            "counted from the last look, not from the event"
        );
        assert_eq!(pace.until_look("other", start), None);
        assert_eq!(pace.until_look("w", start + LOOKS), None);
        pace.forget("w");
        assert_eq!(pace.until_look("w", start), None);
    }

    #[test]
    fn words_have_a_pace_of_their_own() {
        let (pace, start) = (Pace::default(), Instant::now());
        pace.looked("w", start);
        assert_eq!(pace.until_word("w", start), None);
        pace.told("w", start);
        pace.looked("w", start + LOOKS);
        assert_eq!(pace.until_word("w", start + LOOKS), Some(WORDS - LOOKS));
        assert!(WORDS + LOOKS < Duration::from_secs(2), "what happens right after a look is told within two seconds");
    }
}
