//! Pure: what becomes of a Worker of which nothing is asked, from its status and its machine objects alone.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::api::gardener::Worker;
use crate::worker::conditions::{
    Condition, ConditionStatus, every_node_ready, every_node_unknown, is_denied, is_recorded, is_recorded_hibernated,
};
use crate::worker::in_place::{has_pools_by_hand, is_update_due};
use crate::worker::machine_objects::{LiveDeployment, MachineObjects};
use crate::worker::request::{Trigger, trigger};
use crate::worker::status::with_conditions;
use crate::worker::status_text::TextSize;

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
    Current(SteadyReport),
    /// Nodes are not ready, and the condition says otherwise: the report is written once that has lasted.
    Unready(SteadyReport),
}

/// What the status of a steady Worker has to say.
#[derive(Clone, Debug, PartialEq)]
pub struct SteadyReport {
    /// The condition, where the status does not say it.
    condition: Option<Condition>,
    /// When it was found out.
    found_at: Timestamp,
}

impl SteadyReport {
    /// Patch of the status with texts of that size; `None` where it says all of it.
    #[must_use]
    pub fn patch(&self, worker: &Worker, texts: TextSize) -> Option<Value> {
        with_conditions(worker, self.condition.as_slice(), self.found_at, texts, None)
    }
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
        return SteadyFinding::Current(SteadyReport { condition: None, found_at: now });
    }
    let is_ready = condition.status == ConditionStatus::True;
    let report = SteadyReport { condition: Some(condition), found_at: now };
    if is_ready { SteadyFinding::Current(report) } else { SteadyFinding::Unready(report) }
}

/// Whether the status says so. That all is well may be said in other words, or not at all: those of the Go extension, whose
/// health checks may still run, would change places with ours for ever, and a Worker that is taken over is not written before
/// something is asked or wrong.
fn is_reported(worker: &Worker, condition: &Condition) -> bool {
    let conditions = &worker.status.conditions;
    is_recorded(conditions, condition)
        || condition.status == ConditionStatus::True && !is_denied(conditions, condition.condition_type)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
        assert_eq!(report.patch(&worker(&theirs), TextSize::Full), None);
        let SteadyFinding::Unready(report) = judged(&theirs, Err("unreadable")) else { panic!("it is not true") };
        let patch = report.patch(&worker(&theirs), TextSize::Full).unwrap();
        assert_eq!(patch["status"]["conditions"][0]["status"], "Unknown");
    }

    #[test]
    fn nothing_is_written_while_all_is_well_and_nobody_says_otherwise() {
        let written = |conditions: &Value| {
            let SteadyFinding::Current(report) = judged(conditions, Ok(&BTreeMap::new())) else {
                panic!("all is well")
            };
            report.patch(&worker(conditions), TextSize::Full)
        };
        assert_eq!(written(&json!([])), None);
        let patch = written(&json!([{"type": "EveryNodeReady", "status": "Unknown"}])).unwrap();
        assert_eq!(patch["status"]["conditions"][0]["status"], "True");
    }
}
