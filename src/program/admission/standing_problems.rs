//! Downgrades errors to warnings if they existed before an edit and the edit only changes versions. Maintenance makes
//! such edits. If the webhook denied them, one old error in a Shoot would prevent all of its pools from being updated.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::Value;

use super::subject::Subject;
use wire::api::gotext::field::{FieldError, FieldErrorType, FieldErrors};

/// Field path of pools in a Shoot.
const POOLS: &str = "spec.provider.workers[";

/// A Shoot with raw pools.
#[derive(Deserialize)]
struct Written {
    spec: WrittenSpec,
}

#[derive(Deserialize)]
struct WrittenSpec {
    provider: WrittenProvider,
}

#[derive(Deserialize)]
struct WrittenProvider {
    #[serde(default)]
    workers: Vec<Value>,
}

/// Removes the errors that existed before from `errors` and returns them as warnings.
pub(super) fn standing_problems(
    subject: Subject<'_>,
    errors: &mut FieldErrors,
    before: impl FnOnce() -> FieldErrors,
) -> Vec<String> {
    if errors.is_empty() {
        return Vec::new();
    }
    let Some([pools, old]) = both_written(subject) else { return Vec::new() };
    let before = before();
    let before = Before::new(&old, &before);
    let (standing, new): (Vec<FieldError>, _) =
        std::mem::take(&mut errors.0).into_iter().partition(|error| before.has(error, &pools));
    errors.0 = new;
    standing.iter().map(|error| format!("{error}. It was so before, and the edit is let through")).collect()
}

fn both_written(subject: Subject<'_>) -> Option<[Vec<Value>; 2]> {
    let read = |text: &str| serde_json::from_str::<Written>(text).ok().map(|shoot| shoot.spec.provider.workers);
    Some([read(subject.object)?, read(subject.old?)?])
}

/// The pools and errors of the old Shoot.
struct Before<'a> {
    /// The first pool of each name, with its position.
    pools: HashMap<&'a str, (usize, &'a Value)>,
    unnamed: Option<(usize, &'a Value)>,
    problems: HashSet<Problem<'a>>,
}

/// Position of the pool, path of the field in it, and the error.
type Problem<'a> = (usize, &'a str, FieldErrorType, Option<&'a str>, &'a str);

impl<'a> Before<'a> {
    fn new(old: &'a [Value], errors: &'a FieldErrors) -> Self {
        let mut pools = HashMap::new();
        let mut unnamed = None;
        for (index, pool) in old.iter().enumerate() {
            match pool["name"].as_str() {
                Some(name) => {
                    pools.entry(name).or_insert((index, pool));
                }
                None => {
                    unnamed.get_or_insert((index, pool));
                }
            }
        }
        let problem = |error: &'a FieldError| {
            let (index, member) = of_pool(&error.field)?;
            Some((index, member, error.error_type, error.value.as_deref(), error.detail.as_str()))
        };
        Self { pools, unnamed, problems: errors.0.iter().filter_map(problem).collect() }
    }

    /// Whether the pool had this error before and has only changed its versions since.
    fn has(&self, error: &FieldError, pools: &[Value]) -> bool {
        let Some((index, member)) = of_pool(&error.field) else { return false };
        let Some(pool) = pools.get(index) else { return false };
        let old = match pool["name"].as_str() {
            Some(name) => self.pools.get(name),
            None => self.unnamed.as_ref(),
        };
        let Some((old_index, old)) = old else { return false };
        let problem = (*old_index, member, error.error_type, error.value.as_deref(), error.detail.as_str());
        self.problems.contains(&problem) && without_versions(old) == without_versions(pool)
    }
}

/// Index of the pool in a field path, and the path below it.
fn of_pool(field: &str) -> Option<(usize, &str)> {
    let (index, member) = field.strip_prefix(POOLS)?.split_once(']')?;
    Some((index.parse().ok()?, member))
}

fn without_versions(pool: &Value) -> Value {
    let mut pool = pool.clone();
    for parent in ["/machine/image", "/kubernetes"] {
        if let Some(members) = pool.pointer_mut(parent).and_then(Value::as_object_mut) {
            members.remove("version");
        }
    }
    pool
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::image::PendingComparison;
    use super::super::shoot::validate;
    use super::*;
    use decisions::provider::Providers;
    use runtime::webhook::Verdict;

    fn pool(name: &str, image: &str) -> Value {
        json!({"name": name, "zones": ["z"], "machine": {"type": "t", "image": {"name": "os", "version": image}},
            "kubernetes": {"version": "1.33.1"}, "maximum": 3, "volume": {"size": "50Gi", "type": "gp3"}})
    }

    fn shoot(pools: &[Value]) -> Value {
        let infrastructure = json!({"networks": {"zones": [{"name": "z"}]}});
        json!({"spec": {"region": "r", "cloudProfileName": "p", "kubernetes": {"version": "1.33.1"}, "provider": {
            "type": "aws", "infrastructureConfig": infrastructure, "workers": pools}}})
    }

    /// Errors and warnings for an edit of a Shoot.
    fn reviewed(old: &Value, new: &Value) -> [Vec<String>; 2] {
        let object = new.to_string();
        let old = old.to_string();
        match validate(Subject { object: &object, old: Some(&old), stop: None }, "Shoot a/b", Providers::SHIPPED) {
            Ok(PendingComparison { errors, warnings, .. }) => {
                [errors.0.iter().map(ToString::to_string).collect(), warnings]
            }
            Err(Verdict::Allowed { warnings, .. }) => [Vec::new(), warnings],
            Err(Verdict::Denied(denial)) => [vec![denial.message], Vec::new()],
        }
    }

    #[test]
    fn maintenance_is_not_held_up_by_what_was_wrong_before() {
        let mut broken = pool("web", "1");
        broken["volume"] = json!({"size": "50Gi"});
        let mut updated = broken.clone();
        updated["machine"]["image"]["version"] = "2".into();
        updated["kubernetes"]["version"] = "1.33.2".into();
        let old = shoot(&[broken.clone(), pool("batch", "1")]);
        for new in [shoot(&[broken.clone(), pool("batch", "2")]), shoot(&[updated.clone(), pool("batch", "1")])] {
            let [problems, warnings] = reviewed(&old, &new);
            assert!(problems.is_empty(), "{problems:?}");
            let [warning] = &warnings[..] else { panic!("{warnings:?}") };
            assert!(warning.starts_with("spec.provider.workers[0].volume.type: Required value"), "{warning}");
            assert!(warning.contains("It was so before"), "{warning}");
        }
        let moved = shoot(&[pool("batch", "2"), updated]);
        assert_eq!(reviewed(&old, &moved)[0], [""; 0], "another place in the list is the same pool");
    }

    #[test]
    fn what_an_edit_brings_is_refused_beside_what_was_wrong_before() {
        let mut broken = pool("web", "1");
        broken["volume"] = json!({"size": "50Gi"});
        let old = shoot(&[broken.clone(), pool("batch", "1")]);
        let refused = |new: &Value, field: &str| {
            let [problems, _] = reviewed(&old, new);
            assert!(problems.iter().any(|problem| problem.contains(field)), "{field}: {problems:?}");
        };
        let mut larger = broken.clone();
        larger["maximum"] = 5.into();
        refused(&shoot(&[larger, pool("batch", "1")]), "workers[0].volume.type");
        let mut newly_broken = pool("batch", "2");
        newly_broken["volume"] = json!({"size": "50Gi"});
        refused(&shoot(&[broken.clone(), newly_broken]), "workers[1].volume.type");
        let mut renamed = broken.clone();
        renamed["name"] = "other".into();
        refused(&shoot(&[renamed, pool("batch", "1")]), "workers[0].volume.type");
        let mut other_zones = shoot(&[broken, pool("batch", "1")]);
        other_zones["spec"]["provider"]["infrastructureConfig"] = json!({"networks": {"zones": [{"name": "y"}]}});
        refused(&other_zones, "workers[1].zones[0]");
    }
}
