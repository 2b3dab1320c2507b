//! What becomes of one pool in one zone.

use serde::{Deserialize, Serialize};

use super::cause::Cause;
use super::machine_size::MachineSize;
use super::rule::Verdict;
use super::surge::SurgePlan;
use crate::worker::class_inputs::ChangedInputs;

/// Machines of one placement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nodes {
    /// Before.
    pub before: i64,
    /// After.
    pub after: i64,
    /// Replaced, updated, added or removed.
    pub affected: i64,
    /// Whether `before` was seen; otherwise it is the least there can be.
    pub seen: bool,
}

/// What becomes of one pool in one zone.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PlacementChange {
    /// Name of the pool.
    pub pool: String,
    /// The zone.
    pub zone: Option<String>,
    /// Name of the MachineDeployment.
    pub deployment: String,
    /// What becomes of the machines there are.
    pub verdict: Verdict,
    /// Whether the class changes under its name.
    pub new_nodes_differ: bool,
    /// Where the class differs under its name; of live objects, also where it differs from the one that they roll to.
    pub class_differences: Vec<String>,
    /// How many machines.
    pub nodes: Nodes,
    /// The class before.
    pub old_class: Option<String>,
    /// The class after.
    pub new_class: Option<String>,
    /// A machine before, where the class tells.
    pub old_machine: Option<MachineSize>,
    /// A machine after, where the class tells.
    pub new_machine: Option<MachineSize>,
    /// How a roll or an update proceeds.
    pub surge: Option<SurgePlan>,
    /// Who is to blame, with what each does.
    pub causes: Vec<Cause>,
    /// Named inputs of the class name that differ.
    pub hash_inputs: Vec<String>,
    /// The same as it is recorded, for a roll; `None` where it is not known.
    pub changed_inputs: Option<ChangedInputs>,
}

impl PlacementChange {
    /// Whether anything changes.
    #[must_use]
    pub fn is_change(&self) -> bool {
        self.verdict != Verdict::None || self.new_nodes_differ
    }

    /// Whether machines go with their deployment. One that was seen without any takes none along.
    #[must_use]
    pub fn deletes_machines(&self) -> bool {
        self.verdict == Verdict::Delete && (self.nodes.before > 0 || !self.nodes.seen)
    }
}
