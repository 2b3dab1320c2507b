//! Compares the clock of this process with that of the API server, which decides whether a certificate is valid.

use std::time::Duration;

use anyhow::Context;
use axum::http::{HeaderMap, Request, header};
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use tokio::time::timeout;

/// A process whose clock differs by more than this from the API server's writes no certificate. Two processes with this
/// difference in opposite directions accept each other's certificates, which are valid from `rotation::SKEW` before
/// issue.
pub(super) const MAX_CLOCK_DIFFERENCE: SignedDuration = SignedDuration::from_secs(120);
/// A response that takes longer does not show the current time accurately enough.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Every API server serves this path. Even a denial has the header `Date`.
const RESPONSE_PATH: &str = "/version";

/// The clock of the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerClock {
    Time(Timestamp),
    /// Its response has no `Date`, for example because a proxy removed it.
    Unknown,
    /// It does not respond.
    Unreachable,
}

/// Two clocks at the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clocks {
    /// The clock of this process.
    pub(crate) own: Timestamp,
    pub(crate) server: ServerClock,
}

impl Clocks {
    /// Reads both clocks.
    pub(crate) async fn read(asking: &Client) -> Self {
        let response = match timeout(RESPONSE_TIMEOUT, date(asking)).await {
            Ok(Ok(date)) => date,
            Ok(Err(_)) | Err(_) => ServerClock::Unreachable,
        };
        Self { own: Timestamp::now(), server: response }
    }

    /// How far the clock of this process is ahead; negative if it is behind.
    pub(crate) fn difference(self) -> Option<SignedDuration> {
        match self.server {
            ServerClock::Time(server) => Some(self.own.duration_since(server)),
            ServerClock::Unknown | ServerClock::Unreachable => None,
        }
    }

    /// Why this process must not replace a certificate.
    pub(super) fn objection(self) -> Option<String> {
        if self.server == ServerClock::Unreachable {
            return Some("the API server does not answer, so its clock can't be compared".to_owned());
        }
        self.far_apart()
    }

    /// Describes the difference if it exceeds [`MAX_CLOCK_DIFFERENCE`].
    pub(super) fn far_apart(self) -> Option<String> {
        let difference = self.difference().filter(|difference| difference.abs() > MAX_CLOCK_DIFFERENCE)?;
        let direction = if difference.is_negative() { "behind" } else { "ahead of" };
        let seconds = difference.unsigned_abs().as_secs();
        Some(format!("the clock of this process is {seconds} s {direction} that of the API server"))
    }

    /// Whether the condition holds for both clocks. A single one may be wrong.
    pub(super) fn agree(self, reports: impl Fn(Timestamp) -> bool) -> bool {
        match self.server {
            ServerClock::Time(server) => reports(self.own) && reports(server),
            ServerClock::Unknown | ServerClock::Unreachable => false,
        }
    }

    /// The time at which the API server verifies certificates, or our own if unknown.
    pub(super) fn verifying(self) -> Timestamp {
        match self.server {
            ServerClock::Time(server) => server,
            ServerClock::Unknown | ServerClock::Unreachable => self.own,
        }
    }
}

async fn date(asking: &Client) -> anyhow::Result<ServerClock> {
    let request = Request::get(RESPONSE_PATH).body(Body::empty()).context("no request")?;
    Ok(observed(asking.send(request).await?.headers()))
}

fn observed(headers: &HeaderMap) -> ServerClock {
    let date = headers.get(header::DATE).and_then(|date| date.to_str().ok());
    let date = date.and_then(|date| DateTimeParser::new().parse_timestamp(date).ok());
    date.map_or(ServerClock::Unknown, ServerClock::Time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clocks(own: i64, server: ServerClock) -> Clocks {
        Clocks { own: Timestamp::constant(own, 0), server }
    }

    #[test]
    fn far_clocks_must_not_write() {
        let server = ServerClock::Time(Timestamp::constant(1_000_000, 0));
        assert_eq!(clocks(1_000_120, server).objection(), None);
        assert_eq!(clocks(999_880, server).objection(), None);
        let ahead = clocks(1_003_600, server).objection().unwrap();
        assert_eq!(ahead, "the clock of this process is 3600 s ahead of that of the API server");
        let behind = clocks(996_400, server).objection().unwrap();
        assert_eq!(behind, "the clock of this process is 3600 s behind that of the API server");
        assert_eq!(clocks(0, ServerClock::Unknown).objection(), None);
        assert!(clocks(0, ServerClock::Unreachable).objection().is_some());
    }

    #[test]
    fn one_clock_alone_is_not_believed() {
        let is_late = |time: Timestamp| time > Timestamp::constant(5, 0);
        assert!(clocks(9, ServerClock::Time(Timestamp::constant(8, 0))).agree(is_late));
        assert!(!clocks(9, ServerClock::Time(Timestamp::constant(1, 0))).agree(is_late));
        assert!(!clocks(9, ServerClock::Unknown).agree(is_late));
    }

    #[test]
    fn reads_the_date_of_any_response() {
        let header = |date: &str| observed(&HeaderMap::from_iter([(header::DATE, date.parse().unwrap())]));
        let expected = ServerClock::Time("1994-11-06T08:49:37Z".parse().unwrap());
        assert_eq!(header("Sun, 06 Nov 1994 08:49:37 GMT"), expected);
        assert_eq!(header("yesterday"), ServerClock::Unknown);
        assert_eq!(observed(&HeaderMap::new()), ServerClock::Unknown);
    }
}
