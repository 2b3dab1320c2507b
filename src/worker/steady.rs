//! Pure: what becomes of a Worker of which nothing is asked, from its status and its machine objects alone.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::api::gardener::{UpdateStrategy, Worker};
use crate::api::machine::{MachineDeployment, MachineSet};
use crate::worker::conditions::{
    Condition, ConditionStatus, every_node_ready, every_node_unknown, is_denied, is_recorded, is_recorded_hibernated,
    is_recorded_unselected,
};
use crate::worker::machine_objects::{LiveDeployment, MachineObjects};
use crate::worker::progress::is_selected;
use crate::worker::request::{Trigger, trigger};
use crate::worker::status::StatusReport;

/// What has to be found out about a Worker of which nothing is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteadyQuestions {
    /// Whether its machines are followed at all: not while somebody else has to act, nor after a deletion or migration.
    pub is_followed: bool,
    /// Whether its specification has changed since it was done.
    pub has_new_specification: bool,
    /// Whether a person selects machines of it for updates in place, so that all its machine objects are needed.
    pub has_pools_by_hand: bool,
    /// Whether it is hibernated, as its status records; unknown where the last operation was another extension's.
    pub is_hibernated: Option<bool>,
}

impl SteadyQuestions {
    /// Those of a Worker.
    #[must_use]
    pub fn of(worker: &Worker) -> Self {
        let trigger = trigger(worker);
        Self {
            is_followed: trigger != Trigger::None,
            has_new_specification: trigger == Trigger::Generation,
            has_pools_by_hand: has_pools_by_hand(worker),
            is_hibernated: is_recorded_hibernated(&worker.status.conditions),
        }
    }
}

/// What is found out about a Worker of which nothing is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum SteadyFinding {
    /// A person has selected a machine for an update in place: an operation begins.
    UpdateDue,
    /// Its nodes are as the condition says, or better: the report is written now.
    Current(StatusReport),
    /// Nodes are not ready, and the condition says otherwise: the report is written once that has lasted.
    Unready(StatusReport),
}

/// Judges a steady Worker. `deployments` are its machine deployments, or why they can't be read; `objects` are all its machine
/// objects, for one with pools that are updated by hand.
#[must_use]
pub fn judge_steady(
    worker: &Worker,
    deployments: Result<&BTreeMap<String, LiveDeployment>, &str>,
    objects: Option<&MachineObjects>,
    is_hibernated: bool,
    now: Timestamp,
) -> SteadyFinding {
    if objects.is_some_and(|objects| is_update_due(worker, objects)) {
        return SteadyFinding::UpdateDue;
    }
    let condition = match deployments {
        Ok(deployments) => every_node_ready(deployments, is_hibernated),
        Err(reason) => every_node_unknown(reason),
    };
    if is_reported(worker, &condition) {
        return SteadyFinding::Current(StatusReport::of_condition(worker, None, now));
    }
    let is_ready = condition.status == ConditionStatus::True;
    let report = StatusReport::of_condition(worker, Some(&condition), now);
    if is_ready { SteadyFinding::Current(report) } else { SteadyFinding::Unready(report) }
}

/// Whether the status says so. A condition that is true may be recorded in other words, or not at all: those of the Go
/// extension, whose health checks may still run, would change places with ours for ever, and a Worker that is taken over is not
/// written before something is asked or wrong.
fn is_reported(worker: &Worker, condition: &Condition) -> bool {
    let conditions = &worker.status.conditions;
    is_recorded(conditions, condition)
        || condition.status == ConditionStatus::True && !is_denied(conditions, condition.condition_type)
}

/// Whether a person has done something about machines that the last operation does not know of: a selected machine, or no old
/// machine any more where the last operation left some. `live` is needed only where the Worker has pools that are updated by
/// hand. The Go extension reconciles when it sees the machine's condition change, so what happens while it does not run is lost.
fn is_update_due(worker: &Worker, live: &MachineObjects) -> bool {
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
fn has_pools_by_hand(worker: &Worker) -> bool {
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
    use crate::worker::status_text::TextSize;

    fn worker(conditions: &Value) -> Worker {
        let worker = json!({"spec": {"type": "azure"}, "status": {"conditions": conditions}});
        serde_json::from_str(&worker.to_string()).unwrap()
    }

    fn judged(conditions: &Value, deployments: Result<&BTreeMap<String, LiveDeployment>, &str>) -> SteadyFinding {
        judge_steady(&worker(conditions), deployments, None, false, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_condition_in_the_words_of_the_go_extension_stays_while_it_is_true() {
        let theirs = json!([{"type": "EveryNodeReady", "status": "True", "reason": "Theirs", "message": "all well"}]);
        let SteadyFinding::Current(report) = judged(&theirs, Ok(&BTreeMap::new())) else { panic!("it is true") };
        assert_eq!(report.patch(TextSize::Full), None);
        let SteadyFinding::Unready(report) = judged(&theirs, Err("unreadable")) else { panic!("it is not true") };
        let patch = report.patch(TextSize::Full).unwrap();
        assert_eq!(patch["status"]["conditions"][0]["status"], "Unknown");
    }

    #[test]
    fn nothing_is_written_while_nodes_are_ready_and_no_condition_denies_it() {
        let written = |conditions: &Value| {
            let SteadyFinding::Current(report) = judged(conditions, Ok(&BTreeMap::new())) else {
                panic!("the nodes are ready")
            };
            report.patch(TextSize::Full)
        };
        assert_eq!(written(&json!([])), None);
        let patch = written(&json!([{"type": "EveryNodeReady", "status": "Unknown"}])).unwrap();
        assert_eq!(patch["status"]["conditions"][0]["status"], "True");
    }

    fn by_hand(reason: &str) -> Worker {
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
        let steady = by_hand("MachinesToSelect");
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
        assert!(!is_update_due(&by_hand("AllPoolsReady"), &live("Manual", 0, "CandidateForUpdate")), "it is recorded");
    }
}
