//! Warns about expiring versions, without denying the request (docs/versions.md#when-a-person-writes).

use jiff::Timestamp;
use serde::Deserialize;

use super::subject::Subject;
use profiles::cloud_profile::architecture_fields::apply_defaults;
use profiles::cloud_profile::namespaced::merge;
use profiles::versions::expirations::Expirations;
use profiles::versions::notices::{Notice, notices, notices_of_profile};
use runtime::webhook::Verdict;
use wire::api::bounded_text::shortened;
use wire::api::gardener::{
    NamespacedCloudProfile, NamespacedProfileSpec, ProfileSpec, ProfileVersions, VersionedShoot,
};

/// Maximum number of lines; the rest are counted.
const MOST_LINES: usize = 10;
/// Maximum length of a line; an API server truncates longer ones.
const MOST_BYTES: usize = 256;

/// The old CloudProfile. Decoding only its versions halves the duration of the review.
#[derive(Deserialize)]
struct OldProfile {
    #[serde(default)]
    spec: ProfileVersions,
}

/// Adds warnings about expiring versions of a Shoot.
pub(super) fn warn_of_shoot(
    verdict: Verdict,
    subject: Subject<'_>,
    mut profile: ProfileSpec,
    now: Timestamp,
) -> Verdict {
    let shoot: Option<VersionedShoot> = serde_json::from_str(subject.object).ok();
    // Gardener defaults open versions before webhooks are called. Without them, expiration cannot be determined.
    let is_complete = |shoot: &VersionedShoot| {
        let mut pools = shoot.spec.provider.workers.iter();
        shoot.spec.kubernetes.version.is_some() && pools.all(|pool| pool.machine.image.is_some())
    };
    let Some(shoot) = shoot.filter(is_complete) else { return verdict };
    apply_defaults(&mut profile);
    warned(verdict, || {
        // Too many notices are omitted, because a review has limited time.
        let mut notices = notices(&shoot, &profile, now).unwrap_or_default();
        let more = notices.len().saturating_sub(MOST_LINES);
        notices.truncate(MOST_LINES);
        (notices, more)
    })
}

/// Adds warnings about versions of a CloudProfile that newly expire.
pub(super) fn warn_of_profile(
    verdict: Verdict,
    subject: Subject<'_>,
    profile: &ProfileSpec,
    now: Timestamp,
) -> Verdict {
    warned(verdict, || {
        let old: Option<OldProfile> = subject.old.and_then(|old| serde_json::from_str(old).ok());
        let old = old.map(|old| Expirations::from(&old.spec));
        notices_of_profile(profile, old.as_ref(), now, MOST_LINES)
    })
}

/// Adds warnings about versions of a NamespacedCloudProfile that newly expire. Compares with the old profile, or on
/// creation with its parent.
pub(super) fn warn_of_namespaced(
    verdict: Verdict,
    subject: Subject<'_>,
    profile: NamespacedProfileSpec,
    parent: &ProfileSpec,
    now: Timestamp,
) -> Verdict {
    if profile.machine_images.is_empty() && profile.kubernetes.is_none() {
        return verdict;
    }
    let old: Option<NamespacedCloudProfile> = subject.old.and_then(|old| serde_json::from_str(old).ok());
    warned(verdict, || {
        let merged_old = old.map(|old| merge(parent.clone(), old.spec));
        let merged = merge(parent.clone(), profile);
        let old = Expirations::from(merged_old.as_ref().unwrap_or(parent));
        notices_of_profile(&merged, Some(&old), now, MOST_LINES)
    })
}

/// `notices` returns the notices to print and the number of further ones.
fn warned(mut verdict: Verdict, notices: impl FnOnce() -> (Vec<Notice>, usize)) -> Verdict {
    if let Verdict::Allowed { warnings, .. } = &mut verdict {
        let (notices, more) = notices();
        warnings.extend(notices.iter().map(|notice| shortened(&notice.to_string(), MOST_BYTES)));
        if more > 0 {
            warnings.push(format!("and {more} more versions expire"));
        }
    }
    verdict
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn warnings(verdict: Verdict) -> Vec<String> {
        let Verdict::Allowed { warnings, .. } = verdict else { panic!("nothing is refused for it") };
        warnings
    }

    fn profile(versions: Value) -> Value {
        json!({
            "type": "azure", "kubernetes": {"versions": [{"version": "1.34.3"}]}, "machineTypes": [{"name": "m"}],
            "machineImages": [{"name": "os", "versions": versions}],
        })
    }

    fn now() -> Timestamp {
        "2026-02-01T00:00:00Z".parse().unwrap()
    }

    #[test]
    fn warns_of_expiring_versions_in_a_shoot() {
        let profile =
            profile(json!([{"version": "2.0.0"}, {"version": "1.0.0", "expirationDate": "2026-04-01T00:00:00Z"}]));
        let profile: ProfileSpec = serde_json::from_str(&profile.to_string()).unwrap();
        let reported = |image: Value| {
            let machine = json!({"type": "m", "architecture": "amd64", "image": image});
            let spec = json!({
                "kubernetes": {"version": "1.34.3"}, "provider": {"workers": [{"name": "web", "machine": machine}]},
                "maintenance": {"autoUpdate": {"kubernetesVersion": false, "machineImageVersion": false}},
            });
            let object = json!({"metadata": {"name": "s"}, "spec": spec}).to_string();
            warnings(warn_of_shoot(
                Verdict::ALLOWED,
                Subject { object: &object, old: None, stop: None },
                profile.clone(),
                now(),
            ))
        };
        let expires = "pool web: os 1.0.0 expires on 2026-04-01, then forced to 2.0.0";
        assert_eq!(reported(json!({"name": "os", "version": "1.0.0"})), [expires]);
        assert_eq!(reported(json!({"name": "os", "version": "2.0.0"})), [""; 0]);
        assert_eq!(reported(Value::Null), [""; 0], "what Gardener has not set can't be told");
    }

    #[test]
    fn a_profile_warns_in_ten_lines_at_most() {
        let versions = (0..100).map(|number| {
            let version = format!("1.{number}.0-{}\u{202e}", "x".repeat(500));
            json!({"version": version, "expirationDate": "2026-04-01T00:00:00Z"})
        });
        let new = profile(versions.collect());
        let spec: ProfileSpec = serde_json::from_str(&new.to_string()).unwrap();
        let object = json!({"spec": new}).to_string();
        let old = json!({"spec": profile(json!([]))}).to_string();
        let reported = |old| {
            let subject = Subject { object: &object, old: Some(old), stop: None };
            warnings(warn_of_profile(Verdict::ALLOWED, subject, &spec, now()))
        };
        let all = reported(old.as_str());
        assert_eq!((all.len(), all[10].as_str()), (11, "and 90 more versions expire"));
        assert!(all.iter().all(|line| line.len() <= MOST_BYTES && !line.contains('\u{202e}')), "{all:?}");
        assert_eq!(reported(object.as_str()), [""; 0], "only what is new");
    }
}
