//! The time of day as a process takes it to be: what it writes into objects, and compares with what others have written there. How
//! long something lasts is counted by `tokio::time::Instant` instead, which nobody sets.

use std::sync::Arc;

use jiff::Timestamp;

/// Tells the time of day. Clones tell the same.
#[derive(Clone)]
pub(crate) struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Default for Clock {
    /// The clock of the machine.
    fn default() -> Self {
        Self(Arc::new(Timestamp::now))
    }
}

impl Clock {
    /// A clock that tells this.
    #[cfg(feature = "simulation")]
    pub(crate) fn of(tell: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    /// The time of day.
    pub(crate) fn now(&self) -> Timestamp {
        (self.0)()
    }
}
