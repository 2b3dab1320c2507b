//! Pure step: the conditions of a Worker, one for each fact that a person asks about.
//!
//! * `PoolsDeployed`, `ImageResolved`, `PoolsReady`: what the last look at the pools has found;
//! * `EveryNodeReady`: what gardenlet reads into the Shoot's condition of that name (spec/gardener-core.md section 5.7).
//!
//! Conditions that others wrote stay as they are; `ControlPlaneHealthy`, which older extensions left behind, goes. A
//! condition is written only when it says something else than before.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::live::Live;
use super::plan::Plan;
use super::progress::{Phase, Progress, is_healthy};
use crate::api::gardener::ErrorCode;
use crate::api::machine::MachineDeployment;
use crate::provider::PoolProblem;

/// What a condition is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConditionType {
    /// Machine objects of every pool are as wanted.
    PoolsDeployed,
    /// Every pool has an image.
    ImageResolved,
    /// Machines of every pool run as wanted.
    PoolsReady,
    /// The machine deployments there are have no faults.
    EveryNodeReady,
}

impl ConditionType {
    fn as_str(self) -> &'static str {
        match self {
            Self::PoolsDeployed => "PoolsDeployed",
            Self::ImageResolved => "ImageResolved",
            Self::PoolsReady => "PoolsReady",
            Self::EveryNodeReady => "EveryNodeReady",
        }
    }
}

/// A condition without its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// What it is about.
    pub condition: ConditionType,
    /// Whether it is so.
    pub holds: bool,
    /// Short reason.
    pub reason: &'static str,
    /// Text for people.
    pub message: String,
    /// Gardener error codes.
    pub codes: BTreeSet<ErrorCode>,
}

impl Fact {
    fn holds(condition: ConditionType, reason: &'static str, message: impl Into<String>) -> Self {
        Self { condition, holds: true, reason, message: message.into(), codes: BTreeSet::new() }
    }

    fn fails(condition: ConditionType, reason: &'static str, message: impl Into<String>) -> Self {
        Self { condition, holds: false, reason, message: message.into(), codes: BTreeSet::new() }
    }
}

/// What a look at the pools has found. `write_errors` are writes that failed, as texts.
#[must_use]
pub fn facts_of_pools(plan: &Plan, write_errors: &[String], progress: &Progress) -> [Fact; 3] {
    let number = plan.pools.len();
    let errors: Vec<String> = plan.unplanned().map(ToString::to_string).chain(write_errors.iter().cloned()).collect();
    let codes = plan.errors().filter_map(|error| error.problem.code()).collect();
    let deployed = if errors.is_empty() {
        Fact::holds(ConditionType::PoolsDeployed, "AllPoolsDeployed", format!("All {number} pools are deployed."))
    } else {
        Fact { codes, ..Fact::fails(ConditionType::PoolsDeployed, "PoolsNotDeployed", errors.join("; ")) }
    };
    let without_image: Vec<String> =
        plan.errors().filter(|error| is_about_image(&error.problem)).map(ToString::to_string).collect();
    let resolved = if without_image.is_empty() {
        Fact::holds(ConditionType::ImageResolved, "AllImagesResolved", format!("All {number} pools have an image."))
    } else {
        let fact = Fact::fails(ConditionType::ImageResolved, "ImageNotResolved", without_image.join("; "));
        Fact { codes: [ErrorCode::ConfigurationProblem].into(), ..fact }
    };
    [deployed, resolved, pools_ready(plan, progress)]
}

fn pools_ready(plan: &Plan, progress: &Progress) -> Fact {
    let of_type = ConditionType::PoolsReady;
    let failed: BTreeSet<&str> = plan
        .errors()
        .map(|error| error.pool.as_str())
        .chain(progress.failed_machines().map(|(deployment, _)| deployment.pool.as_str()))
        .collect();
    if !failed.is_empty() {
        let names: Vec<&str> = failed.into_iter().collect();
        return Fact::fails(of_type, "PoolsFailed", format!("Pools that failed: {}.", names.join(", ")));
    }
    let awaiting = plan.awaited().map(|error| error.pool.as_str());
    let waiting: Vec<&str> = awaiting.chain(progress.pending_pools()).collect();
    if !waiting.is_empty() || !progress.is_ready() {
        let waiting = waiting.join(", ");
        return Fact::fails(of_type, "WaitingForMachines", format!("Pools that wait for machines: {waiting}."));
    }
    let (reason, text) = match progress.hibernated {
        true => ("Hibernated", "sleep"),
        false => ("AllPoolsReady", "are ready"),
    };
    Fact::holds(of_type, reason, format!("All {} pools {text}.", plan.pools.len()))
}

fn is_about_image(problem: &PoolProblem) -> bool {
    matches!(
        problem,
        PoolProblem::ImageUnresolved { .. }
            | PoolProblem::ImageWithoutReference { .. }
            | PoolProblem::ImageWithoutArchitecture { .. }
    )
}

/// Whether the machine deployments there are have faults, as gardenlet wants to know it all the time. `codes_of` finds the
/// codes of a machine's failure.
#[must_use]
pub fn every_node_ready(
    deployments: &BTreeMap<String, Live<MachineDeployment>>,
    hibernated: bool,
    codes_of: impl Fn(Option<&str>, &str) -> BTreeSet<ErrorCode>,
) -> Fact {
    const OK: &str = "HealthCheckSuccessful";
    const FAULT: &str = "HealthCheckUnsuccessful";
    let of_type = ConditionType::EveryNodeReady;
    if hibernated {
        return Fact::holds(of_type, OK, "Shoot is hibernated");
    }
    for deployment in deployments.values() {
        if let Some(machine) = deployment.object.status.failed_machines.first() {
            let operation = &machine.last_operation;
            let message = format!("machine {:?} failed: {}", machine.name, operation.description);
            let codes = codes_of(operation.error_code.as_deref(), &operation.description);
            return Fact { codes, ..Fact::fails(of_type, FAULT, message) };
        }
    }
    for (name, Live { object, .. }) in deployments {
        let (seen, generation) = (object.status.observed_generation, object.metadata.generation.unwrap_or_default());
        if seen < generation {
            let message = format!("machine deployment {name:?}: generation {generation} has not been observed yet");
            return Fact::fails(of_type, FAULT, message);
        }
        let waits_for_person = object.spec.strategy.as_ref().is_some_and(|strategy| strategy.is_manual_in_place())
            && object.status.updated_replicas != object.status.replicas;
        if !is_healthy(object, waits_for_person) {
            let told = object.status.conditions.iter().find(|condition| !condition.message.is_empty());
            let why = told.map_or_else(String::new, |condition| format!(": {}", condition.message));
            return Fact::fails(of_type, FAULT, format!("machine deployment {name:?} is not healthy{why}"));
        }
    }
    Fact::holds(of_type, OK, "All machine deployments are healthy.")
}

/// `status.conditions` with these facts; `None` when it says them already. `now` as Kubernetes writes times.
#[must_use]
pub fn conditions_with(present: &[Value], facts: &[Fact], now: &str) -> Option<Value> {
    const LEFT_BEHIND: &str = "ControlPlaneHealthy";
    let type_of = |condition: &Value| condition["type"].as_str().unwrap_or_default().to_owned();
    let mut wanted: Vec<Value> =
        present.iter().filter(|condition| type_of(condition) != LEFT_BEHIND).cloned().collect();
    for fact in facts {
        let before = wanted.iter_mut().find(|condition| condition["type"] == fact.condition.as_str());
        let document = document(fact, before.as_deref(), now);
        match before {
            Some(before) if says(before, fact) => {}
            Some(before) => *before = document,
            None => wanted.push(document),
        }
    }
    if wanted == present { None } else { Some(Value::Array(wanted)) }
}

fn status(fact: &Fact) -> &'static str {
    if fact.holds { "True" } else { "False" }
}

fn says(condition: &Value, fact: &Fact) -> bool {
    let codes = condition["codes"].as_array().map(Vec::as_slice).unwrap_or_default();
    condition["status"] == status(fact)
        && condition["reason"] == fact.reason
        && condition["message"] == fact.message.as_str()
        && codes.iter().map(|code| code.as_str().unwrap_or_default()).eq(fact.codes.iter().map(|code| code.as_str()))
}

fn document(fact: &Fact, before: Option<&Value>, now: &str) -> Value {
    // The time of the transition is that of the status; another reason or text is an update.
    let since = before.filter(|before| before["status"] == status(fact));
    let since = since.and_then(|before| before["lastTransitionTime"].as_str()).unwrap_or(now);
    let mut document = json!({
        "type": fact.condition.as_str(),
        "status": status(fact),
        "reason": fact.reason,
        "message": fact.message,
        "lastTransitionTime": since,
        "lastUpdateTime": now,
    });
    if !fact.codes.is_empty() {
        document["codes"] = json!(fact.codes.iter().map(|code| code.as_str()).collect::<Vec<_>>());
    }
    document
}

/// How each pool stands. `codes_of` finds the codes of a machine's failure.
#[must_use]
pub fn pool_states(
    plan: &Plan,
    progress: &Progress,
    codes_of: impl Fn(Option<&str>, &str) -> BTreeSet<ErrorCode>,
) -> BTreeMap<String, PoolState> {
    let mut states: BTreeMap<String, PoolState> = BTreeMap::new();
    for error in plan.errors() {
        let codes = error.problem.code().into_iter().collect();
        states.insert(error.pool.clone(), PoolState::Failed { message: error.to_string(), codes });
    }
    for error in plan.awaited() {
        states.insert(error.pool.clone(), PoolState::Waiting);
    }
    for deployment in &progress.deployments {
        let state = states.entry(deployment.pool.clone()).or_insert(PoolState::Ready);
        match &deployment.phase {
            Phase::Failed(machines) if !matches!(state, PoolState::Failed { .. }) => {
                if let Some(machine) = machines.first() {
                    let message = format!("machine {}: {}", machine.machine, machine.description);
                    let codes = codes_of(machine.error_code.as_deref(), &machine.description);
                    *state = PoolState::Failed { message, codes };
                }
            }
            Phase::Ready | Phase::Failed(_) => {}
            _ if *state == PoolState::Ready => *state = PoolState::Waiting,
            _ => {}
        }
    }
    states
}

/// How a pool stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolState {
    /// All machines run as wanted.
    Ready,
    /// Machines are on their way.
    Waiting,
    /// It can't be planned, or machines can't be made.
    Failed {
        /// Text for people.
        message: String,
        /// Gardener error codes.
        codes: BTreeSet<ErrorCode>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-11-21T10:00:00Z";
    const BEFORE: &str = "2026-11-20T10:00:00Z";

    fn deployment(change: impl FnOnce(&mut Value)) -> BTreeMap<String, Live<MachineDeployment>> {
        let mut document = json!({
            "metadata": {"name": "a-z1", "generation": 2},
            "spec": {"replicas": 1},
            "status": {
                "observedGeneration": 2, "replicas": 1, "updatedReplicas": 1,
                "conditions": [{"type": "Available", "status": "True"}],
            },
        });
        change(&mut document);
        [("a-z1".to_owned(), Live::read(document).unwrap())].into()
    }

    fn ready(deployments: &BTreeMap<String, Live<MachineDeployment>>, hibernated: bool) -> Fact {
        every_node_ready(deployments, hibernated, |_, _| [ErrorCode::InfraQuotaExceeded].into())
    }

    #[test]
    fn nodes_are_ready_when_no_deployment_has_a_fault() {
        assert!(ready(&deployment(|_| {}), false).holds);
        assert!(ready(&BTreeMap::new(), false).holds);
        for change in [
            |document: &mut Value| document["metadata"]["generation"] = json!(3),
            |document: &mut Value| document["status"]["conditions"] = json!([]),
            |document: &mut Value| document["status"]["conditions"][0]["status"] = json!("False"),
        ] {
            let deployments = deployment(change);
            let fact = ready(&deployments, false);
            assert!(!fact.holds && fact.reason == "HealthCheckUnsuccessful", "{fact:?}");
            assert_eq!(ready(&deployments, true).message, "Shoot is hibernated");
        }
        let failed = json!([{"name": "m1", "lastOperation": {"description": "no quota"}}]);
        let fact = ready(&deployment(|document| document["status"]["failedMachines"] = failed), false);
        assert_eq!((fact.message.as_str(), fact.codes.len()), ("machine \"m1\" failed: no quota", 1));
    }

    #[test]
    fn what_is_said_already_is_not_said_again() {
        let fact = Fact::holds(ConditionType::EveryNodeReady, "HealthCheckSuccessful", "well");
        let foreign = json!({"type": "Foreign", "status": "True", "unknown": 1});
        let left_behind = json!({"type": "ControlPlaneHealthy", "status": "True"});
        let first = conditions_with(&[foreign.clone(), left_behind], std::slice::from_ref(&fact), BEFORE).unwrap();
        assert_eq!(first[0], foreign, "what others say stays");
        assert_eq!(first.as_array().unwrap().len(), 2, "what older extensions left behind goes");
        let present = first.as_array().unwrap();
        assert_eq!(conditions_with(present, std::slice::from_ref(&fact), NOW), None);

        let reworded = Fact { message: "very well".to_owned(), ..fact.clone() };
        let second = conditions_with(present, &[reworded], NOW).unwrap();
        assert_eq!((&second[1]["lastTransitionTime"], &second[1]["lastUpdateTime"]), (&json!(BEFORE), &json!(NOW)));
        let turned = Fact::fails(ConditionType::EveryNodeReady, "HealthCheckUnsuccessful", "badly");
        let third = conditions_with(present, &[turned], NOW).unwrap();
        assert_eq!(third[1]["lastTransitionTime"], NOW);
    }
}
