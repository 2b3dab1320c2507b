//! Pure: the condition that reports how long a shoot can keep its versions (docs/versions.md#in-the-cluster).

use serde_json::Value;

use crate::versions::notices::{Notice, PoolVersions};
use decisions::worker::status::conditions::{Condition, ConditionType};
use decisions::worker::status::status_text::MAX_FAILURE_BYTES;
use wire::api::bounded_text::listed;

/// Text of the condition if nothing is forced.
const NOTHING_EXPIRES: &str = "No version of the shoot has to go by force within a year.";

/// Whether a version of the shoot is forced to change within a year: which one, when and to what. Newer images for pools
/// whose owner opted out are named, too. They don't make the condition false, because the owner may stay.
#[must_use]
pub fn versions_current(notices: &[Notice], pools: &[PoolVersions]) -> Condition {
    let of_type = ConditionType::VersionsCurrent;
    let updates: Vec<String> =
        pools.iter().filter_map(|pool| pool.declined_update.as_ref()).map(ToString::to_string).collect();
    if notices.is_empty() {
        return match updates.is_empty() {
            true => Condition::met(of_type, "NothingExpires", NOTHING_EXPIRES),
            false => {
                let updates = listed(&updates, MAX_FAILURE_BYTES - NOTHING_EXPIRES.len() - 1);
                Condition::met(of_type, "UpdateAvailable", format!("{NOTHING_EXPIRES} {updates}"))
            }
        };
    }
    let texts: Vec<String> = notices.iter().map(ToString::to_string).chain(updates).collect();
    let reason = if notices.iter().any(Notice::is_stuck) { "VersionStuck" } else { "VersionExpires" };
    Condition::unmet(of_type, reason, listed(&texts, MAX_FAILURE_BYTES))
}

/// No forecast is available.
#[must_use]
pub fn versions_unknown(why: &str) -> Condition {
    Condition::unknown(ConditionType::VersionsCurrent, "NoForecast", why)
}

/// The condition if forecasts are disabled and another status is recorded.
#[must_use]
pub fn versions_forecast_disabled(present: &[Value]) -> Option<Condition> {
    versions_unknown("The controller runs without --version-forecast.").in_place_of_recorded(present)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::versions::declined_updates::DeclinedUpdate;
    use crate::versions::notices::{NoticeEnd, NoticeReason};
    use decisions::worker::status::conditions::ConditionStatus;

    fn notice(pool: &str, end: NoticeEnd) -> Notice {
        let reason = NoticeReason::Expires("2026-04-01T00:00:00Z".parse().unwrap());
        Notice { whose: format!("pool {pool}"), version: "os 1".to_owned(), reason, end }
    }

    #[test]
    fn the_condition_names_expiring_and_stuck_versions() {
        let current = versions_current(&[], &[]);
        assert_eq!((current.status, current.reason), (ConditionStatus::True, "NothingExpires"));
        let expires = versions_current(&[notice("web", NoticeEnd::Forced("2".to_owned()))], &[]);
        assert_eq!((expires.status, expires.reason), (ConditionStatus::False, "VersionExpires"));
        assert_eq!(expires.message, "pool web: os 1 expires on 2026-04-01, then forced to 2");
        let stuck = versions_current(&[notice("web", NoticeEnd::Stuck("Offer os 2.".to_owned()))], &[]);
        assert_eq!((stuck.status, stuck.reason), (ConditionStatus::False, "VersionStuck"));
        assert_eq!(stuck.message, "pool web: os 1 expires on 2026-04-01, then stuck. Offer os 2.");
    }

    #[test]
    fn available_updates_leave_the_condition_true() {
        let pool = |name: &str| PoolVersions {
            declined_update: Some(DeclinedUpdate {
                pool: name.to_owned(),
                image: "os".to_owned(),
                from: "1".to_owned(),
                to: "2".to_owned(),
                command: Some("kubectl x".to_owned()),
            }),
            ..PoolVersions::default()
        };
        let available = versions_current(&[], &[pool("web"), PoolVersions::default()]);
        assert_eq!((available.status, available.reason), (ConditionStatus::True, "UpdateAvailable"));
        assert_eq!(
            available.message,
            "No version of the shoot has to go by force within a year. pool web: os 2 is available after 1, and \
             automatic updates are off; to take it: kubectl x"
        );
        let many: Vec<PoolVersions> = (0..1000).map(|number| pool(&format!("{number}\u{202e}"))).collect();
        let message = versions_current(&[], &many).message;
        assert!(message.len() <= MAX_FAILURE_BYTES && message.contains("more"), "{} bytes", message.len());
        let both = versions_current(&[notice("db", NoticeEnd::Forced("2".to_owned()))], &[pool("web")]);
        assert_eq!((both.status, both.reason), (ConditionStatus::False, "VersionExpires"));
        assert!(both.message.contains("pool db: os 1 expires") && both.message.contains("pool web: os 2 is available"));
    }

    #[test]
    fn bounds_and_escapes_hostile_names() {
        let many: Vec<Notice> = (0..1000)
            .map(|number| notice(&format!("{number}\u{202e}{}", "x".repeat(500)), NoticeEnd::Forced("2".to_owned())))
            .collect();
        let message = versions_current(&many, &[]).message;
        assert!(message.len() <= MAX_FAILURE_BYTES && message.contains("\\u{202e}"), "{} bytes", message.len());
        assert!(message.contains("more"), "{message}");
    }

    #[test]
    fn disabled_forecast_sets_unknown_once() {
        assert_eq!(versions_forecast_disabled(&[]), None);
        let recorded =
            |status: &str| versions_forecast_disabled(&[json!({"type": "VersionsCurrent", "status": status})]);
        assert_eq!(recorded("True").unwrap().status, ConditionStatus::Unknown);
        assert_eq!(recorded("Unknown"), None);
    }
}
