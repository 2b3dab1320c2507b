//! Validates Kubernetes versions, and the lifecycle of all kinds of versions (docs/contract.md#versions).

use std::collections::HashMap;

use jiff::Timestamp;

use super::FeatureGates;
use wire::api::gardener::{ExpirableVersion, KubernetesSettings, LifecycleStage};
use wire::api::gotext::field::{FieldErrors, FieldPath};
use wire::api::gotext::version::Version;
use wire::capabilities::{Classification, Life};

/// Classifications that messages list as supported, in the order of Gardener.
const WRITTEN: [&str; 4] = ["deprecated", "expired", "preview", "supported"];

/// Classifications in the order of a version's lifecycle.
const ORDER: [&str; 4] = ["preview", "supported", "deprecated", "expired"];

pub(super) fn validate_kubernetes(
    kubernetes: &KubernetesSettings,
    gates: FeatureGates,
    now: Timestamp,
    path: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let versions = &kubernetes.versions;
    let path = path.child("versions");
    if versions.is_empty() {
        errors.required(path, "must provide at least one Kubernetes version");
    }
    validate_latest(versions, path, errors);
    for (index, version) in versions.iter().enumerate() {
        let path = path.index(index);
        if !is_release(&version.version) {
            errors.invalid(
                path,
                &version.version,
                r"all Kubernetes versions must match the regex ^([0-9]+\.){2}[0-9]+$",
            );
        } else if versions.iter().take(index).any(|earlier| earlier.version == version.version) {
            errors.duplicate(path.child("version"), &version.version);
        }
        validate_lifecycle(Life::from(version), gates, path, errors);
    }
    let lives = versions.iter().map(|version| (version.version.as_str(), Life::from(version)));
    validate_one_supported(lives, now, path, errors);
}

/// The newest version must not expire.
fn validate_latest(versions: &[ExpirableVersion], path: FieldPath<'_>, errors: &mut FieldErrors) {
    let parsed: Option<Vec<_>> =
        versions.iter().map(|version| Some((Version::parse(&version.version).ok()?, version))).collect();
    // Of equal ones the first counts.
    let latest = parsed
        .and_then(|parsed| parsed.into_iter().reduce(|latest, next| if next.0 > latest.0 { next } else { latest }));
    let Some((_, latest)) = latest else {
        errors.invalid(path, "", "failed to determine the latest kubernetes version from the cloud profile");
        return;
    };
    // Gardener's path refers to the list instead of the version.
    let latest_path = FieldPath::new("spec.kubernetes.versions[]");
    if let Some(expiration) = &latest.expiration_date {
        let detail = format!("expiration date of latest kubernetes version ('{}') must not be set", latest.version);
        errors.invalid(latest_path.child("expirationDate"), expiration, detail);
    }
    if latest.lifecycle.last().is_some_and(|stage| stage.classification == "expired") {
        let detail =
            format!("classification expired of latest kubernetes version ('{}') must not be set", latest.version);
        // Gardener prints the expiration date even if there is none.
        errors.invalid(latest_path.child("lifecycle"), &latest.expiration_date, detail);
    }
}

/// Requires three numbers separated by dots.
fn is_release(version: &str) -> bool {
    let parts: Vec<&str> = version.split('.').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.len() == 3 && parts.iter().all(is_number)
}

/// Validates classification, expiration and lifecycle of a version.
pub(super) fn validate_lifecycle(life: Life<'_>, gates: FeatureGates, path: FieldPath<'_>, errors: &mut FieldErrors) {
    let lifecycle = path.child("lifecycle");
    if !life.stages.is_empty() && !gates.lifecycle {
        let gate = "lifecycles are not allowed with disabled VersionClassificationLifecycle feature gate";
        errors.forbidden(lifecycle, gate);
        return;
    }
    match life.classification {
        Some("expired") if life.stages.is_empty() => {
            errors.forbidden(path.child("classification"), "cannot specify `classification` expired");
        }
        Some(classification) if !WRITTEN.contains(&classification) => {
            errors.not_supported(path.child("classification"), classification, WRITTEN);
        }
        _ => {}
    }
    if life.stages.is_empty() {
        return;
    }
    if life.classification.is_some() || life.expiration_date.is_some() {
        let detail = "cannot specify `classification` or `expirationDate` in combination with `lifecycle`";
        errors.forbidden(path, detail);
    }
    validate_stages(life.stages, lifecycle, errors);
}

/// Each kind of error for all stages, as Gardener lists them.
fn validate_stages(stages: &[LifecycleStage], path: FieldPath<'_>, errors: &mut FieldErrors) {
    for (index, stage) in stages.iter().enumerate() {
        let classification = stage.classification.as_str();
        if !WRITTEN.contains(&classification) {
            errors.not_supported(path.index(index).child("classification"), classification, WRITTEN);
        }
    }
    for (index, stage) in stages.iter().enumerate() {
        let classification = stage.classification.as_str();
        if stages.iter().take(index).any(|earlier| earlier.classification == classification) {
            errors.duplicate(path.index(index).child("classification"), classification);
        }
    }
    validate_order(stages, path, errors);
    validate_start_times(stages, path, errors);
}

/// Each stage against the one before.
fn validate_order(stages: &[LifecycleStage], path: FieldPath<'_>, errors: &mut FieldErrors) {
    let position = |stage: &LifecycleStage| ORDER.iter().position(|known| *known == stage.classification);
    for (index, (before, stage)) in stages.iter().zip(stages.iter().skip(1)).enumerate() {
        let (Some(earlier), Some(later)) = (position(before), position(stage)) else { continue };
        if later < earlier {
            let classification = stage.classification.as_str();
            let detail = format!(
                "lifecycle classifications not in expected order ({}): {classification} must be before {}",
                ORDER.join(", "),
                before.classification
            );
            errors.invalid(path.index(index + 1).child("classification"), classification, detail);
        }
    }
}

fn validate_start_times(stages: &[LifecycleStage], path: FieldPath<'_>, errors: &mut FieldErrors) {
    let mut began = None;
    for (index, stage) in stages.iter().enumerate() {
        let path = path.index(index);
        // Kubernetes has rejected invalid times when decoding.
        let start = stage.start_time.as_deref().and_then(|start| start.parse::<Timestamp>().ok());
        if stage.start_time.is_none() && index > 0 {
            errors.required(path, "only the leading lifecycle elements can have the start time optional");
        }
        if let (Some(start), Some(before)) = (start, began)
            && start < before
        {
            errors.invalid(path, &stage.start_time, "lifecycle start times must be monotonically increasing");
        }
        began = start.or(began);
    }
}

/// At most one version of a minor version may be supported. As in Gardener, only explicitly supported versions are
/// checked, and versions without classification are ignored.
pub(super) fn validate_one_supported<'a>(
    versions: impl Iterator<Item = (&'a str, Life<'a>)>,
    now: Timestamp,
    path: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let is_marked_supported = |life: &Life<'_>| {
        life.classification == Some("supported") || life.stages.iter().any(|stage| stage.classification == "supported")
    };
    let minor = |version: &str| Version::parse(version).ok().map(|version| (version.major, version.minor));
    let supported: Vec<_> = (0..)
        .zip(versions)
        .filter(|(_, (_, life))| is_marked_supported(life))
        .filter_map(|(index, (version, life)): (usize, _)| Some((index, version, life, minor(version)?)))
        .collect();
    let mut of_minor: HashMap<(u64, u64), usize> = HashMap::new();
    for (_, _, _, minor) in &supported {
        *of_minor.entry(*minor).or_default() += 1;
    }
    for (index, version, life, minor) in supported {
        let is_supported = life.at(now) == Classification::Supported;
        if !is_supported || life.classification != Some("supported") {
            continue;
        }
        // One error for each of the others.
        for _ in 1..of_minor.get(&minor).copied().unwrap_or_default() {
            let detail = format!(
                "unable to add version {version:?} with classification \"supported\". \"supported\" lifecycle stages must \
                 not overlap per minor version"
            );
            errors.forbidden(path.index(index), detail);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn errors_of(versions: serde_json::Value) -> Vec<String> {
        let kubernetes: KubernetesSettings = serde_json::from_str(&json!({"versions": versions}).to_string()).unwrap();
        let gates = FeatureGates { lifecycle: true, ..FeatureGates::default() };
        let mut errors = FieldErrors::default();
        let path = FieldPath::new("spec.kubernetes");
        validate_kubernetes(&kubernetes, gates, Timestamp::UNIX_EPOCH, path, &mut errors);
        errors.0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_lifecycle_does_not_end_the_latest() {
        let stages = json!([{"classification": "supported"}, {"classification": "expired", "startTime": "2027-01-01T00:00:00Z"}]);
        let error = "spec.kubernetes.versions[].lifecycle: Invalid value: null: classification expired of latest kubernetes \
                     version ('1.34.2') must not be set";
        assert_eq!(errors_of(json!([{"version": "1.34.2", "lifecycle": stages}, {"version": "1.33.6"}])), [error]);
        assert!(errors_of(json!([{"version": "1.34.2"}, {"version": "1.33.6", "lifecycle": stages}])).is_empty());
    }

    #[test]
    fn stages_are_listed_by_kind_of_error() {
        let stages = json!([
            {"classification": "expired", "startTime": "2027-01-01T00:00:00Z"},
            {"classification": "preview", "startTime": "2026-01-01T00:00:00Z"},
            {"classification": "expired", "startTime": "2028-01-01T00:00:00Z"},
            {"classification": "later"},
        ]);
        let errors = errors_of(json!([{"version": "1.34.2"}, {"version": "1.33.6", "lifecycle": stages}]));
        let starts = [
            "spec.kubernetes.versions[1].lifecycle[3].classification: Unsupported value",
            "spec.kubernetes.versions[1].lifecycle[2].classification: Duplicate value",
            "spec.kubernetes.versions[1].lifecycle[1].classification: Invalid value",
            "spec.kubernetes.versions[1].lifecycle[1]: Invalid value",
            "spec.kubernetes.versions[1].lifecycle[3]: Required value",
        ];
        assert_eq!(errors.len(), starts.len(), "{errors:#?}");
        assert!(errors.iter().zip(starts).all(|(error, start)| error.starts_with(start)), "{errors:#?}");
    }

    #[test]
    fn checks_the_latest_version_first() {
        let stages = json!([{"classification": "expired", "startTime": "2027-01-01T00:00:00Z"}, {"classification": "supported"}]);
        let versions = json!([
            {"version": "1.33.6", "classification": "nonsense"},
            {"version": "1.34.2", "expirationDate": "2027-01-01T00:00:00Z", "lifecycle": stages},
        ]);
        let errors = errors_of(versions);
        assert!(errors[0].starts_with("spec.kubernetes.versions[].expirationDate: Invalid value"), "{errors:#?}");
        assert!(errors[1].starts_with("spec.kubernetes.versions[0].classification: Unsupported value"), "{errors:#?}");
        assert!(errors[2..].iter().all(|error| error.starts_with("spec.kubernetes.versions[1]")), "{errors:#?}");
    }
}
