//! Warns users whose Shoot has an annotation for rolls with names of no pool (docs/rollouts.md).

use std::collections::BTreeSet;

use super::subject::Subject;
use decisions::worker::plan::named_pools::NamedPools;
use decisions::worker::plan::roll_budget::LET_ROLL_ANNOTATION;
use decisions::worker::plan::stops::STOP_ANNOTATION;
use decisions::worker::plan::zone_by_zone::ANNOTATION;
use wire::api::bounded_text::{escaped, shortened};
use wire::api::gardener::Shoot;
use wire::api::gotext::json::decode_lenient;

/// Maximum bytes of the names in a warning.
const NAMES: usize = 200;

/// The warnings that the Shoot did not cause before.
pub(super) fn setting_warnings(subject: Subject<'_>) -> impl Iterator<Item = String> {
    let warnings = [ANNOTATION, LET_ROLL_ANNOTATION, STOP_ANNOTATION].map(|annotation| {
        let warning = warning_of(subject.object, annotation)?;
        let before = subject.old.and_then(|old| warning_of(old, annotation));
        (before.as_ref() != Some(&warning)).then_some(warning)
    });
    warnings.into_iter().flatten()
}

fn warning_of(shoot: &str, annotation: &str) -> Option<String> {
    let shoot: Shoot = decode_lenient(shoot).ok()?;
    let NamedPools::Pools(names) = NamedPools::of_value(shoot.annotations().get(annotation)?) else { return None };
    if names.is_empty() {
        return Some(format!("annotation {annotation} names no pool, so it has no effect"));
    }
    let pools: BTreeSet<&str> = shoot.spec.provider.workers.iter().map(|pool| pool.name.as_str()).collect();
    let unknown: Vec<&str> = names.iter().map(String::as_str).filter(|name| !pools.contains(name)).collect();
    let names = shortened(&escaped(&unknown.join(", ")), NAMES);
    (!unknown.is_empty()).then(|| format!("annotation {annotation}: the Shoot has no pool {names}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn shoot(setting: Option<&str>) -> Value {
        let annotations = json!({ ANNOTATION: setting });
        let workers = json!([{"name": "web"}, {"name": "db"}]);
        json!({"metadata": {"annotations": annotations}, "spec": {"provider": {"type": "aws", "workers": workers}}})
    }

    fn warning(old: Option<&str>, new: Option<&str>) -> Option<String> {
        let [old, new] = [old, new].map(|setting| shoot(setting).to_string());
        setting_warnings(Subject { object: &new, old: Some(&old), stop: None }).next()
    }

    #[test]
    fn warns_of_each_annotation() {
        let mut object = shoot(Some("other"));
        object["metadata"]["annotations"][LET_ROLL_ANNOTATION] = json!("another");
        object["metadata"]["annotations"][STOP_ANNOTATION] = json!("");
        let object = object.to_string();
        let warnings: Vec<String> = setting_warnings(Subject { object: &object, old: None, stop: None }).collect();
        assert!(warnings.len() == 3 && warnings[1].contains("let-roll: the Shoot has no pool another"), "{warnings:?}");
        assert!(warnings[2].contains("stop-rolls names no pool, so it has no effect"), "{warnings:?}");
    }

    #[test]
    fn warns_of_names_without_a_pool() {
        for setting in [None, Some("*"), Some("web"), Some(" db , web ")] {
            assert_eq!(warning(None, setting), None, "{setting:?}");
        }
        let no_pool = "annotation gardener-extension-worker/zone-by-zone: the Shoot has no pool \\u{1b}[2J, Web";
        assert_eq!(warning(None, Some("web,\u{1b}[2J,Web")).as_deref(), Some(no_pool));
        assert!(warning(None, Some(" ,")).is_some_and(|warning| warning.contains("has no effect")));
        assert_eq!(warning(Some("Web"), Some("Web")), None, "it was the same before");
    }
}
