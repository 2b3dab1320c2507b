//! Determines the due step of CA rotation, so that clients trust an authority before it signs the server's certificate:
//!
//! ```text
//!  time ──────────────────────────────────────────────────────────────►
//!  authority A   signs, trusted ──────────────────────┐ trusted until it has expired by both clocks
//!  authority B                       announced: trusted ┤ signs, trusted ──────────
//!                                    └─ announcement ──┘
//! ```
//!
//! A process whose clock differs too much from the API server's changes nothing. An authority that is not valid yet was
//! written by a process with a wrong clock; it is replaced like an expired one.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::clocks::Clocks;

/// Certificates are valid from this long before they are issued, because clocks of others may be behind ours.
pub(super) const SKEW: Duration = Duration::from_secs(300);

/// How long things last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lifetimes {
    /// Validity of authorities and the certificates that they sign.
    pub(crate) validity: Duration,
    /// How long a new authority is published as trusted before it signs.
    pub(crate) announcement: Duration,
}

impl Lifetimes {
    /// Age at which a successor is created: two thirds of the validity.
    fn renewal(self) -> Duration {
        self.validity / 3 * 2
    }
}

/// The validity period of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Span {
    pub(crate) issued: Timestamp,
    pub(crate) expires: Timestamp,
}

impl Span {
    /// Whether it is neither expired nor ahead.
    fn is_usable(self, now: Timestamp) -> bool {
        let since = now.duration_since(self.issued);
        let begins = SignedDuration::try_from(SKEW).unwrap_or_default();
        since >= -begins && now < self.expires
    }

    /// Whether it can be removed from the trusted authorities. Both clocks must agree, because one wrong clock would
    /// remove an authority that the API server still needs.
    pub(super) fn is_over(self, clocks: Clocks) -> bool {
        clocks.agree(|now| !self.is_usable(now))
    }

    /// The span from the earlier beginning to the later end.
    pub(super) fn joined(self, other: Self) -> Self {
        Self { issued: self.issued.min(other.issued), expires: self.expires.max(other.expires) }
    }
}

/// The state of the CA that determines the due step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Times {
    /// The signing authority.
    pub(crate) authority: Span,
    /// The next authority, already trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<Span>,
    /// Former authorities that are still trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) former: Option<Span>,
    /// The names in the server's certificate.
    pub(crate) names: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    /// Create a new authority and certificate: there are none, or the authority is unusable.
    Everything,
    /// Create the next authority and publish it as trusted.
    Announce,
    /// Sign with the next authority.
    Switch,
    /// Issue a server certificate for the new names.
    Reissue,
    /// The former authorities have expired.
    RemoveFormer,
}

/// The due step. `published` is how long the current bundle has been published.
pub(crate) fn due(
    times: Option<&Times>,
    names: &[String],
    lifetimes: Lifetimes,
    published: Duration,
    clocks: Clocks,
) -> Due {
    let Some(times) = times else {
        // An unreachable API server is no obstacle: there is no certificate yet that it could trust instead.
        return if clocks.far_apart().is_some() { Due::Nothing } else { Due::Everything };
    };
    if clocks.objection().is_some() {
        return Due::Nothing;
    }
    let now = clocks.own;
    if !times.authority.is_usable(now) {
        return Due::Everything;
    }
    match times.next {
        None if age(times.authority, now) >= lifetimes.renewal() => return Due::Announce,
        Some(next) if !next.is_usable(now) => return Due::Announce,
        Some(next) if age(next, now) >= lifetimes.announcement && published >= lifetimes.announcement => {
            return Due::Switch;
        }
        _ => {}
    }
    if times.names != names {
        return Due::Reissue;
    }
    if times.former.is_some_and(|former| former.is_over(clocks)) { Due::RemoveFormer } else { Due::Nothing }
}

/// If the clock moves backwards, the age is zero.
fn age(span: Span, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(span.issued)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::clocks::ServerClock;
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const LIFETIMES: Lifetimes = Lifetimes { validity: Duration::from_secs(30 * 3600), announcement: HOUR };

    fn at(hours: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_hours(hours)
    }

    fn span(issued: i64) -> Span {
        Span { issued: at(issued), expires: at(issued + 30) }
    }

    fn times(authority: i64, next: Option<i64>, former: Option<i64>) -> Times {
        Times {
            authority: span(authority),
            next: next.map(span),
            former: former.map(span),
            names: vec!["a".to_owned()],
        }
    }

    fn both(hours: i64) -> Clocks {
        Clocks { own: at(hours), server: ServerClock::Time(at(hours)) }
    }

    fn due_at(times: &Times, hours: i64, published: Duration) -> Due {
        due(Some(times), &["a".to_owned()], LIFETIMES, published, both(hours))
    }

    #[test]
    fn an_authority_is_announced_before_it_signs_and_trusted_until_it_ends() {
        assert_eq!(due(None, &[], LIFETIMES, HOUR, both(0)), Due::Everything);
        let first = times(0, None, None);
        assert_eq!(due_at(&first, 19, HOUR), Due::Nothing);
        assert_eq!(due_at(&first, 20, HOUR), Due::Announce);
        assert_eq!(due_at(&first, 30, HOUR), Due::Everything, "too late: nobody trusts it any more");
        let announced = times(0, Some(20), None);
        assert_eq!(due_at(&announced, 20, HOUR), Due::Nothing);
        assert_eq!(due_at(&announced, 21, HOUR), Due::Switch);
        let switched = times(20, None, Some(0));
        assert_eq!(due_at(&switched, 22, HOUR), Due::Nothing);
        assert_eq!(due_at(&switched, 30, HOUR), Due::RemoveFormer);
    }

    #[test]
    fn switches_only_after_all_replicas_were_informed() {
        assert_eq!(due_at(&times(0, Some(20), None), 25, HOUR / 2), Due::Nothing);
    }

    #[test]
    fn other_names_need_another_certificate() {
        assert_eq!(due(Some(&times(0, None, None)), &["b".to_owned()], LIFETIMES, HOUR, both(1)), Due::Reissue);
    }

    #[test]
    fn replaces_authorities_that_lie_ahead() {
        assert_eq!(due_at(&times(2, None, None), 1, HOUR), Due::Everything);
        assert_eq!(due_at(&times(0, Some(2), None), 1, HOUR), Due::Announce);
        let slightly_ahead = Clocks { own: at(1) - SKEW, ..both(1) };
        let slightly_ahead = Clocks { server: ServerClock::Unknown, ..slightly_ahead };
        assert_eq!(due(Some(&times(1, None, None)), &["a".to_owned()], LIFETIMES, HOUR, slightly_ahead), Due::Nothing);
    }

    #[test]
    fn far_clocks_change_nothing() {
        let names = ["a".to_owned()];
        for (own, server) in [(40, 1), (1, 40)] {
            let clocks = Clocks { own: at(own), server: ServerClock::Time(at(server)) };
            assert_eq!(due(Some(&times(0, None, None)), &names, LIFETIMES, HOUR, clocks), Due::Nothing);
            assert_eq!(due(None, &names, LIFETIMES, HOUR, clocks), Due::Nothing);
        }
    }

    #[test]
    fn writes_only_the_first_certificate_without_a_response() {
        let names = ["a".to_owned()];
        let clocks = Clocks { own: at(40), server: ServerClock::Unreachable };
        assert_eq!(due(None, &names, LIFETIMES, HOUR, clocks), Due::Everything);
        assert_eq!(due(Some(&times(0, None, None)), &names, LIFETIMES, HOUR, clocks), Due::Nothing);
    }

    #[test]
    fn keeps_former_authorities_without_a_second_clock() {
        let names = ["a".to_owned()];
        let clocks = Clocks { own: at(31), server: ServerClock::Unknown };
        assert_eq!(due(Some(&times(20, None, Some(0))), &names, LIFETIMES, HOUR, clocks), Due::Nothing);
        assert_eq!(due_at(&times(20, None, Some(0)), 31, HOUR), Due::RemoveFormer);
    }
}
