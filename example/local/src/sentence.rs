//! The text of a line about an object: the facts that a user follows, in a few words.

use serde_json::Value;

/// A kind of object in the story.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Worker,
    MachineClass,
    MachineDeployment,
    MachineSet,
    Machine,
    Node,
}

impl Kind {
    /// All kinds, from the Worker to the node.
    pub(crate) const ALL: [Self; 6] =
        [Self::Worker, Self::MachineClass, Self::MachineDeployment, Self::MachineSet, Self::Machine, Self::Node];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Worker => "Worker",
            Self::MachineClass => "MachineClass",
            Self::MachineDeployment => "MachineDeployment",
            Self::MachineSet => "MachineSet",
            Self::Machine => "Machine",
            Self::Node => "Node",
        }
    }

    pub(crate) fn group_version(self) -> &'static str {
        match self {
            Self::Worker => "extensions.gardener.cloud/v1alpha1",
            Self::Node => "v1",
            _ => "machine.sapcloud.io/v1alpha1",
        }
    }

    /// The text about an object of this kind. Names are printed without their common prefix.
    pub(crate) fn sentence(self, object: &Value, prefix: &str) -> String {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default();
        let class = text("/spec/template/spec/class/name").trim_start_matches(prefix);
        let replicas = number("/spec/replicas");
        match self {
            Self::Worker => match text("/status/lastOperation/state") {
                "" => "asks for machines".to_owned(),
                state => format!(
                    "{state} {} %: {}",
                    number("/status/lastOperation/progress"),
                    text("/status/lastOperation/description")
                ),
            },
            Self::MachineClass => format!(
                "{} in {} with {} {}",
                text("/nodeTemplate/instanceType"),
                text("/nodeTemplate/zone"),
                text("/metadata/labels/operatingSystemName"),
                text("/metadata/labels/operatingSystemVersion"),
            ),
            Self::MachineDeployment => format!(
                "{class}: {} of {replicas} updated, {} available",
                number("/status/updatedReplicas"),
                number("/status/availableReplicas"),
            ),
            Self::MachineSet => format!("{class}: {} of {replicas} ready", number("/status/readyReplicas")),
            Self::Machine => match text("/status/currentStatus/phase") {
                "" => "wanted".to_owned(),
                phase => phase.to_owned(),
            },
            Self::Node => {
                let conditions = object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
                let is_ready = conditions.into_iter().any(|is| is["type"] == "Ready" && is["status"] == "True");
                let label = |name: &str| object["metadata"]["labels"][name].as_str().unwrap_or_default().to_owned();
                format!(
                    "{} ({} in {})",
                    if is_ready { "ready" } else { "not ready yet" },
                    label("node.kubernetes.io/instance-type"),
                    label("topology.kubernetes.io/zone"),
                )
            }
        }
    }
}
