//! Live machine objects of a Worker's namespace: the untouched document beside its typed view.

use std::collections::BTreeMap;

use k8s_openapi::Resource;
use k8s_openapi::api::core::v1::Secret;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::machine::{Machine, MachineDeployment, MachineSet};

/// Label on a MachineDeployment: name of its pool.
pub const POOL_LABEL: &str = "worker.gardener.cloud/pool";
/// Label on classes and their Secrets.
pub const PURPOSE_LABEL: (&str, &str) = ("gardener.cloud/purpose", "machineclass");

/// An object as the API server sent it, and what is read of it.
#[derive(Clone, Debug)]
pub struct Live<T> {
    /// The whole document.
    pub document: Value,
    /// The typed view.
    pub object: T,
}

impl<T: DeserializeOwned> Live<T> {
    /// Reads the typed view.
    ///
    /// # Errors
    /// When a member has the wrong type.
    pub fn read(document: Value) -> Result<Self, serde_json::Error> {
        Ok(Self { object: T::deserialize(&document)?, document })
    }
}

/// The machine objects in the namespace of one Worker, by name. The namespace belongs to the Worker as a whole.
#[derive(Clone, Default)]
pub struct MachineObjects {
    /// Machine deployments.
    pub deployments: BTreeMap<String, Live<MachineDeployment>>,
    /// Machine classes.
    pub classes: BTreeMap<String, Value>,
    /// Secrets with the purpose label.
    pub class_secrets: BTreeMap<String, Secret>,
    /// Machine sets.
    pub machine_sets: Vec<MachineSet>,
    /// Machines.
    pub machines: Vec<Machine>,
}

impl MachineObjects {
    /// Whether no machine object is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.deployments.is_empty()
            && self.classes.is_empty()
            && self.class_secrets.is_empty()
            && self.machine_sets.is_empty()
            && self.machines.is_empty()
    }
}

impl Live<MachineDeployment> {
    /// The pool that the deployment is labelled with.
    #[must_use]
    pub fn pool(&self) -> Option<&str> {
        self.object.metadata.labels.as_ref()?.get(POOL_LABEL).map(String::as_str)
    }
}

/// A document of kind `T` with the given members, `apiVersion` and `kind` first.
#[must_use]
pub fn document_of<T: Resource>(mut members: Value) -> Value {
    if let Value::Object(map) = &mut members {
        map.insert("apiVersion".to_owned(), T::API_VERSION.into());
        map.insert("kind".to_owned(), T::KIND.into());
    }
    members
}

/// Whether two values say the same: nulls and empty objects and lists count as absent, as they do for Go.
#[must_use]
pub fn is_same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            let keys = left.keys().chain(right.keys().filter(|key| !left.contains_key(*key)));
            keys.into_iter()
                .all(|key| is_same(left.get(key).unwrap_or(&Value::Null), right.get(key).unwrap_or(&Value::Null)))
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| is_same(left, right))
        }
        (Value::Null, other) | (other, Value::Null) => is_nothing(other),
        (left, right) => left == right,
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.values().all(is_nothing),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// The JSON merge patch that leads from one value to another; `None` when they are equal.
#[must_use]
pub fn merge_patch(from: &Value, to: &Value) -> Option<Value> {
    let (Value::Object(from), Value::Object(to)) = (from, to) else {
        return (from != to).then(|| to.clone());
    };
    let mut patch = serde_json::Map::new();
    for key in from.keys().filter(|key| !to.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, wanted) in to {
        match from.get(key) {
            None => {
                patch.insert(key.clone(), wanted.clone());
            }
            Some(present) => {
                if let Some(change) = merge_patch(present, wanted) {
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
    fn nothing_in_many_forms_is_the_same() {
        assert!(is_same(&json!({"a": {"b": null, "c": {}}}), &json!({})));
        assert!(is_same(&json!({"a": []}), &json!({"a": null})));
        assert!(!is_same(&json!({"a": 0}), &json!({})));
        assert!(!is_same(&json!({"a": [1]}), &json!({"a": [1, 2]})));
    }

    #[test]
    fn a_merge_patch_removes_with_null() {
        assert_eq!(
            merge_patch(&json!({"a": 1, "b": {"c": 1, "d": 2}}), &json!({"b": {"c": 1}})),
            Some(json!({"a": null, "b": {"d": null}}))
        );
        assert_eq!(merge_patch(&json!({"a": 1}), &json!({"a": 1})), None);
    }
}
