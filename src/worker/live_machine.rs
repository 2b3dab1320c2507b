//! Live machine sets and machines: of each what decisions are taken from, and no more. There are as many as nodes, and a store keeps all
//! of them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde::Deserialize;

use crate::api::machine::{DeploymentCondition, Machine, MachineSet};

/// Label on a Machine that machine-controller-manager deletes without draining.
pub const FORCE_DELETION_LABEL: (&str, &str) = ("force-deletion", "True");
/// Label of machine sets and machines: name of their deployment.
const DEPLOYMENT_LABEL: &str = "name";
/// Type of the condition by which a person selects a machine.
const SELECTION: &str = "InPlaceUpdate";

/// A machine set.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "MachineSet")]
pub struct LiveMachineSet {
    /// Who it is, and whose.
    pub member: PoolMember,
    /// Machines there are.
    pub replicas: i32,
    /// The generation that machine-controller-manager has taken up; 0 when it has not seen the set yet.
    pub observed_generation: i64,
    /// Whether somebody has asked for its deletion.
    pub is_being_deleted: bool,
}

/// A machine.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "Machine")]
pub struct LiveMachine {
    /// Who it is, and whose.
    pub member: PoolMember,
    /// Whether somebody has asked for its deletion.
    pub is_being_deleted: bool,
    /// Whether machine-controller-manager deletes it without draining.
    pub is_marked_for_force_deletion: bool,
    /// Whether a person has selected it to be updated where it is. It is done when the machine has left its old machine set.
    pub is_selected: bool,
    /// What machine-controller-manager said of what it tried last.
    pub last_description: Box<str>,
}

/// What machine sets and machines have in common.
#[derive(Clone, Debug, Default)]
pub struct PoolMember {
    /// Its name; empty in a file that doesn't say one.
    pub name: Box<str>,
    /// Name of the machine class.
    pub class: Box<str>,
    /// Its finalizers.
    pub finalizers: Box<[String]>,
    owner: Owner,
}

/// Whose an object is.
#[derive(Clone, Debug, Default)]
enum Owner {
    /// Nobody's: nothing owns it, and no label says whose it is.
    #[default]
    Nobody,
    /// By its label, because nothing owns it yet: of a shoot that has moved here, until machine-controller-manager has seen it.
    Labelled { deployment: Box<str>, uid: Option<Box<str>> },
    /// The objects that own it.
    Owned(Box<[(OwnerKind, Box<str>)]>),
}

/// What owns an object.
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

    /// Whether something of that name owns it, of whatever kind.
    pub(crate) fn is_owned_by(&self, name: &str) -> bool {
        matches!(&self.owner, Owner::Owned(owners) if owners.iter().any(|(_, owner)| **owner == *name))
    }

    /// Name of the deployment that a machine set is of.
    pub(crate) fn deployment(&self) -> Option<&str> {
        self.owner_of(OwnerKind::Deployment).or_else(|| self.labelled())
    }

    /// Name of the machine set that a machine is of.
    pub(crate) fn machine_set(&self) -> Option<&str> {
        self.owner_of(OwnerKind::Set)
    }

    /// Name of the deployment that the label says, where nothing owns it.
    pub(crate) fn labelled(&self) -> Option<&str> {
        if let Owner::Labelled { deployment, .. } = &self.owner { Some(deployment) } else { None }
    }

    /// Its uid, where only its label says whose it is.
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
            last_description: status.last_operation.description.into(),
            member: PoolMember::new(metadata, spec.class.name),
        }
    }
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
    fn an_object_belongs_to_its_owners_and_to_its_label_where_there_is_none() {
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
    fn only_the_label_that_machine_controller_manager_reads_marks_a_machine() {
        let is_marked = |value: &str| {
            let machine = json!({"metadata": {"labels": {"force-deletion": value}}});
            serde_json::from_value::<LiveMachine>(machine).unwrap().is_marked_for_force_deletion
        };
        assert!(is_marked("True") && !is_marked("true") && !is_marked(""));
    }
}
