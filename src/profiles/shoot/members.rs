//! Access to fields of a Shoot document.

use serde_json::{Map, Value};

use super::ShootError;

/// Provider documents, which stay unchanged.
const OPAQUE: [&str; 3] = ["providerConfig", "infrastructureConfig", "controlPlaneConfig"];

/// Removes nulls and empty lists, which the API server ignores. Empty objects stay.
pub(super) fn without_empty(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter().filter(|(_, member)| !is_empty(member)).map(|(name, member)| {
                let member = if OPAQUE.contains(&name.as_str()) { member.clone() } else { without_empty(member) };
                (name.clone(), member)
            });
            Value::Object(members.collect())
        }
        Value::Array(items) => items.iter().map(without_empty).collect(),
        other => other.clone(),
    }
}

fn is_empty(member: &Value) -> bool {
    member.is_null() || member.as_array().is_some_and(Vec::is_empty)
}

/// The object at a path, created if missing.
///
/// # Errors
/// When the path contains another type.
pub(super) fn object<'a>(value: &'a mut Value, path: &[&str]) -> Result<&'a mut Map<String, Value>, ShootError> {
    let mut location = value;
    for (depth, member) in path.iter().enumerate() {
        let members = location.as_object_mut();
        let members = members.ok_or_else(|| ShootError::malformed(path[..depth].join("."), "is no object"))?;
        location = members.entry(*member).or_insert_with(|| Map::new().into());
    }
    location.as_object_mut().ok_or_else(|| ShootError::malformed(path.join("."), "is no object"))
}

pub(super) fn pools(shoot: &Value) -> &[Value] {
    shoot["spec"]["provider"]["workers"].as_array().map(Vec::as_slice).unwrap_or_default()
}

pub(super) fn pools_mut(shoot: &mut Value) -> impl Iterator<Item = &mut Value> {
    shoot.pointer_mut("/spec/provider/workers").and_then(Value::as_array_mut).into_iter().flatten()
}

pub(super) fn name(pool: &Value) -> &str {
    text(&pool["name"])
}

/// The text of a value; empty for other types.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
