//! Members that differ between two documents, in the notation of the cases.

use std::collections::BTreeSet;

use serde_json::Value;

/// The paths of all members that differ, in order. Pools are compared by name; any other list is compared as one value.
pub(crate) fn different(old: &Value, new: &Value) -> Vec<String> {
    let mut paths = BTreeSet::new();
    compare("", old, new, &mut paths);
    paths.into_iter().collect()
}

fn compare(path: &str, old: &Value, new: &Value, paths: &mut BTreeSet<String>) {
    if old == new {
        return;
    }
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for name in old.keys().chain(new.keys()) {
                let [old, new] = [old, new].map(|members| members.get(name).unwrap_or(&Value::Null));
                compare(&step(path, name), old, new, paths);
            }
        }
        (Value::Array(old), Value::Array(new)) if ["spec.provider.workers", "pools"].contains(&path) => {
            let by_name = |pools: &[Value], name: &str| pools.iter().find(|pool| pool["name"] == name).cloned();
            let names = |pools: &[Value], others: &[Value]| -> Vec<String> {
                let names = pools.iter().filter_map(|pool| pool["name"].as_str());
                names.filter(|name| by_name(others, name).is_some()).map(str::to_owned).collect()
            };
            for name in old.iter().chain(new).filter_map(|pool| pool["name"].as_str()) {
                let [old, new] = [old, new].map(|pools| by_name(pools, name).unwrap_or_default());
                compare(&format!("{path}[{name}]"), &old, &new, paths);
            }
            if names(old, new) != names(new, old) {
                paths.insert(format!("{path} (order)"));
            }
        }
        _ => drop(paths.insert(path.to_owned())),
    }
}

fn step(path: &str, name: &str) -> String {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    match (path.is_empty(), is_plain) {
        (true, _) => name.to_owned(),
        (_, true) => format!("{path}.{name}"),
        _ => format!("{path}['{name}']"),
    }
}

/// The name of the pool in a path.
pub(crate) fn pool_of(path: &str) -> Option<&str> {
    path.strip_prefix("pools[")?.split_once(']').map(|(name, _)| name)
}
