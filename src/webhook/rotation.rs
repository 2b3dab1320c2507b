//! Determines the due step of CA rotation, so that clients trust an authority before it signs the server's certificate:
//!
//! ```text
//!  time ──────────────────────────────────────────────────────────────►
//!  authority A   signs, trusted ──────────────────────┐ trusted until it expires
//!  authority B                       announced: trusted ┤ signs, trusted ──────────
//!                                    └─ announcement ──┘
//! ```

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Durations of the rotation.
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

/// The validity periods of all authorities.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Times {
    /// The signing authority.
    pub(crate) authority: Span,
    /// The next authority, already trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<Span>,
    /// The previous authority, still trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) former: Option<Span>,
    /// The names in the server's certificate.
    pub(crate) names: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    /// Create everything, because nothing exists or the authority has expired.
    Everything,
    /// Create the next authority and publish it as trusted.
    Announce,
    /// Sign with the next authority.
    Switch,
    /// Issue a server certificate for the new names.
    Reissue,
    /// Remove the previous authority, which has expired.
    RemoveFormer,
}

/// The due step. `published` is how long the current bundle has been published.
pub(crate) fn due(
    times: Option<&Times>,
    names: &[String],
    lifetimes: Lifetimes,
    published: Duration,
    now: Timestamp,
) -> Due {
    let Some(times) = times else { return Due::Everything };
    if times.authority.expires <= now {
        return Due::Everything;
    }
    match times.next {
        None if age(times.authority, now) >= lifetimes.renewal() => return Due::Announce,
        Some(next) if age(next, now) >= lifetimes.announcement && published >= lifetimes.announcement => {
            return Due::Switch;
        }
        _ => {}
    }
    if times.names != names {
        return Due::Reissue;
    }
    if times.former.is_some_and(|former| former.expires <= now) { Due::RemoveFormer } else { Due::Nothing }
}

/// If the clock moves backwards, the age is zero.
fn age(span: Span, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(span.issued)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
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

    fn due_at(times: &Times, hours: i64, published: Duration) -> Due {
        due(Some(times), &["a".to_owned()], LIFETIMES, published, at(hours))
    }

    #[test]
    fn an_authority_is_announced_before_it_signs_and_trusted_until_it_ends() {
        assert_eq!(due(None, &[], LIFETIMES, HOUR, at(0)), Due::Everything);
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
    fn nothing_is_switched_before_everybody_was_told() {
        assert_eq!(due_at(&times(0, Some(20), None), 25, HOUR / 2), Due::Nothing);
    }

    #[test]
    fn other_names_need_another_certificate() {
        assert_eq!(due(Some(&times(0, None, None)), &["b".to_owned()], LIFETIMES, HOUR, at(1)), Due::Reissue);
    }
}
