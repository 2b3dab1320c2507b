//! The members of a CloudProfile and their types (docs/contract.md#shape-of-a-cloudprofile). Finds unknown members and
//! members that an API server can't decode, so that the rest of the document can still be validated.

use serde_json::{Map, Value, json};

use wire::api::bounded_text::shortened;
use wire::api::gotext::duration::Duration;
use wire::api::gotext::quantity::Quantity;
use wire::api::gotext::time::go_time_text;

/// Maximum size of a value in a message, in bytes.
const DISPLAYED: usize = 64;

/// An invalid member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidField {
    /// Path such as `spec.machineTypes[0].memory`.
    pub path: String,
    /// Problem of the member.
    pub problem: Problem,
}

/// Problem of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The member is unknown. Clients with strict validation, such as kubectl, get an error; for others it is dropped.
    Unknown {
        /// A known member with a similar name.
        nearest: Option<&'static str>,
        /// All known members.
        known: Vec<&'static str>,
    },
    /// The member has the wrong type, so the object can't be decoded.
    Type {
        /// Expected type.
        required: &'static str,
        /// Actual type, or the reason for the mismatch.
        found: String,
    },
}

/// The type of a member.
#[derive(Clone, Copy)]
enum Shape {
    Text,
    Flag,
    Number,
    Quantity,
    Time,
    Duration,
    /// Any JSON; decoded elsewhere.
    Document,
    Map(&'static Shape),
    List(&'static Shape),
    /// Members in groups, which several objects share.
    Object(&'static [Members]),
}

type Members = &'static [(&'static str, Shape)];

use Shape::{Document, Flag, List, Map as MapOf, Number, Object, Text, Time};

const TEXTS: Shape = List(&Text);
const LABELS: Shape = MapOf(&Text);
const CAPABILITIES: Shape = MapOf(&TEXTS);

const PROFILE: Members = &[
    ("apiVersion", Text),
    ("kind", Text),
    ("metadata", Object(&[METADATA])),
    ("spec", Object(&[SPEC])),
    ("status", Document),
];

const NAMESPACED_PROFILE: Members = &[
    ("apiVersion", Text),
    ("kind", Text),
    ("metadata", Object(&[METADATA])),
    ("spec", Object(&[NAMESPACED_SPEC])),
    ("status", Document),
];

const METADATA: Members = &[
    ("name", Text),
    ("generateName", Text),
    ("namespace", Text),
    ("selfLink", Text),
    ("uid", Text),
    ("resourceVersion", Text),
    ("generation", Number),
    ("creationTimestamp", Time),
    ("deletionTimestamp", Time),
    ("deletionGracePeriodSeconds", Number),
    ("labels", LABELS),
    ("annotations", LABELS),
    ("ownerReferences", Document),
    ("finalizers", TEXTS),
    ("managedFields", Document),
];

const SPEC: Members = &[
    ("caBundle", Text),
    ("kubernetes", Object(&[&[("versions", List(&Object(&[VERSION])))]])),
    ("machineImages", List(&Object(&[IMAGE]))),
    ("machineTypes", List(&Object(&[MACHINE_TYPE]))),
    ("providerConfig", Document),
    ("regions", List(&Object(&[REGION]))),
    ("seedSelector", Object(&[SEED_SELECTOR])),
    ("type", Text),
    ("volumeTypes", List(&Object(&[VOLUME_TYPE]))),
    ("bastion", Object(&[BASTION])),
    ("limits", Object(&[&[("maxNodesTotal", Number)]])),
    ("machineCapabilities", List(&Object(&[&[("name", Text), ("values", TEXTS)]]))),
    ("controlPlane", Object(&[&[("allowZonePinning", Flag)]])),
];

const NAMESPACED_SPEC: Members = &[
    ("caBundle", Text),
    ("kubernetes", Object(&[&[("versions", List(&Object(&[VERSION])))]])),
    ("machineImages", List(&Object(&[IMAGE]))),
    ("machineTypes", List(&Object(&[MACHINE_TYPE]))),
    ("volumeTypes", List(&Object(&[VOLUME_TYPE]))),
    ("parent", Object(&[&[("kind", Text), ("name", Text)]])),
    ("providerConfig", Document),
    ("limits", Object(&[&[("maxNodesTotal", Number)]])),
];

const VERSION: Members = &[
    ("version", Text),
    ("expirationDate", Time),
    ("classification", Text),
    ("lifecycle", List(&Object(&[&[("classification", Text), ("startTime", Time)]]))),
];

const IMAGE: Members =
    &[("name", Text), ("versions", List(&Object(&[VERSION, IMAGE_VERSION]))), ("updateStrategy", Text)];

const IMAGE_VERSION: Members = &[
    ("cri", List(&Object(&[&[("name", Text), ("containerRuntimes", List(&Object(&[RUNTIME])))]]))),
    ("architectures", TEXTS),
    ("kubeletVersionConstraint", Text),
    ("inPlaceUpdates", Object(&[&[("supported", Flag), ("minVersionForUpdate", Text)]])),
    ("capabilityFlavors", List(&CAPABILITIES)),
];

const RUNTIME: Members = &[("type", Text), ("providerConfig", Document)];

const MACHINE_TYPE: Members = &[
    ("cpu", Shape::Quantity),
    ("gpu", Shape::Quantity),
    ("memory", Shape::Quantity),
    ("name", Text),
    ("storage", Object(&[STORAGE])),
    ("usable", Flag),
    ("architecture", Text),
    ("capabilities", CAPABILITIES),
    ("machineControllerManager", Object(&[&[("machineCreationTimeout", Shape::Duration)]])),
];

const STORAGE: Members = &[("class", Text), ("size", Shape::Quantity), ("type", Text), ("minSize", Shape::Quantity)];

const REGION: Members = &[
    ("name", Text),
    ("zones", List(&Object(&[ZONE]))),
    ("labels", LABELS),
    ("accessRestrictions", List(&Object(&[&[("name", Text)]]))),
];

const ZONE: Members = &[("name", Text), ("unavailableMachineTypes", TEXTS), ("unavailableVolumeTypes", TEXTS)];

const SEED_SELECTOR: Members = &[
    ("matchLabels", LABELS),
    ("matchExpressions", List(&Object(&[&[("key", Text), ("operator", Text), ("values", TEXTS)]]))),
    ("providerTypes", TEXTS),
];

const VOLUME_TYPE: Members = &[("class", Text), ("name", Text), ("usable", Flag), ("minSize", Shape::Quantity)];

const BASTION: Members =
    &[("machineImage", Object(&[&[("name", Text), ("version", Text)]])), ("machineType", Object(&[&[("name", Text)]]))];

/// The JSON schema of a CloudProfile with its members and types, for editors. The provider config allows any JSON.
#[must_use]
pub fn profile_schema() -> Value {
    let mut schema = schema_of(Object(&[PROFILE]));
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "CloudProfile (core.gardener.cloud/v1beta1)".into();
    schema
}

fn schema_of(shape: Shape) -> Value {
    match shape {
        Text | Shape::Duration => json!({"type": ["string", "null"]}),
        Time => json!({"type": ["string", "null"], "format": "date-time"}),
        Flag => json!({"type": ["boolean", "null"]}),
        Number => json!({"type": ["integer", "null"]}),
        Shape::Quantity => json!({"type": ["string", "number", "null"]}),
        Document => json!({}),
        MapOf(value) => json!({"type": ["object", "null"], "additionalProperties": schema_of(*value)}),
        List(item) => json!({"type": ["array", "null"], "items": schema_of(*item)}),
        Object(groups) => {
            let members = groups.iter().flat_map(|members| members.iter());
            let members: Map<String, Value> =
                members.map(|(name, shape)| ((*name).to_owned(), schema_of(*shape))).collect();
            json!({"type": ["object", "null"], "properties": members, "additionalProperties": false})
        }
    }
}

/// Removes all invalid members from the document of a CloudProfile or NamespacedCloudProfile, so that the rest can be
/// decoded. Invalid list items are emptied, so that positions don't change. Numbers are converted to text if necessary.
#[must_use]
pub fn remove_invalid_fields(document: &mut Value) -> Vec<InvalidField> {
    let mut misfits = Vec::new();
    let shape =
        if document["kind"] == "NamespacedCloudProfile" { Object(&[NAMESPACED_PROFILE]) } else { Object(&[PROFILE]) };
    if !fits(document, shape, "", &mut misfits) {
        *document = Value::Object(Map::new());
    }
    if let Some(members) = document.as_object_mut() {
        for member in ["metadata", "spec"] {
            members
                .entry(member)
                .and_modify(|value| *value = empty_if_null(value))
                .or_insert_with(|| Map::new().into());
        }
    }
    misfits
}

/// Removes invalid members from a value, and returns whether the value itself has the shape.
fn fits(value: &mut Value, shape: Shape, path: &str, misfits: &mut Vec<InvalidField>) -> bool {
    // As in Go, null is the zero value of every type.
    if value.is_null() {
        return true;
    }
    let problem = match (shape, &mut *value) {
        (Document, _) | (Text, Value::String(_)) | (Flag, Value::Bool(_)) => None,
        (Number, Value::Number(number)) if number.is_i64() => None,
        (Shape::Quantity, value @ (Value::String(_) | Value::Number(_))) => {
            serde_json::from_value::<Quantity>(value.clone()).err().map(|error| not(value, &error.to_string()))
        }
        (Time, Value::String(text)) => {
            go_time_text(text).err().map(|error| not(&text.as_str().into(), &error.to_string()))
        }
        (Shape::Duration, Value::String(text)) => {
            Duration::parse(text).err().map(|error| not(&text.as_str().into(), &error.to_string()))
        }
        (List(of), Value::Array(items)) => {
            for (index, item) in items.iter_mut().enumerate() {
                if !fits(item, *of, &format!("{path}[{index}]"), misfits) || item.is_null() {
                    *item = empty(*of, item);
                }
            }
            None
        }
        (MapOf(of), Value::Object(members)) => {
            members.retain(|name, member| fits(member, *of, &format!("{path}.{name}"), misfits));
            members
                .values_mut()
                .filter(|member| member.is_null())
                .for_each(|member| *member = empty(*of, &Value::Null));
            None
        }
        (Object(groups), Value::Object(members)) => {
            fit_members(members, groups, path, misfits);
            None
        }
        (_, other) => Some(found(other).to_owned()),
    };
    let Some(found) = problem else { return true };
    misfits.push(InvalidField { path: path.to_owned(), problem: Problem::Type { required: words(shape), found } });
    if matches!(shape, Text) && matches!(value, Value::Number(_) | Value::Bool(_)) {
        *value = value.to_string().into();
        return true;
    }
    false
}

fn fit_members(members: &mut Map<String, Value>, groups: &[Members], path: &str, misfits: &mut Vec<InvalidField>) {
    let known = || groups.iter().flat_map(|group| group.iter());
    members.retain(|name, member| {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        if let Some((_, shape)) = known().find(|(known, _)| known == name) {
            return fits(member, *shape, &path, misfits);
        }
        let known: Vec<&'static str> = known().map(|(known, _)| *known).collect();
        misfits.push(InvalidField { path, problem: Problem::Unknown { nearest: nearest(name, &known), known } });
        false
    });
}

fn empty_if_null(value: &mut Value) -> Value {
    if value.is_null() { Map::new().into() } else { value.take() }
}

/// The replacement for an invalid item.
fn empty(shape: Shape, item: &Value) -> Value {
    match shape {
        Text if item.is_null() => Value::String(String::new()),
        Text => shortened(&item.to_string(), DISPLAYED).into(),
        List(_) => Value::Array(Vec::new()),
        MapOf(_) | Object(_) => Value::Object(Map::new()),
        Flag | Number | Shape::Quantity | Time | Shape::Duration | Document => Value::Null,
    }
}

fn words(shape: Shape) -> &'static str {
    match shape {
        Text => "text",
        Flag => "true or false",
        Number => "a whole number",
        Shape::Quantity => "a quantity such as 16Gi",
        Time => "a time such as 2027-03-31T23:59:59Z",
        Shape::Duration => "a duration such as 20m",
        Document => "a document",
        MapOf(of) => match of {
            List(_) => "lists of values by name",
            _ => "values by name",
        },
        List(_) => "a list",
        Object(_) => "an object",
    }
}

fn not(value: &Value, why: &str) -> String {
    format!("{}: {why}", shortened(&value.to_string(), DISPLAYED))
}

fn found(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The most similar known name, if at most a third of its characters differ.
#[must_use]
pub fn nearest(name: &str, known: &[&'static str]) -> Option<&'static str> {
    let lower = name.to_lowercase();
    let distances = known.iter().map(|known| (distance(&lower, &known.to_lowercase()), *known));
    let (distance, nearest) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance * 3 <= nearest.len()).then_some(nearest)
}

/// The number of characters to insert, delete or replace.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (position, left) in one.chars().take(DISPLAYED).enumerate() {
        let mut next = vec![position + 1];
        for (right, (above, beside)) in other.iter().zip(row.iter().zip(row.iter().skip(1))) {
            let changed = above + usize::from(left != *right);
            let before = next.last().copied().unwrap_or_default();
            next.push(changed.min(beside + 1).min(before + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn removes_and_reports_invalid_members() {
        let mut document = json!({"kind": "CloudProfile", "spec": {
            "machineTyps": [], "type": "x", "limits": {"maxNodesTotal": "many"},
            "machineTypes": [{"name": 7, "cpu": "four", "memory": "16Gi", "capabilities": {"a": true, "b": ["c"]}}, "t"],
            "machineImages": [{"versions": [{"version": 1.5, "expirationDate": "2027-01-01", "cri": "containerd"}]}],
        }});
        let misfits = remove_invalid_fields(&mut document);
        let mut paths: Vec<&str> = misfits.iter().map(|misfit| misfit.path.as_str()).collect();
        paths.sort_unstable();
        assert_eq!(
            paths,
            [
                "spec.limits.maxNodesTotal",
                "spec.machineImages[0].versions[0].cri",
                "spec.machineImages[0].versions[0].expirationDate",
                "spec.machineImages[0].versions[0].version",
                "spec.machineTypes[0].capabilities.a",
                "spec.machineTypes[0].cpu",
                "spec.machineTypes[0].name",
                "spec.machineTypes[1]",
                "spec.machineTyps",
            ]
        );
        let nearest = misfits.iter().find_map(|misfit| match misfit.problem {
            Problem::Unknown { nearest, .. } => nearest,
            Problem::Type { .. } => None,
        });
        assert_eq!(nearest, Some("machineTypes"));
        assert_eq!(
            document["spec"]["machineTypes"],
            json!([{"name": "7", "memory": "16Gi", "capabilities": {"b": ["c"]}}, {}])
        );
        assert_eq!(document["spec"]["machineImages"], json!([{"versions": [{"version": "1.5"}]}]));
    }

    #[test]
    fn null_is_the_empty_value_as_in_go() {
        let mut document = json!({"metadata": {"labels": {"a": null}}, "spec": {
            "machineTypes": [null, {"capabilities": {"a": null}}], "machineImages": [{"versions": [null]}]}});
        assert_eq!(remove_invalid_fields(&mut document), []);
        assert_eq!(
            document,
            json!({"metadata": {"labels": {"a": ""}}, "spec": {
                "machineTypes": [{}, {"capabilities": {"a": []}}], "machineImages": [{"versions": [{}]}]}})
        );
        let mut empty = Value::Null;
        assert_eq!(remove_invalid_fields(&mut empty), []);
    }

    #[test]
    fn only_slips_have_a_nearest_name() {
        assert_eq!(nearest("expirationdate", &["version", "expirationDate"]), Some("expirationDate"));
        assert_eq!(nearest("useOctavia", &["useSNAT", "constraints"]), None);
    }
}
