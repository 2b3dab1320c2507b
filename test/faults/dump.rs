//! The objects of a namespace in normalized form, without namespace, times and versions, so that equal end states
//! compare as equal.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use crate::observer::Objects;
use test_support::shoot::Kind;

/// Maximum number of differences printed; the rest are counted.
const REPORTED: usize = 6;

/// The annotation with the class inputs of a deployment, the current class first.
const CLASS_INPUTS: &str = "/metadata/annotations/gardener-extension-worker~1class-inputs";

/// Objects by kind and name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Dump(BTreeMap<String, Value>);

impl Dump {
    /// All objects except events.
    pub(crate) fn of(namespace: &str, objects: &Objects) -> Self {
        let kept = objects.iter().filter(|((kind, _), _)| *kind != Kind::Event);
        let canonical = kept.map(|((kind, name), object)| {
            (format!("{kind:?} {}", name.replace(namespace, "NAMESPACE")), canonical(namespace, object))
        });
        Self(canonical.collect())
    }

    /// Objects by kind and name.
    pub(crate) fn of_all(namespace: &str, objects: &BTreeMap<String, Value>) -> Self {
        Self(objects.iter().map(|(name, object)| (name.clone(), canonical(namespace, object))).collect())
    }

    /// Removes an object by kind and name.
    pub(crate) fn forget(&mut self, object: &str) {
        self.0.remove(object);
    }

    /// The differences of another dump; `None` if equal.
    pub(crate) fn difference(&self, other: &Self) -> Option<String> {
        let mut differences = Vec::new();
        for key in self.0.keys().chain(other.0.keys().filter(|key| !self.0.contains_key(*key))) {
            match (self.0.get(key), other.0.get(key)) {
                (Some(expected), Some(found)) => compare(key, expected, found, &mut differences),
                (Some(_), None) => differences.push(format!("{key} is missing")),
                (None, _) => differences.push(format!("{key} is there, nobody wants it")),
            }
        }
        let more = differences.len().saturating_sub(REPORTED);
        differences.truncate(REPORTED);
        if more > 0 {
            differences.push(format!("and {more} more"));
        }
        (!differences.is_empty()).then(|| differences.join("\n"))
    }
}

fn compare(path: &str, expected: &Value, found: &Value, differences: &mut Vec<String>) {
    match (expected, found) {
        (Value::Object(left), Value::Object(right)) => {
            for key in left.keys().chain(right.keys().filter(|key| !left.contains_key(*key))) {
                let of = |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or_default();
                compare(&format!("{path}.{key}"), &of(left), &of(right), differences);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (left, right)) in left.iter().zip(right).enumerate() {
                compare(&format!("{path}[{index}]"), left, right, differences);
            }
        }
        _ if expected == found => {}
        _ => differences.push(format!("{path}: wanted {expected}, found {found}")),
    }
}

fn canonical(namespace: &str, object: &Value) -> Value {
    static TIME: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z").expect("it is a regular expression"));
    let mut object = object.clone();
    let generation = object["metadata"]["generation"].take();
    if let Some(observed) = object.pointer_mut("/status/observedGeneration") {
        // The number of writes varies, but the last one must be observed.
        *observed = json!(if *observed == generation { "the last" } else { "an older one" });
    }
    for member in ["apiVersion", "kind"] {
        // Objects in a list omit these.
        object[member].take();
    }
    for member in ["uid", "resourceVersion", "creationTimestamp"] {
        object["metadata"][member].take();
    }
    // Contains the namespace, in base64.
    object.pointer_mut("/data/authURL").map(Value::take);
    if let Some(state) = object.pointer_mut("/status/state") {
        // Compressed; its content is also in the objects.
        *state = json!("some");
    }
    if let Some(record) = object.pointer_mut(CLASS_INPUTS) {
        // Earlier inputs can differ, because another client may have edited the object.
        let mut known: Value = serde_json::from_str(record.as_str().unwrap_or_default()).unwrap_or_default();
        known["g"].as_array_mut().into_iter().for_each(|generations| generations.truncate(1));
        *record = known;
    }
    for owner in object["metadata"]["ownerReferences"].as_array_mut().into_iter().flatten() {
        owner["uid"].take();
    }
    let text = object.to_string().replace(namespace, "NAMESPACE");
    serde_json::from_str(&TIME.replace_all(&text, "TIME")).unwrap_or_default()
}
