//! When machine-controller-manager replaces machines: its own comparison of templates, applied to rendered documents
//! (machine-controller-manager v0.62, `pkg/controller/deployment_util.go`, `EqualIgnoreHash`).

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::placement::Placement;
use decisions::worker::plan::difference::is_same;

/// Label that machine-controller-manager itself adds to templates.
const TEMPLATE_HASH_LABEL: &str = "machine-template-hash";

/// Fields of a machine's `spec` that machine-controller-manager updates without a roll.
const TAKEN_OVER: [&str; 9] = [
    "nodeTemplate",
    "drainTimeout",
    "healthTimeout",
    "creationTimeout",
    "inPlaceUpdateTimeout",
    "machinePreserveTimeout",
    "disableHealthTimeout",
    "maxEvictRetries",
    "nodeConditions",
];

/// The effect on the machines of one pool in one zone, the strongest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Verdict {
    /// Every node is replaced.
    #[serde(rename = "ROLL")]
    Roll,
    /// Every node is updated in place.
    #[serde(rename = "IN-PLACE")]
    InPlace,
    /// Nodes are deleted, because no pool needs them.
    #[serde(rename = "DELETE")]
    Delete,
    /// Nodes are created.
    #[serde(rename = "CREATE")]
    Create,
    /// The number of nodes or its bounds change.
    #[serde(rename = "SCALE")]
    Scale,
    /// Objects change, nodes stay.
    #[serde(rename = "METADATA")]
    Metadata,
    /// Nothing changes.
    #[default]
    #[serde(rename = "NONE")]
    None,
}

impl Verdict {
    /// All verdicts, the strongest first.
    pub const ALL: [Self; 7] =
        [Self::Roll, Self::InPlace, Self::Delete, Self::Create, Self::Scale, Self::Metadata, Self::None];

    /// The verdict as it is printed.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Roll => "ROLL",
            Self::InPlace => "IN-PLACE",
            Self::Metadata => "METADATA",
            Self::Scale => "SCALE",
            Self::Create => "CREATE",
            Self::Delete => "DELETE",
            Self::None => "NONE",
        }
    }

    /// Whether every node gets a new template.
    #[must_use]
    pub fn is_roll(self) -> bool {
        matches!(self, Self::Roll | Self::InPlace)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.word())
    }
}

/// The effect of a change on one placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Effect {
    /// The effect on existing machines.
    pub verdict: Verdict,
    /// Whether the content of the class changes, but not its name, so that new nodes differ from old ones.
    pub new_nodes_differ: bool,
}

impl Effect {
    /// No effect.
    pub const NONE: Self = Self { verdict: Verdict::None, new_nodes_differ: false };

    /// Whether nothing changes at all.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }
}

/// The effect of replacing the old objects of a placement by the new ones.
pub(super) fn effect(old: Option<&Placement>, new: Option<&Placement>) -> Effect {
    let (old, new) = match (old, new) {
        (None, None) => return Effect::NONE,
        (None, Some(_)) => return Effect { verdict: Verdict::Create, new_nodes_differ: false },
        (Some(_), None) => return Effect { verdict: Verdict::Delete, new_nodes_differ: false },
        (Some(old), Some(new)) => (old, new),
    };
    if replaces_machines(template(&old.deployment), template(&new.deployment)) {
        let in_place =
            new.deployment.pointer("/spec/strategy/type").is_some_and(|strategy| strategy == "InPlaceUpdate");
        return Effect {
            verdict: if in_place { Verdict::InPlace } else { Verdict::Roll },
            // All nodes are replaced, so new ones do not differ from old ones.
            new_nodes_differ: false,
        };
    }
    let verdict = if old.replicas() != new.replicas() || old.bounds_differ(new) {
        Verdict::Scale
    } else if !is_same_but_replicas(&old.deployment, &new.deployment)
        || old.priority_differs(new)
        || !old.has_same_class_metadata(new)
    {
        Verdict::Metadata
    } else {
        Verdict::None
    };
    Effect { verdict, new_nodes_differ: !old.makes_same_nodes(new) }
}

fn template(deployment: &Value) -> &Value {
    deployment.pointer("/spec/template").unwrap_or(&Value::Null)
}

/// Whether machine-controller-manager creates a new machine set for the second template.
pub(super) fn replaces_machines(old: &Value, new: &Value) -> bool {
    !have_same_labels(old, new) || !is_same(&what_counts(old), &what_counts(new))
}

/// The labels of the longer map must be in the shorter one with the same value; an absent label is equal to an empty
/// one.
fn have_same_labels(old: &Value, new: &Value) -> bool {
    let none = Map::new();
    let labels = |template: &'_ Value| template.pointer("/metadata/labels").and_then(Value::as_object).cloned();
    let old = labels(old).unwrap_or_else(|| none.clone());
    let new = labels(new).unwrap_or(none);
    let (shorter, longer) = if old.len() > new.len() { (new, old) } else { (old, new) };
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    longer
        .iter()
        .filter(|(label, _)| *label != TEMPLATE_HASH_LABEL)
        .all(|(label, value)| text(shorter.get(label)) == text(Some(value)))
}

/// A template without the fields that are compared separately or updated without a roll.
fn what_counts(template: &Value) -> Value {
    let mut rest = template.clone();
    if let Some(metadata) = rest.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("labels");
    }
    if let Some(spec) = rest.get_mut("spec").and_then(Value::as_object_mut) {
        for member in TAKEN_OVER {
            spec.remove(member);
        }
        if let Some(class) = spec.get_mut("class").and_then(Value::as_object_mut) {
            class.remove("kind");
        }
    }
    rest
}

fn is_same_but_replicas(old: &Value, new: &Value) -> bool {
    let keys = |document: &Value| document.as_object().map(|map| map.keys().cloned().collect::<Vec<_>>());
    let mut members = keys(old).unwrap_or_default();
    members.extend(keys(new).unwrap_or_default());
    members
        .iter()
        .filter(|member| !["spec", "status"].contains(&member.as_str()))
        .all(|member| is_same(old.get(member).unwrap_or(&Value::Null), new.get(member).unwrap_or(&Value::Null)))
        && {
            let without_replicas = |document: &Value| {
                let mut spec = document.get("spec").cloned().unwrap_or_default();
                if let Some(spec) = spec.as_object_mut() {
                    spec.remove("replicas");
                }
                spec
            };
            is_same(&without_replicas(old), &without_replicas(new))
        }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_labels_annotations_class_and_provider_id_count() {
        let old =
            json!({"metadata": {"labels": {"name": "d"}}, "spec": {"class": {"kind": "MachineClass", "name": "c"}}});
        let with = |path: &str, value: Value| {
            let mut new = old.clone();
            let (parent, member) = path.rsplit_once('/').unwrap();
            new.pointer_mut(parent).unwrap()[member] = value;
            replaces_machines(&old, &new)
        };
        assert!(with("/metadata/labels/x", json!("y")));
        assert!(with("/metadata/annotations", json!({"a": "b"})));
        assert!(with("/spec/class/name", json!("other")));
        assert!(with("/spec/class/apiGroup", json!("machine.sapcloud.io")));
        assert!(with("/spec/providerID", json!("azure:///x")));
        assert!(!with("/metadata/labels/machine-template-hash", json!("123")));
        assert!(!with("/metadata/labels/empty", json!("")));
        assert!(!with("/metadata/annotations", json!({})));
        assert!(!with("/spec/class/kind", json!("Other")));
        for member in TAKEN_OVER {
            assert!(!with(&format!("/spec/{member}"), json!({"x": 1})), "{member}");
        }
    }
}
