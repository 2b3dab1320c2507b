//! How often one Worker is looked at, and how often it is told what it waits for. It is looked at at once when something
//! happens after a pause, else at most once in [`LOOKS`], however much happens. What it waits for is told [`WORDS`] after it
//! has become something else: until then it is often something else again, or has come to an end. A debounce would not do:
//! it starts anew with each event, and the machines of a large Worker make events without a pause for minutes.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// From the end of one look to the beginning of the next.
pub(super) const LOOKS: Duration = Duration::from_millis(250);
/// From a change to the text that tells it. Whoever reads it sees a change within two seconds.
pub(super) const WORDS: Duration = Duration::from_secs(1);

/// When Workers were looked at, and since when there is something to tell them, by uid.
#[derive(Default)]
pub(super) struct Pace(Mutex<HashMap<String, Last>>);

#[derive(Clone, Copy, Default)]
struct Last {
    look: Option<Instant>,
    untold: Option<Instant>,
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

    /// There is something to tell a Worker that waits: how long until then; `None` when it is time.
    pub(super) fn until_word(&self, uid: &str, now: Instant) -> Option<Duration> {
        let since = *self.last().entry(uid.to_owned()).or_default().untold.get_or_insert(now);
        left(since + WORDS, now)
    }

    /// A look has ended.
    pub(super) fn looked(&self, uid: &str, now: Instant) {
        self.last().entry(uid.to_owned()).or_default().look = Some(now);
    }

    /// The status says what is so.
    pub(super) fn told(&self, uid: &str) {
        if let Some(last) = self.last().get_mut(uid) {
            last.untold = None;
        }
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
    fn what_is_so_for_a_while_is_told() {
        let (pace, start) = (Pace::default(), Instant::now());
        assert_eq!(pace.until_word("w", start), Some(WORDS));
        assert_eq!(pace.until_word("w", start + LOOKS), Some(WORDS - LOOKS), "counted from the first change");
        assert_eq!(pace.until_word("other", start + LOOKS), Some(WORDS));
        assert_eq!(pace.until_word("w", start + WORDS), None);
        pace.told("w");
        assert_eq!(pace.until_word("w", start + WORDS), Some(WORDS), "the next change");
        assert!(WORDS + LOOKS < Duration::from_secs(2), "what happens right after a look is told within two seconds");
    }
}
