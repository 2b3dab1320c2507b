//! Tells of something to whoever waits, in the order in which they wait: tokio's own channel for that wakes them in a random one.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// A number of which each change is told. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Signal {
    number: Arc<AtomicU64>,
    notify: Arc<Notify>,
}

/// Somebody who waits for changes.
pub(crate) struct Listener {
    signal: Signal,
    seen: u64,
}

impl Signal {
    /// Sets the number.
    pub(crate) fn set(&self, number: u64) {
        if self.number.swap(number, Ordering::Relaxed) != number {
            self.notify.notify_waiters();
        }
    }

    /// Counts one more.
    pub(crate) fn count(&self) {
        self.set(self.number.load(Ordering::Relaxed) + 1);
    }

    /// Waits for changes from now on.
    pub(crate) fn listen(&self) -> Listener {
        Listener { signal: self.clone(), seen: self.number.load(Ordering::Relaxed) }
    }
}

impl Listener {
    /// What has happened until now is known.
    pub(crate) fn mark_seen(&mut self) {
        self.seen = self.signal.number.load(Ordering::Relaxed);
    }

    /// Waits for the next change that is not known.
    pub(crate) async fn changed(&mut self) {
        loop {
            let mut notified = pin!(self.signal.notify.notified());
            notified.as_mut().enable();
            let number = self.signal.number.load(Ordering::Relaxed);
            if number != self.seen {
                self.seen = number;
                return;
            }
            notified.await;
        }
    }
}
