//! Shared view of leadership: until when this process can be sure that it holds the lease.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

/// Leadership of this process. Clones share it.
#[derive(Clone, Debug)]
pub struct Leadership {
    /// Until when writes are allowed, by the monotonic clock; `None` before the election and after a loss.
    until: Arc<Mutex<Option<Instant>>>,
    led: watch::Sender<bool>,
}

impl Default for Leadership {
    fn default() -> Self {
        Self { until: Arc::default(), led: watch::Sender::new(false) }
    }
}

impl Leadership {
    /// Called after the lease was written, which makes it valid until `until`.
    pub fn extend(&self, until: Instant) {
        *self.until.lock() = Some(until);
        self.led.send_replace(true);
    }

    /// Called when the lease is lost or released.
    pub(crate) fn end(&self) {
        *self.until.lock() = None;
        self.led.send_replace(false);
    }

    /// Whether a write is allowed now. A process that was suspended for a while notices on its own that its time is
    /// over.
    pub fn is_held(&self, now: Instant) -> bool {
        self.until.lock().is_some_and(|until| now < until)
    }

    /// Returns once this process leads.
    pub async fn wait(&self) {
        let mut led = self.led.subscribe();
        // The sender lives in `self`, so waiting can't fail.
        let _ = led.wait_for(|led| *led).await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn leadership_ends_by_the_clock_alone() {
        let leadership = Leadership::default();
        let now = Instant::now();
        assert!(!leadership.is_held(now), "nobody has been elected");
        leadership.extend(now + Duration::from_secs(10));
        assert!(leadership.is_held(now + Duration::from_secs(9)));
        assert!(!leadership.is_held(now + Duration::from_secs(10)), "a stopped process wakes without leadership");
        leadership.end();
        assert!(!leadership.is_held(now));
    }
}
