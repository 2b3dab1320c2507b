//! The wall clock of a process, for times that it writes into objects or compares with times in objects. Durations
//! are measured with `tokio::time::Instant` instead, which can't be set.

use std::sync::Arc;

use jiff::Timestamp;

/// Returns the wall-clock time. Clones share the clock.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Default for Clock {
    /// The system clock.
    fn default() -> Self {
        Self(Arc::new(Timestamp::now))
    }
}

impl Clock {
    /// A clock that returns the result of `tell`.
    #[cfg(feature = "simulation")]
    pub fn of(report: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(report))
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}
