//! Compares a measured result with ours, after normalizing both: without members that a server adds, nulls, empty
//! objects, and zeros that Go omits.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::images;

/// One difference. An absent value is null.
#[derive(Debug)]
pub struct Difference {
    /// Path: members, names of objects, indices.
    pub path: Vec<String>,
    /// Measured value.
    pub reference: Value,
    /// Our value.
    pub got: Value,
}

impl Difference {
    /// A case that cannot be compared.
    pub fn of_case(problem: String) -> Self {
        Self { path: vec!["case".to_owned()], reference: Value::Null, got: problem.into() }
    }
}

/// Lists of objects that are compared by name.
const OBJECTS: [&str; 3] = ["machineClasses", "machineClassSecrets", "machineDeploymentObjects"];

/// Adds the differences of all lists of objects that the controller creates.
pub fn compare_objects(expected: &Value, got: &Value, differences: &mut Vec<Difference>) {
    for list in OBJECTS {
        compare_list(list, expected, got, differences);
    }
}

/// Adds the differences of a list of objects.
pub fn compare_list(list: &str, expected: &Value, got: &Value, differences: &mut Vec<Difference>) {
    differ(vec![list.to_owned()], &by_name(&expected[list]), &by_name(&got[list]), differences);
}

/// The items of a list; empty if absent.
pub fn items(list: &Value) -> &[Value] {
    list.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Adds the differences of the Worker's status, except for its operation.
pub fn compare_status(expected: &Value, got: &Value, differences: &mut Vec<Difference>) {
    let at = |member: &str| vec!["workerStatus".to_owned(), member.to_owned()];
    for member in ["machineDeployments", "inPlaceUpdates", "machineDeploymentsLastUpdateTimeSet"] {
        differ(at(member), &in_one_form(&expected[member]), &in_one_form(&got[member]), differences);
    }
    let (reference, got) = (&expected["providerStatus"], &got["providerStatus"]);
    for member in ["vmoDependencies", "serverGroupDependencies"] {
        differ(at(member), &reference[member], &got[member], differences);
    }
    if let Some((missing, added)) = images::difference(&reference["machineImages"], &got["machineImages"]) {
        differences.push(Difference { path: at("machineImages"), reference: missing, got: added });
    }
}

/// A list of objects as one object with their names as members.
fn by_name(list: &Value) -> Value {
    let objects = items(list).iter().map(|object| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        (name, in_one_form(&as_measured(object)))
    });
    Value::Object(objects.collect())
}

/// Removes members that a server adds, and replaces times with a placeholder.
fn as_measured(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        for member in
            ["resourceVersion", "uid", "creationTimestamp", "managedFields", "generation", "deletionGracePeriodSeconds"]
        {
            metadata.remove(member);
        }
        if let Some(time) = metadata.get_mut("deletionTimestamp") {
            *time = "<set>".into();
        }
    }
    for member in ["replicas", "minReadySeconds"] {
        if let Some(Value::Object(spec)) = object.get_mut("spec")
            && spec.get(member) == Some(&json!(0))
        {
            spec.remove(member);
        }
    }
    object
}

/// Removes nulls and empty objects at any depth.
pub fn in_one_form(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members: Map<_, _> = members
                .iter()
                .map(|(name, member)| (name.clone(), in_one_form(member)))
                .filter(|(_, member)| !member.is_null())
                .collect();
            if members.is_empty() { Value::Null } else { Value::Object(members) }
        }
        Value::Array(items) => Value::Array(items.iter().map(in_one_form).collect()),
        other => other.clone(),
    }
}

/// Adds all differences between two normalized values.
pub fn differ(path: Vec<String>, reference: &Value, got: &Value, differences: &mut Vec<Difference>) {
    let below = |step: &str| [path.as_slice(), &[step.to_owned()]].concat();
    match (reference, got) {
        (Value::Object(reference), Value::Object(got)) => {
            let names: BTreeSet<&String> = reference.keys().chain(got.keys()).collect();
            for name in names {
                let of = |members: &Map<String, Value>| members.get(name).cloned().unwrap_or_default();
                differ(below(name), &of(reference), &of(got), differences);
            }
        }
        (Value::Array(reference), Value::Array(got)) if reference.len() == got.len() => {
            for (index, (reference, got)) in reference.iter().zip(got).enumerate() {
                differ(below(&index.to_string()), reference, got, differences);
            }
        }
        // Absent and empty lists are equal.
        (Value::Null, Value::Array(items)) | (Value::Array(items), Value::Null) if items.is_empty() => {}
        (reference, got) if reference == got => {}
        (reference, got) => differences.push(Difference { path, reference: reference.clone(), got: got.clone() }),
    }
}
