//! How often one Worker is reconciled, and how often its status is rewritten in other words. A Worker is reconciled at once
//! when something happens after a pause, else at most once in [`RECONCILES`], however much happens. A text of the status is
//! written [`TEXTS`] after it became another one: until then it is often another one again, or the operation has ended. A
//! debounce would not do: it starts anew with each event, and the machines of a large Worker make events without a pause for
//! minutes.

use std::time::Duration;

use tokio::time::Instant;

/// From the end of one reconcile to the beginning of the next.
pub(crate) const RECONCILES: Duration = Duration::from_millis(250);
/// From a change to the text about it. Whoever reads the status sees a change within two seconds.
const TEXTS: Duration = Duration::from_secs(1);

/// When one Worker was reconciled, and since when its status says something else.
#[derive(Debug, Default)]
pub(crate) struct RateLimit {
    reconciled: Option<Instant>,
    unwritten_since: Option<Instant>,
}

impl RateLimit {
    /// How long to wait before the next reconcile; `None` when it is time.
    pub(crate) fn until_reconcile(&self, now: Instant) -> Option<Duration> {
        left(self.reconciled? + RECONCILES, now)
    }

    /// How long ago the Worker was reconciled last; `None` when it never was.
    pub(crate) fn since_reconcile(&self, now: Instant) -> Option<Duration> {
        now.checked_duration_since(self.reconciled?)
    }

    /// The status of a Worker that waits says something else: how long until it is written; `None` when it is time.
    pub(crate) fn until_text(&mut self, now: Instant) -> Option<Duration> {
        left(*self.unwritten_since.get_or_insert(now) + TEXTS, now)
    }

    /// A reconcile has ended.
    pub(crate) fn reconciled(&mut self, now: Instant) {
        self.reconciled = Some(now);
    }

    /// The status is up to date.
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
        let (mut limit, start) = (RateLimit::default(), Instant::now());
        assert_eq!(limit.until_reconcile(start), None);
        limit.reconciled(start);
        let wait = limit.until_reconcile(start + RECONCILES / 4);
        assert_eq!(wait, Some(RECONCILES * 3 / 4), "counted from the last reconcile, not from the event");
        assert_eq!(limit.until_reconcile(start + RECONCILES), None);
    }

    #[test]
    fn a_text_that_stays_for_a_while_is_written() {
        let (mut limit, start) = (RateLimit::default(), Instant::now());
        assert_eq!(limit.until_text(start), Some(TEXTS));
        assert_eq!(limit.until_text(start + RECONCILES), Some(TEXTS - RECONCILES), "counted from the first change");
        assert_eq!(limit.until_text(start + TEXTS), None);
        limit.text_written();
        assert_eq!(limit.until_text(start + TEXTS), Some(TEXTS), "the next change");
        assert!(
            TEXTS + RECONCILES < Duration::from_secs(2),
            "a change right after a reconcile is reported within two seconds"
        );
    }

    #[test]
    fn the_time_since_the_last_reconcile_is_known_once_there_was_one() {
        let (mut limit, start) = (RateLimit::default(), Instant::now());
        assert_eq!(limit.since_reconcile(start), None);
        limit.reconciled(start);
        assert_eq!(limit.since_reconcile(start + TEXTS), Some(TEXTS));
    }
}
