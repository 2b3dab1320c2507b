//! Which machine objects a reconcile would write, by name and path but without values. For a controller that only
//! watches another one.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use super::compare::class_paths;
use super::difference::{ChangedObject, difference};
use super::rule::replaces_machines;
use decisions::provider::Provider;
use decisions::worker::machines::machine_objects::MachineObjects;
use decisions::worker::plan::changes::{MachineChanges, Write, class_document};
use decisions::worker::plan::desired::Drift;
use decisions::worker::plan::difference::merge_patch;
use decisions::worker::plan::orphans::{Deletions, Orphans};
use decisions::worker::plan::rolls::{Roll, RollCause, rolls};

/// How the objects of a Worker compare with those that this controller would write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// All machine objects are as this controller would write them.
    Same,
    /// Some machine objects differ.
    Differs(Vec<ObjectDifference>),
    /// An operation is in progress.
    UnderWay,
    /// The Worker or one of its pools is invalid.
    Unplanned(String),
}

/// Prefix of annotations that only this controller reads.
const OUR_ANNOTATIONS: &str = "gardener-extension-worker/";

/// Kinds of machine objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MachineObjectKind {
    /// The Secret of a class.
    Secret,
    /// The class of machines.
    MachineClass,
    /// The deployment of a pool in a zone.
    MachineDeployment,
    /// The machines of a deployment with one class.
    MachineSet,
}

impl MachineObjectKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Secret, Self::MachineClass, Self::MachineDeployment, Self::MachineSet];

    /// The kind as Kubernetes names it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "Secret",
            Self::MachineClass => "MachineClass",
            Self::MachineDeployment => "MachineDeployment",
            Self::MachineSet => "MachineSet",
        }
    }
}

/// The write that a reconcile would send for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WouldBe {
    /// The object would be new.
    Created,
    /// Its content would change.
    Changed,
    /// No pool needs it.
    Deleted,
}

impl WouldBe {
    /// Every write.
    pub const ALL: [Self; 3] = [Self::Created, Self::Changed, Self::Deleted];

    /// The word in texts and metric labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Deleted => "deleted",
        }
    }
}

/// An object that differs from the planned one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectDifference {
    /// Its kind.
    pub kind: MachineObjectKind,
    /// Its name.
    pub name: String,
    /// Name of its pool, if known.
    pub pool: String,
    /// The write that makes it equal.
    pub would_be: WouldBe,
    /// The paths that differ. For a deployment that gets another class, those of the class. Empty if only digests are
    /// known.
    pub(crate) locations: Vec<String>,
    /// Why its machines would be replaced or updated, if it has any; absent if they would not.
    pub roll: Option<RollCause>,
}

impl ObjectDifference {
    fn new(kind: MachineObjectKind, name: &str, pool: &str, would_be: WouldBe) -> Self {
        Self { kind, name: name.to_owned(), pool: pool.to_owned(), would_be, locations: Vec::new(), roll: None }
    }
}

impl fmt::Display for ObjectDifference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {} would be {}", self.kind.as_str(), self.name, self.would_be.as_str())?;
        if let Some(cause) = self.roll {
            write!(formatter, ", and its machines replaced (cause: {})", cause.as_str())?;
        }
        if self.locations.is_empty() { Ok(()) } else { write!(formatter, ": {}", self.locations.join(", ")) }
    }
}

/// All objects that differ from the plan, in the order of pools and zones, then the orphans.
pub fn object_differences(drift: &Drift<'_>, live: &MachineObjects, provider: &dyn Provider) -> Vec<ObjectDifference> {
    let rolls = rolls(&drift.changes, live, provider.infrastructure_inputs());
    let rolls: BTreeMap<String, Roll> = rolls.into_iter().map(|roll| (roll.deployment.clone(), roll)).collect();
    let mut differences: Vec<ObjectDifference> =
        drift.changes.iter().flat_map(|change| of_placement(change, live, &rolls)).collect();
    differences.extend(unwanted(&drift.orphans, live));
    differences
}

fn of_placement(
    change: &MachineChanges<'_>,
    live: &MachineObjects,
    rolls: &BTreeMap<String, Roll>,
) -> Vec<ObjectDifference> {
    let required = &change.machine.deployment;
    let new = |kind, name: &str, would_be| ObjectDifference::new(kind, name, &required.pool_name, would_be);
    let mut differences = Vec::new();
    if let Some(write) = &change.secret {
        differences.push(new(MachineObjectKind::Secret, &required.secret_name.0, of(write)));
    }
    let class_of = |name: &str| live.classes.get(name).and_then(|class| class.whole.as_deref());
    if let Some(write) = &change.class {
        let before = class_of(&required.class_name.0);
        let locations = before.map(|before| class_paths(before, write.after())).unwrap_or_default();
        let class = new(MachineObjectKind::MachineClass, &required.class_name.0, of(write));
        differences.push(ObjectDifference { locations, ..class });
    }
    let name = &required.name.0;
    match (&change.deployment, live.deployments.get(name)) {
        (Some(write), None) => differences.push(new(MachineObjectKind::MachineDeployment, name, of(write))),
        (Some(write), Some(live)) => {
            let before = without_our_annotations(&live.document);
            let after = without_our_annotations(write.after());
            if merge_patch(&before, &after).is_some() {
                let replaces = replaces_machines(&before["spec"]["template"], &after["spec"]["template"]);
                let roll = rolls.get(name);
                let mut locations = roll.map(|roll| roll.inputs.clone()).unwrap_or_default();
                // Another controller wrote the deployment, so compare the classes.
                if locations.is_empty()
                    && let Some(from) = class_of(&live.object.spec.template.spec.class.name)
                {
                    locations = class_paths(from, &class_document(change.machine));
                }
                if locations.is_empty() {
                    locations = paths(&before, &after);
                }
                let roll = replaces.then(|| roll.map_or(RollCause::NotRecorded, |roll| roll.cause));
                let deployment = new(MachineObjectKind::MachineDeployment, name, of(write));
                differences.push(ObjectDifference { locations, roll, ..deployment });
            }
        }
        (None, _) => {}
    }
    differences
}

fn of<T>(write: &Write<T>) -> WouldBe {
    match write {
        Write::Create(_) => WouldBe::Created,
        Write::Replace(_) | Write::Patch { .. } => WouldBe::Changed,
    }
}

fn paths(before: &Value, after: &Value) -> Vec<String> {
    let changes = difference(&ChangedObject::MachineDeployment, before, after, &["metadata", "spec"]);
    changes.iter().map(|change| change.path.to_string()).collect()
}

fn without_our_annotations(deployment: &Value) -> Value {
    let mut deployment = deployment.clone();
    if let Some(metadata) = deployment["metadata"].as_object_mut() {
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.retain(|annotation, _| !annotation.starts_with(OUR_ANNOTATIONS));
        }
        if metadata.get("annotations").and_then(Value::as_object).is_some_and(serde_json::Map::is_empty) {
            metadata.remove("annotations");
        }
    }
    deployment
}

/// Objects that no pool needs and that are not deleted yet.
fn unwanted(found: &Orphans, live: &MachineObjects) -> Vec<ObjectDifference> {
    let deleted = |kind, name: &str, pool: &str| ObjectDifference::new(kind, name, pool, WouldBe::Deleted);
    let Deletions { deployments, machine_sets, classes, class_secrets } = found.deletions(live);
    let pool = |name: &str| live.deployments.get(name).and_then(|deployment| deployment.pool()).unwrap_or_default();
    deployments
        .into_iter()
        .map(|(name, _)| deleted(MachineObjectKind::MachineDeployment, name, pool(name)))
        .chain(machine_sets.into_iter().map(|(name, _)| deleted(MachineObjectKind::MachineSet, name, "")))
        .chain(classes.into_iter().map(|(name, _)| deleted(MachineObjectKind::MachineClass, name, "")))
        .chain(class_secrets.into_iter().map(|(name, _)| deleted(MachineObjectKind::Secret, name, "")))
        .collect()
}
