//! Live machine sets and machines, reduced to the fields that decisions need, because a store keeps one per node.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde::Deserialize;

use wire::api::machine::{DeploymentCondition, Machine, MachineSet, MachineState};

/// Label on a Machine that machine-controller-manager deletes without draining.
pub const FORCE_DELETION_LABEL: (&str, &str) = ("force-deletion", "True");
/// Label on machine sets and machines with the name of their deployment.
const DEPLOYMENT_LABEL: &str = "name";
/// Type of the condition that selects a machine for an in-place update.
const SELECTION: &str = "InPlaceUpdate";

/// The required fields of a machine set.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "MachineSet")]
pub struct LiveMachineSet {
    /// Identity and owner.
    pub member: PoolMember,
    /// Number of existing machines.
    pub replicas: i32,
    /// Generation observed by machine-controller-manager; 0 if it has not seen the set yet.
    pub observed_generation: i64,
    /// Whether its deletion was requested.
    pub is_being_deleted: bool,
}

/// The required fields of a machine.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "Machine")]
pub struct LiveMachine {
    /// Identity and owner.
    pub member: PoolMember,
    /// Whether its deletion was requested.
    pub is_being_deleted: bool,
    /// Whether machine-controller-manager deletes it without draining.
    pub is_marked_for_force_deletion: bool,
    /// Whether a user has selected it for an in-place update. The update is complete when the machine has left its old
    /// machine set.
    pub is_selected: bool,
    /// Whether it has ever run, with its node in the cluster.
    pub has_run: bool,
    /// Description of machine-controller-manager's last operation on it.
    pub last_description: Box<str>,
}

/// Fields that machine sets and machines have in common.
#[derive(Clone, Debug, Default)]
pub struct PoolMember {
    /// Name of the object; empty in a file without one.
    pub name: Box<str>,
    /// Name of the machine class.
    pub class: Box<str>,
    /// Finalizers of the object.
    pub finalizers: Box<[String]>,
    owner: Owner,
}

/// Owner of an object.
#[derive(Clone, Debug, Default)]
enum Owner {
    /// It has neither an owner nor a label.
    #[default]
    Nobody,
    /// Only its label names a deployment: the shoot has moved here, and machine-controller-manager has not adopted it
    /// yet.
    Labelled { deployment: Box<str>, uid: Option<Box<str>> },
    /// Owner references.
    Owned(Box<[(OwnerKind, Box<str>)]>),
}

/// Kind of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OwnerKind {
    Deployment,
    Set,
    Other,
}

impl PoolMember {
    fn new(metadata: ObjectMeta, class: String) -> Self {
        let ObjectMeta { name, uid, finalizers, owner_references, labels, .. } = metadata;
        let owners = owner_references.unwrap_or_default();
        let owner = if owners.is_empty() {
            let label = labels.and_then(|mut labels| labels.remove(DEPLOYMENT_LABEL));
            label.map_or(Owner::Nobody, |deployment| Owner::Labelled {
                deployment: deployment.into(),
                uid: uid.map(Into::into),
            })
        } else {
            Owner::Owned(owners.into_iter().map(owner).collect())
        };
        Self {
            name: name.unwrap_or_default().into(),
            class: class.into(),
            finalizers: finalizers.unwrap_or_default().into(),
            owner,
        }
    }

    /// Whether an owner of any kind has this name.
    pub(crate) fn is_owned_by(&self, name: &str) -> bool {
        matches!(&self.owner, Owner::Owned(owners) if owners.iter().any(|(_, owner)| **owner == *name))
    }

    /// Name of the deployment that a machine set belongs to.
    pub fn deployment(&self) -> Option<&str> {
        self.owner_of(OwnerKind::Deployment).or_else(|| self.labelled())
    }

    /// Name of the machine set that a machine belongs to.
    pub fn machine_set(&self) -> Option<&str> {
        self.owner_of(OwnerKind::Set)
    }

    /// Name of the deployment in the label, if the object has no owner.
    pub fn labelled(&self) -> Option<&str> {
        if let Owner::Labelled { deployment, .. } = &self.owner { Some(deployment) } else { None }
    }

    /// UID of the object, if it has a label but no owner.
    pub(crate) fn labelled_uid(&self) -> Option<&str> {
        if let Owner::Labelled { uid, .. } = &self.owner { uid.as_deref() } else { None }
    }

    fn owner_of(&self, kind: OwnerKind) -> Option<&str> {
        let Owner::Owned(owners) = &self.owner else { return None };
        owners.iter().find(|(of, _)| *of == kind).map(|(_, name)| &**name)
    }
}

fn owner(OwnerReference { kind, name, .. }: OwnerReference) -> (OwnerKind, Box<str>) {
    let kind = match kind.as_str() {
        "MachineDeployment" => OwnerKind::Deployment,
        "MachineSet" => OwnerKind::Set,
        _ => OwnerKind::Other,
    };
    (kind, name.into())
}

impl From<MachineSet> for LiveMachineSet {
    fn from(MachineSet { metadata, spec, status }: MachineSet) -> Self {
        Self {
            is_being_deleted: metadata.deletion_timestamp.is_some(),
            member: PoolMember::new(metadata, spec.template.spec.class.name),
            replicas: status.replicas,
            observed_generation: status.observed_generation,
        }
    }
}

impl From<Machine> for LiveMachine {
    fn from(Machine { metadata, spec, status }: Machine) -> Self {
        let (label, mark) = FORCE_DELETION_LABEL;
        let is_marked =
            metadata.labels.as_ref().and_then(|labels| labels.get(label)).is_some_and(|value| value == mark);
        Self {
            is_being_deleted: metadata.deletion_timestamp.is_some(),
            is_marked_for_force_deletion: is_marked,
            is_selected: status.conditions.iter().any(is_selection),
            has_run: has_run(&status),
            last_description: status.last_operation.description.into(),
            member: PoolMember::new(metadata, spec.class.name),
        }
    }
}

/// Whether a machine has run. machine-controller-manager checks the health of no other machine, and only nodes that are
/// or were ready become `Running`, `Unknown` or updated in place.
fn has_run(status: &MachineState) -> bool {
    let phase = status.current_status.phase.as_str();
    let is_ready = |condition: &DeploymentCondition| condition.condition_type == "Ready" && condition.status == "True";
    ["Running", "Unknown"].contains(&phase)
        || phase.starts_with("InPlaceUpdat")
        || status.last_operation.operation_type == "HealthCheck"
        || status.conditions.iter().any(is_ready)
}

fn is_selection(condition: &DeploymentCondition) -> bool {
    condition.condition_type == SELECTION && condition.reason != "CandidateForUpdate"
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn owned_by(owners: &[(&str, &str)]) -> Value {
        let owners: Vec<Value> = owners
            .iter()
            .map(|(kind, name)| json!({"apiVersion": "v1", "kind": kind, "name": name, "uid": "u"}))
            .collect();
        json!({"name": "m", "ownerReferences": owners, "labels": {"name": "labelled"}})
    }

    #[test]
    fn uses_label_without_owner() {
        let member = |metadata: Value| {
            let set: LiveMachineSet = serde_json::from_value(json!({"metadata": metadata})).unwrap();
            set.member
        };
        let whose = |member: &PoolMember| {
            let [deployment, set, labelled] = [member.deployment(), member.machine_set(), member.labelled()];
            [deployment, set, labelled].map(|name| name.map(str::to_owned))
        };
        let some = |name: &str| Some(name.to_owned());
        for (owners, expected) in [
            (&[("MachineDeployment", "d"), ("MachineDeployment", "e")][..], [some("d"), None, None]),
            (&[("Shoot", "x"), ("MachineSet", "s")], [None, some("s"), None]),
            (&[("Shoot", "x")], [None, None, None]),
            (&[], [some("labelled"), None, some("labelled")]),
        ] {
            let member = member(owned_by(owners));
            assert_eq!(whose(&member), expected, "{owners:?}");
            assert_eq!(member.is_owned_by("x"), owners.iter().any(|(_, name)| *name == "x"), "{owners:?}");
            assert!(!member.is_owned_by("labelled"), "a label is no owner");
        }
        assert_eq!(whose(&member(json!({"name": "m"}))), [None, None, None]);
        let unowned = member(json!({"name": "m", "uid": "u", "labels": {"name": "labelled"}}));
        assert_eq!(unowned.labelled_uid(), Some("u"));
    }

    #[test]
    fn knows_whether_a_machine_has_run() {
        let has_run =
            |status: Value| serde_json::from_value::<LiveMachine>(json!({ "status": status })).unwrap().has_run;
        let phase = |phase: &str| json!({"currentStatus": {"phase": phase}});
        for ran in ["Running", "Unknown", "InPlaceUpdating", "InPlaceUpdateFailed"] {
            assert!(has_run(phase(ran)), "{ran}");
        }
        for other in ["", "Pending", "CrashLoopBackOff", "Failed", "Terminating", "Available"] {
            assert!(!has_run(phase(other)), "{other}");
            let failed =
                |operation: &str| json!({"currentStatus": {"phase": other}, "lastOperation": {"type": operation}});
            assert!(has_run(failed("HealthCheck")) && !has_run(failed("Create")), "{other}");
        }
        let node = |status: &str| json!({"conditions": [{"type": "Ready", "status": status}]});
        assert!(has_run(node("True")) && !has_run(node("False")));
        assert!(!has_run(json!({"conditions": [{"type": "InPlaceUpdate", "status": "True"}]})));
    }

    #[test]
    fn detects_force_deletion_label() {
        let is_marked = |value: &str| {
            let machine = json!({"metadata": {"labels": {"force-deletion": value}}});
            serde_json::from_value::<LiveMachine>(machine).unwrap().is_marked_for_force_deletion
        };
        assert!(is_marked("True") && !is_marked("true") && !is_marked(""));
    }
}
