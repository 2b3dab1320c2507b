//! Pure: decisions about a Worker without a requested operation, from its status and its machine objects only.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::worker::machines::live_machine::{LiveMachine, LiveMachineSet};
use crate::worker::machines::machine_objects::{LiveDeployment, MachineObjects};
use crate::worker::machines::node_count::{LiveMachines, MachineCount, NodeCount, nodes_mismatch};
use crate::worker::request::{Trigger, trigger};
use crate::worker::status::StatusReport;
use crate::worker::status::conditions::{
    Condition, ConditionStatus, is_denied, is_recorded, is_recorded_hibernated, is_recorded_unselected,
};
use crate::worker::status::every_node_ready::{HealthCheck, every_node_ready, every_node_unknown};
use wire::api::gardener::{UpdateStrategy, Worker};
use wire::api::machine::MachineDeployment;

/// How long nodes must be unready before this is reported. The Go extension checks at this interval. An autoscaler's
/// change that machine-controller-manager has not observed yet is no fault.
const UNREADY_DELAY: Duration = Duration::from_secs(30);
/// By then another controller's health check, every 30 s in the Go extension, would have reported unready nodes, so it
/// no longer runs.
const OTHER_CHECK_TIMEOUT: Duration = Duration::from_secs(120);

/// What to find out about a Worker without a requested operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteadyInputs {
    /// Whether its machines are observed: not while another controller has to act, nor after a deletion or migration.
    pub is_followed: bool,
    /// Whether its specification has changed since the last operation.
    pub has_new_specification: bool,
    /// Whether it has pools with manual in-place updates, which require all machine objects.
    pub has_manual_pools: bool,
    /// Whether it is hibernated, according to its status; `None` if another extension performed the last operation.
    pub is_hibernated: Option<bool>,
}

impl SteadyInputs {
    /// Derives them from a Worker.
    #[must_use]
    pub fn of(worker: &Worker) -> Self {
        let trigger = trigger(worker);
        Self {
            is_followed: trigger != Trigger::None,
            has_new_specification: trigger == Trigger::Generation,
            has_manual_pools: has_manual_pools(worker),
            is_hibernated: is_recorded_hibernated(&worker.status.conditions),
        }
    }
}

/// Result for a Worker without a requested operation.
#[derive(Clone, Debug, PartialEq)]
pub enum SteadyFinding {
    /// A user has selected a machine for an in-place update, so an operation starts.
    UpdateDue,
    /// Its nodes are as in the condition, or better: the report is written immediately.
    Current(StatusReport),
    /// Nodes are not ready, contrary to the condition: the report is written if this lasts for the given time.
    Unready(StatusReport, Duration),
}

/// Node count of the shoot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CachedNodes<'a> {
    /// Nodes are not counted: another controller owns the condition, or there are none.
    NotCounted,
    /// The first count is under way.
    Awaited,
    /// The count or why it failed, with the machines to compare it with.
    Counted(Result<NodeCount, &'a str>, LiveMachines),
}

/// Evaluates a steady Worker. `health_check` decides whether this controller writes the condition for gardenlet. A
/// Worker that has only been taken over is not written before an operation is requested. `deployments` are its machine
/// deployments, or why they can't be read. `objects` are all its machine objects, required for pools with manual
/// in-place updates.
#[must_use]
pub fn evaluate_steady(
    worker: &Worker,
    deployments: Result<&BTreeMap<String, LiveDeployment>, &str>,
    objects: Option<&MachineObjects>,
    nodes: CachedNodes<'_>,
    is_hibernated: bool,
    health_check: HealthCheck,
    now: Timestamp,
) -> SteadyFinding {
    if objects.is_some_and(|objects| is_update_due(worker, objects)) {
        return SteadyFinding::UpdateDue;
    }
    let present = &worker.status.conditions;
    if health_check == HealthCheck::OfWriter && is_recorded_hibernated(present).is_none() {
        return SteadyFinding::Current(StatusReport::default());
    }
    let condition = match deployments {
        Ok(deployments) => every_node_ready(deployments, is_hibernated),
        Err(reason) => every_node_unknown(reason),
    };
    let is_ready = condition.status == ConditionStatus::True && !is_hibernated;
    let condition = match (nodes, deployments) {
        (CachedNodes::Awaited, _) if is_ready => return SteadyFinding::Current(StatusReport::default()),
        (CachedNodes::Counted(Err(reason), _), _) if is_ready => every_node_unknown(reason),
        (CachedNodes::Counted(Ok(nodes), machines), Ok(deployments)) if is_ready => {
            let target = MachineCount::of(deployments);
            nodes_mismatch(nodes, target, machines, present, now).unwrap_or(condition)
        }
        _ => condition,
    };
    if is_reported(worker, &condition) {
        return SteadyFinding::Current(StatusReport::of_condition(worker, None, now));
    }
    let is_ready = condition.status == ConditionStatus::True;
    let is_left = health_check.leaves(present);
    if is_left && (is_ready || is_denied(present, condition.condition_type)) {
        return SteadyFinding::Current(StatusReport::of_condition(worker, None, now));
    }
    let report = StatusReport::of_condition(worker, Some(&condition), now);
    match is_ready {
        true => SteadyFinding::Current(report),
        false => SteadyFinding::Unready(report, if is_left { OTHER_CHECK_TIMEOUT } else { UNREADY_DELAY }),
    }
}

/// Whether the status already has the condition. A true one may have another message or be missing, because no
/// controller acts on it.
fn is_reported(worker: &Worker, condition: &Condition) -> bool {
    let conditions = &worker.status.conditions;
    is_recorded(conditions, condition)
        || condition.status == ConditionStatus::True && !is_denied(conditions, condition.condition_type)
}

/// Whether a user has updated machines since the last operation: a machine is selected, or no old machine is left
/// although the last operation left some. Unlike the Go extension, which reacts to changes of the machine's condition,
/// this also finds updates made while the controller was down.
fn is_update_due(worker: &Worker, live: &MachineObjects) -> bool {
    let by_hand: Vec<&MachineDeployment> =
        live.deployments.values().map(|live| &live.object).filter(|deployment| is_manual_update(deployment)).collect();
    if by_hand.is_empty() {
        return false;
    }
    let old_sets = old_sets(&by_hand, live);
    if is_recorded_unselected(&worker.status.conditions) && old_sets.iter().all(|set| set.replicas == 0) {
        return true;
    }
    let is_old = |machine: &LiveMachine| old_sets.iter().any(|set| machine.member.is_owned_by(&set.member.name));
    live.machines.iter().any(|machine| machine.is_selected && is_old(machine))
}

/// Whether a Worker has pools with manual in-place updates.
fn has_manual_pools(worker: &Worker) -> bool {
    let mut pools = worker.spec.pools.iter();
    pools.any(|pool| pool.update_strategy == Some(UpdateStrategy::ManualInPlaceUpdate))
}

fn is_manual_update(deployment: &MachineDeployment) -> bool {
    deployment.spec.strategy.as_ref().is_some_and(|strategy| strategy.is_manual_in_place())
}

/// Machine sets of earlier classes of their deployments.
fn old_sets<'a>(by_hand: &[&MachineDeployment], live: &'a MachineObjects) -> Vec<&'a LiveMachineSet> {
    let is_old = |deployment: &MachineDeployment, class: &str| deployment.spec.template.spec.class.name != class;
    let sets = live.machine_sets.iter().filter(|set| {
        let owns = |deployment: &&&MachineDeployment| {
            deployment.metadata.name.as_deref().is_some_and(|name| set.member.is_owned_by(name))
        };
        by_hand.iter().find(owns).is_some_and(|deployment| is_old(deployment, &set.member.class))
    });
    sets.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::worker::status::status_text::TextSize;

    fn worker(conditions: &Value) -> Worker {
        let worker = json!({"spec": {"type": "azure"}, "status": {"conditions": conditions}});
        serde_json::from_str(&worker.to_string()).unwrap()
    }

    fn evaluated(conditions: &Value, deployments: Result<&BTreeMap<String, LiveDeployment>, &str>) -> SteadyFinding {
        evaluate_steady(
            &worker(conditions),
            deployments,
            None,
            CachedNodes::NotCounted,
            false,
            HealthCheck::OfWriter,
            Timestamp::UNIX_EPOCH,
        )
    }

    /// Conditions of a Worker that this controller has operated, with the given `EveryNodeReady`.
    fn recorded(status: &str, message: &str) -> Value {
        json!([
            {"type": "PoolsReady", "status": "True", "reason": "AllPoolsReady", "message": ""},
            {"type": "EveryNodeReady", "status": status, "reason": "R", "message": message},
        ])
    }

    fn written(finding: SteadyFinding) -> Option<Value> {
        let (SteadyFinding::Current(report) | SteadyFinding::Unready(report, _)) = finding else { panic!("an update") };
        let patch = report.patch(TextSize::Full)?;
        Some(patch["status"]["conditions"][1]["status"].clone())
    }

    #[test]
    fn keeps_condition_of_live_health_check() {
        let none = BTreeMap::new();
        for status in ["True", "False"] {
            assert_eq!(written(evaluated(&recorded(status, "theirs"), Ok(&none))), None, "{status}");
        }
        assert_eq!(written(evaluated(&recorded("False", "theirs"), Err("unreadable"))), None, "they have seen it");
        let finding = evaluated(&recorded("True", "theirs"), Err("unreadable"));
        assert!(matches!(finding, SteadyFinding::Unready(_, OTHER_CHECK_TIMEOUT)), "{finding:?}");
        assert_eq!(written(finding), Some("Unknown".into()));
        let theirs = worker(&recorded("False", "theirs"));
        let nodes = CachedNodes::NotCounted;
        let ours = evaluate_steady(&theirs, Ok(&none), None, nodes, false, HealthCheck::Ours, Timestamp::UNIX_EPOCH);
        assert_eq!(written(ours), Some("True".into()));
    }

    #[test]
    fn considers_node_count() {
        let document = json!({
            "metadata": {"name": "a-z1"}, "spec": {"replicas": 2},
            "status": {"replicas": 2, "updatedReplicas": 2, "conditions": [{"type": "Available", "status": "True"}]},
        });
        let deployments = [("a-z1".to_owned(), LiveDeployment::read_without_codes(document).unwrap())].into();
        let machines = LiveMachines { staying: 2, deleting: 0 };
        let counted = |ready| CachedNodes::Counted(Ok(NodeCount { registered: ready, ready }), machines);
        let next_status = |status: &str, nodes, is_hibernated| {
            let worker = worker(&recorded(status, "Not enough ready"));
            let now = Timestamp::UNIX_EPOCH;
            written(evaluate_steady(&worker, Ok(&deployments), None, nodes, is_hibernated, HealthCheck::Ours, now))
        };
        assert_eq!(next_status("True", counted(1), false), Some("Progressing".into()));
        assert_eq!(next_status("False", counted(1), false), Some("False".into()), "it has failed, and still does");
        assert_eq!(next_status("False", counted(2), false), Some("True".into()));
        assert_eq!(next_status("False", CachedNodes::Awaited, false), None, "nobody knows yet");
        assert_eq!(next_status("False", CachedNodes::NotCounted, false), Some("True".into()));
        assert_eq!(next_status("True", CachedNodes::Counted(Err("silence"), machines), false), Some("Unknown".into()));
        assert_eq!(next_status("False", counted(1), true), Some("True".into()), "a hibernated shoot has no nodes");
        assert_eq!(next_status("False", CachedNodes::Awaited, true), Some("True".into()), "nobody counts them");
        let silence = CachedNodes::Counted(Err("silence"), machines);
        assert_eq!(next_status("False", silence, true), Some("True".into()), "nor has it an API server");
    }

    #[test]
    fn ignores_message_of_true_condition() {
        let none = BTreeMap::new();
        let ours = "Machine \"m\" failed: no room";
        assert_eq!(written(evaluated(&recorded("False", ours), Ok(&none))), Some("True".into()));
        assert_eq!(written(evaluated(&recorded("True", "The shoot is hibernated."), Ok(&none))), None);
        let finding = evaluated(&recorded("True", "The shoot is hibernated."), Err("unreadable"));
        assert!(matches!(finding, SteadyFinding::Unready(_, UNREADY_DELAY)), "{finding:?}");
    }

    #[test]
    fn does_not_write_taken_over_worker() {
        let left_behind = json!([{"type": "ControlPlaneHealthy", "status": "True"}]);
        for deployments in [Ok(&BTreeMap::new()), Err("unreadable")] {
            let SteadyFinding::Current(report) = evaluated(&left_behind, deployments) else {
                panic!("nothing is asked")
            };
            assert_eq!(report.patch(TextSize::Full), None);
        }
    }

    #[test]
    fn reports_recorded_fault_once() {
        let recorded = |message: &str| {
            json!([
                {"type": "PoolsReady", "status": "True", "reason": "AllPoolsReady", "message": ""},
                {"type": "EveryNodeReady", "status": "Unknown", "reason": "ConditionCheckError", "message": message},
            ])
        };
        let same = evaluated(&recorded("The health check can't be made: unreadable"), Err("unreadable"));
        assert_eq!(same, SteadyFinding::Current(StatusReport::default()));
        let other = evaluated(&recorded("The health check can't be made: no answer"), Err("unreadable"));
        assert!(matches!(other, SteadyFinding::Unready(_, UNREADY_DELAY)), "{other:?}");
    }

    #[test]
    fn computes_steady_inputs() {
        let queries = |state: &str, generation: i64, strategy: &str, reasons: &[&str]| {
            let of_pools = |reason: &&str| json!({"type": "PoolsReady", "status": "True", "reason": reason});
            let conditions: Vec<Value> = reasons.iter().map(of_pools).collect();
            let last = json!({"type": "Reconcile", "state": state, "description": "", "progress": 100});
            let document = json!({
                "metadata": {"generation": generation},
                "spec": {"pools": [{"name": "a", "updateStrategy": strategy}]},
                "status": {"observedGeneration": 2, "lastOperation": last, "conditions": conditions},
            });
            SteadyInputs::of(&serde_json::from_str(&document.to_string()).unwrap())
        };
        let rolling = "AutoRollingUpdate";
        let plain = SteadyInputs {
            is_followed: true,
            has_new_specification: false,
            has_manual_pools: false,
            is_hibernated: None,
        };
        assert_eq!(queries("Succeeded", 2, rolling, &[]), plain);
        let changed = SteadyInputs { has_new_specification: true, ..plain };
        assert_eq!(queries("Succeeded", 3, rolling, &[]), changed, "its specification is another one");
        let failed = SteadyInputs { is_followed: false, ..plain };
        assert_eq!(queries("Error", 3, rolling, &[]), failed, "it goes on by itself");
        let by_hand = SteadyInputs { has_manual_pools: true, ..plain };
        assert_eq!(queries("Succeeded", 2, "ManualInPlaceUpdate", &[]), by_hand);
        assert_eq!(queries("Succeeded", 2, "AutoInPlaceUpdate", &[]), plain, "no person selects machines");
        for (reason, is_hibernated) in [("Hibernated", true), ("AllPoolsReady", false)] {
            let recorded = SteadyInputs { is_hibernated: Some(is_hibernated), ..plain };
            assert_eq!(queries("Succeeded", 2, rolling, &[reason]), recorded, "{reason}");
        }
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
    fn selected_machine_starts_operation() {
        let steady = by_hand("MachinesToSelect");
        assert!(has_manual_pools(&steady));
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
