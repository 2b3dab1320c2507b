//! Tracks how long a client's requests have received no response.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

/// Time since which requests fail without a response. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct Responses(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    last: Option<Instant>,
    missing_since: Option<Instant>,
}

impl Responses {
    /// Records a complete response.
    pub(crate) fn responded(&self, now: Instant) {
        *self.state() = State { last: Some(now), missing_since: None };
    }

    /// Records a request without a response, by the time at which it was sent.
    pub fn unanswered(&self, began: Instant) {
        let mut state = self.state();
        let since = state.last.map_or(began, |last| last.max(began));
        state.missing_since.get_or_insert(since);
    }

    /// How long requests have received no response; `None` if the last completed request received one.
    pub fn missing_for(&self, now: Instant) -> Option<Duration> {
        self.state().missing_since.map(|since| now.saturating_duration_since(since))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_unresponsive_time_from_last_response() {
        let responses = Responses::default();
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(responses.missing_for(at(100)), None, "nobody has asked");
        responses.unanswered(at(1));
        responses.unanswered(at(5));
        assert_eq!(responses.missing_for(at(31)), Some(Duration::from_secs(30)), "since the first one was asked");
        responses.responded(at(40));
        assert_eq!(responses.missing_for(at(50)), None);
        responses.unanswered(at(20));
        assert_eq!(responses.missing_for(at(50)), Some(Duration::from_secs(10)), "others were answered until then");
    }
}
