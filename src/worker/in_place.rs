//! Pure: whether a steady Worker has to be reconciled, because a person has selected a machine to be updated where it is.
//!
//! The Go extension reconciles such a Worker when it sees the machine's condition change; what happens while it does not
//! run is lost. Here the state itself decides: a selected machine, or no old machine any more where the last operation left
//! some.

use std::collections::BTreeSet;

use crate::api::gardener::{UpdateStrategy, Worker};
use crate::api::machine::{MachineDeployment, MachineSet};
use crate::worker::conditions::is_recorded_unselected;
use crate::worker::machine_objects::MachineObjects;
use crate::worker::progress::is_selected;

/// Whether a person has done something about machines that the last operation does not know of. `live` is asked for only
/// where the Worker has pools that are updated by hand.
#[must_use]
pub fn is_update_due(worker: &Worker, live: &MachineObjects) -> bool {
    let by_hand: Vec<&MachineDeployment> =
        live.deployments.values().map(|live| &live.object).filter(|deployment| is_by_hand(deployment)).collect();
    if by_hand.is_empty() {
        return false;
    }
    let old_sets = old_sets(&by_hand, live);
    if is_recorded_unselected(&worker.status.conditions) && old_sets.iter().all(|set| set.status.replicas == 0) {
        return true;
    }
    let names: BTreeSet<&str> = old_sets.into_iter().filter_map(|set| set.metadata.name.as_deref()).collect();
    live.machines.iter().any(|machine| {
        let owners = machine.metadata.owner_references.as_deref().unwrap_or_default();
        owners.iter().any(|owner| names.contains(owner.name.as_str())) && is_selected(machine)
    })
}

/// Whether a Worker has pools of which a person selects machines.
#[must_use]
pub fn has_pools_by_hand(worker: &Worker) -> bool {
    let mut pools = worker.spec.pools.iter();
    pools.any(|pool| pool.update_strategy == Some(UpdateStrategy::ManualInPlaceUpdate))
}

fn is_by_hand(deployment: &MachineDeployment) -> bool {
    deployment.spec.strategy.as_ref().is_some_and(|strategy| strategy.is_manual_in_place())
}

/// Machine sets of other classes than their deployments have now.
fn old_sets<'a>(by_hand: &[&MachineDeployment], live: &'a MachineObjects) -> Vec<&'a MachineSet> {
    let is_old = |deployment: &MachineDeployment, class: &str| deployment.spec.template.spec.class.name != class;
    let sets = live.machine_sets.iter().filter(|set| {
        let owners = set.metadata.owner_references.as_deref().unwrap_or_default();
        let owner = by_hand
            .iter()
            .find(|deployment| owners.iter().any(|owner| Some(&owner.name) == deployment.metadata.name.as_ref()));
        owner.is_some_and(|deployment| is_old(deployment, &set.spec.template.spec.class.name))
    });
    sets.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::worker::machine_objects::LiveDeployment;

    fn worker(reason: &str) -> Worker {
        let condition = json!({"type": "PoolsReady", "status": "True", "reason": reason, "message": ""});
        let document = json!({
            "metadata": {},
            "spec": {"pools": [{"name": "a", "updateStrategy": "ManualInPlaceUpdate"}]},
            "status": {"conditions": [condition]},
        });
        serde_json::from_str(&document.to_string()).unwrap()
    }

    fn live(orchestration: &str, old: i32, reason: &str) -> MachineObjects {
        let owned_by = |kind: &str, name: &str| json!([{"apiVersion": "v1", "kind": kind, "name": name, "uid": "u"}]);
        let deployment = json!({
            "metadata": {"name": "a-z1"},
            "spec": {
                "replicas": 2,
                "template": {"spec": {"class": {"name": "new"}}},
                "strategy": {"type": "InPlaceUpdate", "inPlaceUpdate": {"orchestrationType": orchestration}},
            },
        });
        let set: Value = json!({
            "metadata": {"name": "a-z1-old", "ownerReferences": owned_by("MachineDeployment", "a-z1")},
            "spec": {"template": {"spec": {"class": {"name": "old"}}}},
            "status": {"replicas": old},
        });
        let machine: Value = json!({
            "metadata": {"name": "m", "ownerReferences": owned_by("MachineSet", "a-z1-old")},
            "status": {"conditions": [{"type": "InPlaceUpdate", "status": "True", "reason": reason}]},
        });
        MachineObjects {
            deployments: [("a-z1".to_owned(), LiveDeployment::read_without_codes(deployment).unwrap())].into(),
            machine_sets: vec![serde_json::from_value(set).unwrap()],
            machines: vec![serde_json::from_value(machine).unwrap()],
            ..MachineObjects::default()
        }
    }

    #[test]
    fn a_person_decides_when_the_worker_goes_on() {
        let steady = worker("MachinesToSelect");
        assert!(has_pools_by_hand(&steady));
        for (orchestration, old, reason, expected, why) in [
            ("Manual", 1, "CandidateForUpdate", false, "nobody has selected anything"),
            ("Manual", 1, "SelectedForUpdate", true, "a machine is selected"),
            ("Manual", 1, "UpdateFailed", true, "and its update is not done"),
            ("Manual", 0, "CandidateForUpdate", true, "the last old machine is updated: its hash has to be recorded"),
            ("Auto", 1, "SelectedForUpdate", false, "machine-controller-manager selects"),
        ] {
            assert_eq!(is_update_due(&steady, &live(orchestration, old, reason)), expected, "{why}");
        }
        assert!(!is_update_due(&worker("AllPoolsReady"), &live("Manual", 0, "CandidateForUpdate")), "it is recorded");
    }
}
