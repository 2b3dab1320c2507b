//! The effect of a change on one pool in one zone.

use serde::{Deserialize, Serialize};

use super::budget_effect::BudgetEffect;
use super::cause::Cause;
use super::machine_size::MachineSize;
use super::rule::Verdict;
use super::surge::SurgePlan;
use decisions::worker::plan::class_inputs::ChangedInputs;

/// Numbers of machines of one placement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nodes {
    /// Number of machines before the change.
    pub before: i64,
    /// Number of machines after the change.
    pub after: i64,
    /// Machines that are replaced, updated, added or removed.
    pub affected: i64,
    /// Whether `before` is the real number; otherwise it is the minimum.
    pub seen: bool,
}

/// The effect of a change on one pool in one zone.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PlacementChange {
    /// Name of the pool.
    pub pool: String,
    /// The zone, if known.
    pub zone: Option<String>,
    /// Name of the MachineDeployment.
    pub deployment: String,
    /// The effect on existing machines.
    pub verdict: Verdict,
    /// Whether the content of the class changes, but not its name.
    pub new_nodes_differ: bool,
    /// The paths that differ in a class that keeps its name. For live objects, also those that differ from the class
    /// that they roll to.
    pub class_differences: Vec<String>,
    /// Numbers of machines.
    pub nodes: Nodes,
    /// Name of the class before the change.
    pub old_class: Option<String>,
    /// Name of the class after the change.
    pub new_class: Option<String>,
    /// The size of a machine before, if its class has it.
    pub old_machine: Option<MachineSize>,
    /// The size of a machine after, if its class has it.
    pub new_machine: Option<MachineSize>,
    /// How a roll or an update in place proceeds.
    pub surge: Option<SurgePlan>,
    /// The changes that cause it, each with its effect.
    pub causes: Vec<Cause>,
    /// Names of the inputs of the class name that differ.
    pub hash_inputs: Vec<String>,
    /// The changed inputs of a roll, in the form in which they are recorded; `None` if unknown.
    pub changed_inputs: Option<ChangedInputs>,
    /// What a roll budget does with a roll.
    #[serde(default)]
    pub budget: BudgetEffect,
}

impl PlacementChange {
    /// Whether anything changes.
    #[must_use]
    pub fn is_change(&self) -> bool {
        self.verdict != Verdict::None || self.new_nodes_differ
    }

    /// Whether machines are deleted with their deployment, which is not the case if it is known to have none.
    #[must_use]
    pub fn deletes_machines(&self) -> bool {
        self.verdict == Verdict::Delete && (self.nodes.before > 0 || !self.nodes.seen)
    }
}
