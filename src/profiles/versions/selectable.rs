//! The versions of an image that new pools can select, the best first, for advice.

use jiff::Timestamp;

use wire::api::gardener::ProfileImageVersion;
use wire::api::gotext::version::Version;
use wire::capabilities::{Classification, Life};

/// The versions that can be selected at the time `now`, with their classification. Supported versions come first, then
/// previews, then deprecated ones; within each class, the newest first.
#[must_use]
pub fn selectable(versions: &[ProfileImageVersion], now: Timestamp) -> Vec<(&ProfileImageVersion, Classification)> {
    let lives = versions.iter().map(|version| (version, Life::from(version).at(now)));
    let mut selectable: Vec<_> = lives.filter(|(_, classification)| classification.is_active()).collect();
    selectable.sort_by_cached_key(|(version, classification)| {
        let rank = match classification {
            Classification::Supported => 0,
            Classification::Preview => 1,
            Classification::Unknown | Classification::Deprecated => 2,
            Classification::Expired | Classification::Unavailable => 3,
        };
        (rank, std::cmp::Reverse(Version::parse(&version.version).ok()))
    });
    selectable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_comes_first_and_what_has_expired_not_at_all() {
        let version = |version: &str, classification: Option<&str>, expires: Option<&str>| ProfileImageVersion {
            version: version.to_owned(),
            classification: classification.map(str::to_owned),
            expiration_date: expires.map(str::to_owned),
            ..ProfileImageVersion::default()
        };
        let versions = [
            version("4.0.0", Some("preview"), None),
            version("1.9.0", Some("deprecated"), None),
            version("2.9.0", Some("supported"), None),
            version("2.10.0", None, None),
            version("3.0.0", Some("supported"), Some("2026-01-01T00:00:00Z")),
        ];
        let found = selectable(&versions, "2026-06-01T00:00:00Z".parse().unwrap());
        let found: Vec<&str> = found.iter().map(|(version, _)| version.version.as_str()).collect();
        assert_eq!(found, ["2.10.0", "2.9.0", "4.0.0", "1.9.0"]);
    }
}
