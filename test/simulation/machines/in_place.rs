//! In-place updates: machine-controller-manager updates the machines of old sets, one by one or as selected by a user,
//! and moves each to the new set. A machine keeps the class with which it was created.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{MachineControllerManager, OF_TEMPLATE, is_ready, owner};
use crate::actor::{Actor, is_vanishing, name_of};
use crate::api_server::kinds::MACHINE;
use crate::api_server::store::Object;
use crate::random::Random;

/// Progress of a machine's update, as reason of its condition.
const CANDIDATE: &str = "CandidateForUpdate";
const SELECTED: &str = "SelectedForUpdate";
const UPDATED: &str = "UpdateSuccessful";

/// Whether the machines of a deployment are updated in place.
pub(crate) fn is_in_place(deployment: &Value) -> bool {
    deployment["spec"]["strategy"]["type"] == "InPlaceUpdate"
}

/// Selects machines for their update, until dropped.
pub(crate) async fn select(actor: Actor, random: Random) {
    loop {
        sleep(random.millis(1_000, 40_000)).await;
        let machines = actor.list(&MACHINE);
        let candidates: Vec<_> = machines.iter().filter(|machine| reason_of(&machine.value) == CANDIDATE).collect();
        if let Some(machine) = random.one_of(&candidates) {
            actor.note(format!("selects machine {} for its update", name_of(&machine.value)));
            set_reason(&actor, &machine.value, SELECTED);
        }
    }
}

fn reason_of(machine: &Value) -> &str {
    let mut conditions = machine["status"]["conditions"].as_array().into_iter().flatten();
    let condition = conditions.find(|condition| condition["type"] == "InPlaceUpdate");
    condition.and_then(|condition| condition["reason"].as_str()).unwrap_or_default()
}

fn set_reason(actor: &Actor, machine: &Value, reason: &str) {
    actor.change_status(&MACHINE, name_of(machine), |machine| {
        machine["status"]["conditions"] = json!([{"type": "InPlaceUpdate", "status": "True", "reason": reason}]);
    });
}

impl MachineControllerManager {
    pub(super) fn update_in_place(
        &mut self,
        deployment: &Value,
        expected: &Value,
        sets: &[Arc<Object>],
        replicas: u64,
    ) {
        let old: Vec<&Value> =
            sets.iter().map(|set| &set.value).filter(|set| name_of(set) != name_of(expected)).collect();
        let mut waiting: Vec<Arc<Object>> = old.iter().flat_map(|set| self.staying(set)).collect();
        let updated = self.staying(expected).len();
        while !waiting.is_empty() && (waiting.len() + updated) as u64 > replicas {
            if let Some(surplus) = waiting.pop() {
                self.actor.delete(&MACHINE, name_of(&surplus.value));
            }
        }
        let is_auto = deployment["spec"]["strategy"]["inPlaceUpdate"]["orchestrationType"] == "Auto";
        let mut selects = is_auto && !waiting.iter().any(|machine| reason_of(&machine.value) == SELECTED);
        waiting.retain(|machine| {
            let machine = &machine.value;
            match reason_of(machine) {
                CANDIDATE if selects => {
                    selects = false;
                    set_reason(&self.actor, machine, SELECTED);
                }
                CANDIDATE => {}
                SELECTED if self.is_updated(machine) => {
                    self.give_to(machine, expected);
                    return false;
                }
                SELECTED => {}
                _ => set_reason(&self.actor, machine, CANDIDATE),
            }
            true
        });
        let machines = self.scale_set(expected, replicas.saturating_sub(waiting.len() as u64));
        let ready = machines.iter().filter(|machine| is_ready(&machine.value)).count();
        // Machines count until they are deleted.
        let mut left = 0;
        for set in old {
            self.scale_set(set, self.staying(set).len() as u64);
            let machines = self.owned(&MACHINE, set, "MachineSet").len();
            left += machines;
            if machines == 0 {
                self.end_set(set);
            }
        }
        let present = self.owned(&MACHINE, expected, "MachineSet").len();
        self.report(deployment, present, ready, left);
    }

    /// The machines of a set that are not being deleted.
    fn staying(&self, set: &Value) -> Vec<Arc<Object>> {
        let mut machines = self.owned(&MACHINE, set, "MachineSet");
        machines.retain(|machine| !is_vanishing(&machine.value));
        machines
    }

    /// Whether gardener-node-agent has finished the update of a machine.
    fn is_updated(&mut self, machine: &Value) -> bool {
        let delay = self.random.millis(500, 20_000);
        let due = *self.updates.entry(name_of(machine).to_owned()).or_insert_with(|| Instant::now() + delay);
        let is_due = due <= Instant::now();
        if is_due {
            self.updates.remove(name_of(machine));
        }
        is_due
    }

    fn give_to(&self, machine: &Value, set: &Value) {
        self.actor.change(&MACHINE, name_of(machine), |machine| {
            machine["metadata"]["ownerReferences"] = json!([owner(set)]);
            machine["metadata"]["labels"][OF_TEMPLATE] = set["metadata"]["labels"][OF_TEMPLATE].clone();
        });
        set_reason(&self.actor, machine, UPDATED);
    }
}
