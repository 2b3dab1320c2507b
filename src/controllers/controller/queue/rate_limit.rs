//! Limits how often one Worker is reconciled and how often the text of its status changes. After a pause, an event
//! triggers a reconcile immediately, otherwise at most one per [`RECONCILE_INTERVAL`]. A changed text is written after
//! [`TEXT_DELAY`], because by then it has often changed again or the operation has ended.
//!
//! A debounce would not work: it restarts with each event, and the machines of a large Worker cause events for
//! minutes without a pause.

use std::time::Duration;

use tokio::time::Instant;

/// Minimum time between the end of one reconcile and the start of the next.
pub(crate) const RECONCILE_INTERVAL: Duration = Duration::from_millis(250);
/// Delay from a change to its status text. Readers of the status see a change within two seconds.
const TEXT_DELAY: Duration = Duration::from_secs(1);

/// Time of the last reconcile of one Worker, and since when its status text is outdated.
#[derive(Debug, Default)]
pub(crate) struct RateLimit {
    reconciled: Option<Instant>,
    unwritten_since: Option<Instant>,
}

impl RateLimit {
    /// Remaining time until the next reconcile; `None` if it may start.
    pub(crate) fn until_reconcile(&self, now: Instant) -> Option<Duration> {
        left(self.reconciled? + RECONCILE_INTERVAL, now)
    }

    /// Time since the last reconcile; `None` if there was none.
    pub(crate) fn since_reconcile(&self, now: Instant) -> Option<Duration> {
        now.checked_duration_since(self.reconciled?)
    }

    /// Called when the status text of a waiting Worker is outdated. Returns the remaining time until it is written;
    /// `None` if it is due.
    pub(crate) fn until_text(&mut self, now: Instant) -> Option<Duration> {
        left(*self.unwritten_since.get_or_insert(now) + TEXT_DELAY, now)
    }

    /// Called when a reconcile has ended.
    pub(crate) fn reconciled(&mut self, now: Instant) {
        self.reconciled = Some(now);
    }

    /// Called once the status is up to date.
    pub(crate) fn text_written(&mut self) {
        self.unwritten_since = None;
    }
}

fn left(time: Instant, now: Instant) -> Option<Duration> {
    time.checked_duration_since(now).filter(|wait| !wait.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reconcile_is_at_once_and_the_next_after_a_pause() {
        let mut limit = RateLimit::default();
        let start = Instant::now();
        assert_eq!(limit.until_reconcile(start), None);
        limit.reconciled(start);
        let wait = limit.until_reconcile(start + RECONCILE_INTERVAL / 4);
        assert_eq!(wait, Some(RECONCILE_INTERVAL * 3 / 4), "counted from the last reconcile, not from the event");
        assert_eq!(limit.until_reconcile(start + RECONCILE_INTERVAL), None);
    }

    #[test]
    fn a_text_that_stays_for_a_while_is_written() {
        let mut limit = RateLimit::default();
        let start = Instant::now();
        assert_eq!(limit.until_text(start), Some(TEXT_DELAY));
        assert_eq!(
            limit.until_text(start + RECONCILE_INTERVAL),
            Some(TEXT_DELAY - RECONCILE_INTERVAL),
            "counted from the first change"
        );
        assert_eq!(limit.until_text(start + TEXT_DELAY), None);
        limit.text_written();
        assert_eq!(limit.until_text(start + TEXT_DELAY), Some(TEXT_DELAY), "the next change");
        assert!(
            TEXT_DELAY + RECONCILE_INTERVAL < Duration::from_secs(2),
            "a change right after a reconcile is reported within two seconds"
        );
    }

    #[test]
    fn measures_time_since_the_last_reconcile() {
        let mut limit = RateLimit::default();
        let start = Instant::now();
        assert_eq!(limit.since_reconcile(start), None);
        limit.reconciled(start);
        assert_eq!(limit.since_reconcile(start + TEXT_DELAY), Some(TEXT_DELAY));
    }
}
