//! Notifies listeners in the order in which they wait, unlike tokio's watch channel, which wakes them in random order.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// A number whose changes are notified. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Signal {
    number: Arc<AtomicU64>,
    notify: Arc<Notify>,
}

/// Waits for changes.
pub(crate) struct Listener {
    signal: Signal,
    seen: u64,
}

impl Signal {
    pub(crate) fn set(&self, number: u64) {
        if self.number.swap(number, Ordering::Relaxed) != number {
            self.notify.notify_waiters();
        }
    }

    /// Increments the number.
    pub(crate) fn count(&self) {
        self.set(self.number.load(Ordering::Relaxed) + 1);
    }

    /// Listens for changes from now on.
    pub(crate) fn listen(&self) -> Listener {
        Listener { signal: self.clone(), seen: self.number.load(Ordering::Relaxed) }
    }
}

impl Listener {
    /// Ignores all changes so far.
    pub(crate) fn mark_seen(&mut self) {
        self.seen = self.signal.number.load(Ordering::Relaxed);
    }

    /// Waits for the next change since the last one seen.
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
