//! Lint and the forecast follow the same rules: lint reports that pools and control planes move to a version if and
//! only if the forecast moves them there.

use std::collections::BTreeSet;

use gardener_extension_worker::api::gardener::ProfileSpec;
use gardener_extension_worker::cloud_profile::architecture_fields::apply_defaults;
use gardener_extension_worker::cloud_profile::validation::FeatureGates;
use gardener_extension_worker::provider::Providers;
use gardener_extension_worker::resolved_profile::lint::{Finding, Rule, Settings, lint};
use gardener_extension_worker::versions::catalog::VersionCatalog;
use gardener_extension_worker::versions::forecast::forecast;
use gardener_extension_worker::versions::garden::{Garden, Validation};
use gardener_extension_worker::versions::maintenance::MaintainedShoot;
use gardener_extension_worker::versions::run::Cause;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::version_worlds::{moment, profile};

const KUBELETS: [&str; 5] = ["1.30.0", "1.31.1", "1.32.0", "1.33.2", "1.34.3"];

/// Removes duplicate versions, because Gardener refuses them.
fn once(versions: &mut Value) {
    let mut known = BTreeSet::new();
    let versions = versions.as_array_mut().unwrap();
    versions.retain(|version| known.insert(version["version"].as_str().unwrap().to_owned()));
}

fn findings(spec: &Value, now: Timestamp) -> Vec<Finding> {
    let document = json!({"metadata": {"name": "p"}, "spec": spec});
    let soon = SignedDuration::from_hours(24 * 400);
    lint(&document, Settings { now, soon, gates: FeatureGates::default() }, Providers::SHIPPED).unwrap().findings
}

/// The reason of the finding about a version's expiration.
fn message<'f>(findings: &'f [Finding], subject: &str) -> &'f str {
    let rules = [Rule::Expired, Rule::ExpiresSoon, Rule::KubernetesExpiresSoon];
    let found = findings.iter().find(|finding| finding.subject == subject && rules.contains(&finding.rule));
    found.map_or("", |finding| finding.reason.as_str())
}

/// The versions after `are moved to`, without the conditions that follow.
fn targets(text: &str) -> BTreeSet<String> {
    let Some((_, list)) = text.split_once("are moved to ") else { return BTreeSet::new() };
    let ends = [", by ", ", and some are stuck", ", but those"];
    let end = ends.iter().filter_map(|end| list.find(end)).min().unwrap_or(list.len());
    let list = list[..end].trim_end_matches('.').replace(" and ", ", ");
    list.split(", ").map(str::to_owned).collect()
}

/// The version to which the forecast first moves an expired version.
fn moved(shoot: &Value, spec: &ProfileSpec, at: Timestamp) -> Option<String> {
    let state = MaintainedShoot::read(shoot, true).unwrap();
    let catalog = VersionCatalog::new("p", spec);
    let garden = Garden { validation: Validation::WithProfile, ..Garden::default() };
    let forecast = forecast(&state, &catalog, &garden, [at, at + SignedDuration::from_secs(1)]);
    let mut moves = forecast.steps.into_iter().flat_map(|step| step.moves);
    moves.find(|moved| moved.cause == Cause::Expired).map(|moved| moved.to)
}

fn shoot(kubernetes: &str, pool: Option<(&str, &str)>) -> Value {
    let pool = pool.map(|(version, strategy)| {
        json!({
            "name": "a", "updateStrategy": strategy, "minimum": 1, "maximum": 3,
            "machine": {"type": "t", "image": {"name": "os", "version": version}},
        })
    });
    json!({
        "metadata": {"name": "s", "namespace": "garden-p", "annotations": {}},
        "spec": {
            "kubernetes": {"version": kubernetes},
            "maintenance": {"autoUpdate": {"kubernetesVersion": false, "machineImageVersion": false}},
            "provider": {"workers": Vec::from_iter(pool)},
        },
        "status": {"lastOperation": {"state": "Succeeded"}},
    })
}

fn decoded(spec: &Value) -> ProfileSpec {
    let mut spec: ProfileSpec = serde_json::from_str(&spec.to_string()).unwrap();
    apply_defaults(&mut spec);
    spec
}

/// The first moment at which an expired version is replaced.
fn end(expires: Option<Timestamp>, now: Timestamp) -> Timestamp {
    expires.map_or(now, |expires| now.max(expires + SignedDuration::from_nanos(1)))
}

/// An hour after stages begin on a day. At the exact instant, a stage has not begun for lint, but it begins within the
/// second that the forecast covers.
fn an_hour_later(day: i64) -> Timestamp {
    moment(day) + SignedDuration::from_hours(1)
}

proptest! {
    #[test]
    fn lint_moves_images_as_the_forecast_does(mut profile in profile(), day in 0_i64..40) {
        once(&mut profile["machineImages"][0]["versions"]);
        // If control planes moved as well, the API server would refuse some of the moves.
        profile["kubernetes"] = json!({"versions": KUBELETS.map(|version| json!({"version": version}))});
        let now = an_hour_later(day);
        let (spec, findings) = (decoded(&profile), findings(&profile, now));
        let catalog = VersionCatalog::new("p", &spec);
        for version in &catalog.images[0].versions {
            let (text, at) = (version.listed.text, end(version.listed.expires(), now));
            let of_forecast = |strategy: &str| -> BTreeSet<String> {
                KUBELETS.iter().filter_map(|kubelet| moved(&shoot(kubelet, Some((text, strategy))), &spec, at)).collect()
            };
            let reason = message(&findings, &format!("os {text}"));
            let (rolling, in_place) = reason.split_once("updated in place").unwrap_or((reason, ""));
            prop_assert_eq!(targets(rolling), of_forecast("AutoRollingUpdate"), "{}: {}", text, reason);
            let of_forecast = of_forecast("AutoInPlaceUpdate");
            let is_reported = if in_place.is_empty() { targets(rolling) } else { targets(in_place) };
            // If lint does not mention pools updated in place, they move to the same versions as other pools, or to
            // none.
            let is_silent = in_place.is_empty() && of_forecast.is_empty();
            prop_assert!(is_silent || is_reported == of_forecast, "{text}: {reason}: {of_forecast:?}");
        }
    }

    #[test]
    fn lint_moves_kubernetes_as_the_forecast_does(mut profile in profile(), day in 0_i64..40) {
        once(&mut profile["kubernetes"]["versions"]);
        let now = an_hour_later(day);
        let (spec, findings) = (decoded(&profile), findings(&profile, now));
        let catalog = VersionCatalog::new("p", &spec);
        for listed in &catalog.kubernetes {
            let reason = message(&findings, &format!("Kubernetes {}", listed.text));
            let of_forecast = moved(&shoot(listed.text, None), &spec, end(listed.expires(), now));
            prop_assert_eq!(targets(reason), BTreeSet::from_iter(of_forecast), "{}: {}", listed.text, reason);
        }
    }
}
