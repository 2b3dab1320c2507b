//! Pure: compares JSON documents as Go would, and computes merge patches.

use serde_json::Value;

/// Whether two values are equal for Go: nulls, empty objects and empty lists are treated as absent.
#[must_use]
pub fn is_same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        _ if is_nothing(left) && is_nothing(right) => true,
        (Value::Object(left), Value::Object(right)) => {
            let keys = left.keys().chain(right.keys().filter(|key| !left.contains_key(*key)));
            keys.into_iter()
                .all(|key| is_same(left.get(key).unwrap_or(&Value::Null), right.get(key).unwrap_or(&Value::Null)))
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| is_same(left, right))
        }
        (left, right) => left == right,
    }
}

/// Whether a value is equivalent to its absence.
#[must_use]
pub fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.values().all(is_nothing),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// The JSON merge patch from one value to another; `None` if they are equal.
#[must_use]
pub fn merge_patch(from: &Value, to: &Value) -> Option<Value> {
    let (Value::Object(from), Value::Object(to)) = (from, to) else {
        return (from != to).then(|| to.clone());
    };
    let mut patch = serde_json::Map::new();
    for key in from.keys().filter(|key| !to.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, target) in to {
        match from.get(key) {
            None => {
                patch.insert(key.clone(), target.clone());
            }
            Some(present) => {
                if let Some(change) = merge_patch(present, target) {
                    patch.insert(key.clone(), change);
                }
            }
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn treats_empty_values_as_equal() {
        assert!(is_same(&json!({"a": {"b": null, "c": {}}}), &json!({})));
        assert!(is_same(&json!({"a": []}), &json!({"a": null})));
        for something in [json!(0), json!(""), json!(false), json!([null]), json!({"a": 0})] {
            for nothing in [json!(null), json!({}), json!([]), json!({"a": null, "b": []})] {
                assert!(!is_same(&something, &nothing) && !is_same(&nothing, &something), "{something} {nothing}");
            }
        }
        assert!(!is_same(&json!({"a": [1]}), &json!({"a": [1, 2]})));
        for [left, right] in [["a", "b"], ["b", "a"]] {
            assert!(!is_same(&json!({left: 1}), &json!({left: 1, right: 2})), "what only the right one has");
            assert!(!is_same(&json!({left: 1, right: 2}), &json!({left: 1})), "what only the left one has");
        }
    }

    #[test]
    fn merge_patch_removes_with_null() {
        assert_eq!(
            merge_patch(&json!({"a": 1, "b": {"c": 1, "d": 2}}), &json!({"b": {"c": 1}})),
            Some(json!({"a": null, "b": {"d": null}}))
        );
        assert_eq!(merge_patch(&json!({"a": 1}), &json!({"a": 1})), None);
    }
}
