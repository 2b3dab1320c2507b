//! Deprecates the versions that a new version of an image replaces, and sets their expiration.

use jiff::Timestamp;
use serde_json::{Value, json};

use wire::api::gardener::ProfileImageVersion;
use wire::api::gotext::json::decode_value;
use wire::api::gotext::version::Version;
use wire::capabilities::{Classification, Life};

/// What happens to the versions that a new version replaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Supersede {
    /// They stay as they are.
    #[default]
    No,
    /// They become deprecated.
    Deprecate,
    /// They become deprecated, and expire at this time unless they expire earlier.
    Expire(Timestamp),
}

/// A version that a new one replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superseded {
    /// Name of the image.
    pub image: String,
    /// The replaced version.
    pub version: String,
    /// The new version.
    pub by: String,
    /// When the replaced version expires.
    pub expires: Option<Timestamp>,
}

/// Supersedes the predecessors of a new version: the supported versions of the same minor version, otherwise the next
/// older supported version. `versions` is the list of the image in a CloudProfile.
pub(super) fn supersede(
    versions: &mut Value,
    (image, new): (&str, &str),
    how: Supersede,
    now: Timestamp,
) -> Vec<Superseded> {
    let (Ok(number), false) = (Version::parse(new), how == Supersede::No) else { return Vec::new() };
    let Some(versions) = versions.as_array_mut() else { return Vec::new() };
    let mut older: Vec<(Version, &mut Value)> = Vec::new();
    for entry in versions.iter_mut() {
        let Ok(known) = Version::parse(entry["version"].as_str().unwrap_or_default()) else { continue };
        if known < number && stage(entry, now) == Some(Classification::Supported) {
            older.push((known, entry));
        }
    }
    older.sort_by(|(a, _), (b, _)| b.cmp(a));
    let has_predecessor = older.iter().any(|(known, _)| known.major_minor() == number.major_minor());
    if has_predecessor {
        older.retain(|(known, _)| known.major_minor() == number.major_minor());
    } else {
        older.truncate(1);
    }
    let superseded = |(_, entry): (Version, &mut Value)| Superseded {
        image: image.to_owned(),
        version: entry["version"].as_str().unwrap_or_default().to_owned(),
        by: new.to_owned(),
        expires: deprecate(entry, how),
    };
    older.into_iter().map(superseded).collect()
}

fn stage(entry: &Value, now: Timestamp) -> Option<Classification> {
    let version: ProfileImageVersion = decode_value(entry).ok()?;
    Some(Life::from(&version).at(now))
}

/// Deprecates a version. Returns when it expires. Gardener counts each stage `supported`, even a past one, so stages are
/// replaced.
fn deprecate(entry: &mut Value, how: Supersede) -> Option<Timestamp> {
    let known = decode_value::<ProfileImageVersion>(entry).ok().and_then(|version| Life::from(&version).expires());
    let expires = match how {
        Supersede::Expire(time) => Some(known.map_or(time, |known| known.min(time))),
        Supersede::No | Supersede::Deprecate => known,
    };
    let deprecated = Classification::Deprecated.word();
    if entry["lifecycle"].as_array().is_some_and(|stages| !stages.is_empty()) {
        let mut stages = vec![json!({"classification": deprecated})];
        if let Some(time) = expires {
            stages.push(json!({"classification": Classification::Expired.word(), "startTime": time.to_string()}));
        }
        entry["lifecycle"] = stages.into();
        return expires;
    }
    entry["classification"] = deprecated.into();
    if let Some(time) = expires {
        entry["expirationDate"] = time.to_string().into();
    }
    expires
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_only_supported_predecessors() {
        let [now, later] =
            ["2026-11-22T00:00:00Z", "2026-11-24T00:00:00Z"].map(|time| time.parse::<Timestamp>().unwrap());
        let version = |version: &str, stage: &str| json!({"version": version, "classification": stage});
        let replaced = |list: &[Value], how: Supersede| {
            let mut list = json!(list);
            let found = supersede(&mut list, ("os", "1.2.3"), how, now);
            (found.into_iter().map(|old| old.version).collect::<Vec<_>>(), list)
        };
        let all = [
            version("1.2.4", "supported"),
            version("1.2.3", "supported"),
            version("1.2.2", "supported"),
            version("1.2.1", "preview"),
            version("1.1.9", "supported"),
        ];
        let (found, list) = replaced(&all, Supersede::Expire(later));
        assert_eq!(found, ["1.2.2"]);
        let expected =
            json!({"version": "1.2.2", "classification": "deprecated", "expirationDate": "2026-11-24T00:00:00Z"});
        assert_eq!(list[2], expected);
        assert_eq!(replaced(&all[4..], Supersede::Deprecate).0, ["1.1.9"], "the next older one");
        assert_eq!(replaced(&all, Supersede::No), (Vec::new(), json!(all)));
        let early = json!({"version": "1.2.0", "expirationDate": "2026-11-23T00:00:00Z"});
        let (_, list) = replaced(&[early], Supersede::Expire(later));
        assert_eq!(list[0]["expirationDate"], "2026-11-23T00:00:00Z", "it never expires later than before");
        let stages = json!([{"classification": "supported"}, {"classification": "expired", "startTime": "2027-01-01T00:00:00Z"}]);
        let (_, list) = replaced(&[json!({"version": "1.2.0", "lifecycle": stages})], Supersede::Expire(later));
        let expected = json!([{"classification": "deprecated"}, {"classification": "expired", "startTime": "2026-11-24T00:00:00Z"}]);
        assert_eq!(list[0]["lifecycle"], expected);
    }
}
