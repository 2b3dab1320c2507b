//! Pure step: the conditions of a Worker, one for each fact that a person asks about.
//!
//! * `PoolsDeployed`, `ImageResolved`, `PoolsReady`: what the last pass over the pools has found;
//! * `EveryNodeReady`: what gardenlet reads into the Shoot's condition of that name (spec/gardener-core.md section 5.7),
//!   at any time, also between operations.
//!
//! Conditions that others wrote stay as they are; `ControlPlaneHealthy`, which older extensions left behind, goes. A
//! condition is written only when it says something else than before.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::live::Live;
use super::plan::Plan;
use super::progress::{Progress, fault};
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
    pub holds: Holds,
    /// Short reason.
    pub reason: &'static str,
    /// Text for people.
    pub message: String,
    /// Gardener error codes.
    pub codes: BTreeSet<ErrorCode>,
}

/// Whether something is so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// It is.
    True,
    /// It is not.
    False,
    /// Nobody knows.
    Unknown,
}

impl Fact {
    fn holds(condition: ConditionType, reason: &'static str, message: impl Into<String>) -> Self {
        Self { condition, holds: Holds::True, reason, message: message.into(), codes: BTreeSet::new() }
    }

    fn fails(condition: ConditionType, reason: &'static str, message: impl Into<String>) -> Self {
        Self { condition, holds: Holds::False, reason, message: message.into(), codes: BTreeSet::new() }
    }
}

/// What a look at the pools has found. `write_errors` are writes that failed, as texts; `codes_of` finds the codes of a
/// machine's failure.
#[must_use]
pub fn facts_of_pools(
    plan: &Plan,
    write_errors: &[String],
    progress: &Progress,
    codes_of: impl Fn(Option<&str>, &str) -> BTreeSet<ErrorCode>,
) -> [Fact; 3] {
    let number = plan.pools.len();
    let errors: Vec<String> = plan.unplanned().map(ToString::to_string).chain(write_errors.iter().cloned()).collect();
    let codes = plan.errors().filter_map(|error| error.problem.code()).collect();
    let deployed = if errors.is_empty() {
        Fact::holds(ConditionType::PoolsDeployed, "AllPoolsDeployed", format!("All {number} pools are deployed."))
    } else {
        Fact { codes, ..Fact::fails(ConditionType::PoolsDeployed, "PoolsNotDeployed", errors.join("; ")) }
    };
    [deployed, image_resolved(plan), pools_ready(plan, progress, codes_of)]
}

/// Nothing could be planned for any pool, so what is there stays as it is.
#[must_use]
pub fn nothing_deployed(why: &str, codes: BTreeSet<ErrorCode>) -> Fact {
    Fact { codes, ..Fact::fails(ConditionType::PoolsDeployed, "NothingDeployed", why) }
}

/// Whether every pool has an image; of a pool that fails for another reason nobody knows.
fn image_resolved(plan: &Plan) -> Fact {
    let of_type = ConditionType::ImageResolved;
    let is_about_image = |problem: &PoolProblem| {
        matches!(
            problem,
            PoolProblem::ImageUnresolved { .. }
                | PoolProblem::ImageWithoutReference { .. }
                | PoolProblem::ImageWithoutArchitecture { .. }
        )
    };
    let (without, unknown): (Vec<_>, Vec<_>) = plan.unplanned().partition(|error| is_about_image(&error.problem));
    if !without.is_empty() {
        let texts: Vec<String> = without.into_iter().map(ToString::to_string).collect();
        let fact = Fact::fails(of_type, "ImageNotResolved", texts.join("; "));
        return Fact { codes: [ErrorCode::ConfigurationProblem].into(), ..fact };
    }
    if !unknown.is_empty() {
        let pools: Vec<&str> = unknown.into_iter().map(|error| error.pool.as_str()).collect();
        let message = format!("Pools that are not planned for another reason: {}", pools.join(", "));
        return Fact { holds: Holds::Unknown, ..Fact::fails(of_type, "NotAllPoolsPlanned", message) };
    }
    Fact::holds(of_type, "AllImagesResolved", format!("All {} pools have an image.", plan.pools.len()))
}

fn pools_ready(plan: &Plan, progress: &Progress, codes_of: impl Fn(Option<&str>, &str) -> BTreeSet<ErrorCode>) -> Fact {
    let of_type = ConditionType::PoolsReady;
    let standing = Standing::of(plan, progress);
    let reason = match &standing {
        Standing { failed, not_deployed, .. } if !(failed.is_empty() && not_deployed.is_empty()) => "PoolsFailed",
        Standing { pending, .. } if !pending.is_empty() => "WaitingForMachines",
        _ => {
            let unselected = progress.unselected_pools();
            let (reason, message) = match progress.hibernated {
                true => (HIBERNATED, format!("All {} pools sleep.", plan.pools.len())),
                false if unselected.is_empty() => {
                    ("AllPoolsReady", format!("All {} pools are ready.", plan.pools.len()))
                }
                false => (
                    UNSELECTED,
                    format!(
                        "Old machines wait for a person to select them for their update: {}",
                        unselected.join(", ")
                    ),
                ),
            };
            return Fact::holds(of_type, reason, message);
        }
    };
    let of_plan = plan.errors().filter_map(|error| error.problem.code());
    let machines = progress.failed().flat_map(|(_, machines)| machines);
    let of_machines = machines.flat_map(|machine| codes_of(machine.error_code.as_deref(), &machine.description));
    Fact { codes: of_plan.chain(of_machines).collect(), ..Fact::fails(of_type, reason, standing.text()) }
}

/// Reason of `PoolsReady` while the shoot sleeps.
const HIBERNATED: &str = "Hibernated";
/// Reason of `PoolsReady` while old machines wait for a person.
const UNSELECTED: &str = "MachinesToSelect";

/// Whether the last pass left the shoot asleep, as its condition says; `None` when nobody has written one.
#[must_use]
pub fn is_recorded_hibernated(present: &[Value]) -> Option<bool> {
    reason_of_pools_ready(present).map(|reason| reason == HIBERNATED)
}

/// Whether the last pass left old machines that a person has to select, as its condition says.
#[must_use]
pub fn is_recorded_unselected(present: &[Value]) -> bool {
    reason_of_pools_ready(present) == Some(UNSELECTED)
}

/// Since when all pools have been ready, as the condition says.
#[must_use]
pub fn pools_ready_since(present: &[Value]) -> Option<Timestamp> {
    let condition = pools_ready_of(present).filter(|condition| condition["status"] == "True")?;
    condition["lastTransitionTime"].as_str()?.parse().ok()
}

fn reason_of_pools_ready(present: &[Value]) -> Option<&str> {
    pools_ready_of(present)?["reason"].as_str()
}

fn pools_ready_of(present: &[Value]) -> Option<&Value> {
    present.iter().find(|condition| condition["type"] == ConditionType::PoolsReady.as_str())
}

/// Pools that are not ready, by what is the matter with them. It is written into the message of `PoolsReady` and read from
/// there, so that a transition is known after a restart too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Machines could not be made.
    pub failed: BTreeSet<String>,
    /// They could not be planned.
    pub not_deployed: BTreeSet<String>,
    /// Machines are on their way.
    pub pending: BTreeSet<String>,
}

impl Standing {
    /// How the pools stand now.
    #[must_use]
    pub fn of(plan: &Plan, progress: &Progress) -> Self {
        let owned = |pools: &mut dyn Iterator<Item = &str>| pools.map(str::to_owned).collect::<BTreeSet<String>>();
        let failed = owned(&mut progress.failed().map(|(deployment, _)| deployment.pool.as_str()));
        let awaited = plan.awaited().map(|error| error.pool.as_str());
        let mut pending = owned(&mut progress.pending_pools().into_iter().chain(awaited));
        pending.retain(|pool| !failed.contains(pool));
        Self { not_deployed: owned(&mut plan.errors().map(|error| error.pool.as_str())), failed, pending }
    }

    /// How they stood when the conditions were written; `None` when nothing is known of that.
    #[must_use]
    pub fn recorded(present: &[Value]) -> Option<Self> {
        let condition = pools_ready_of(present)?;
        let mut standing = Self::default();
        if condition["status"] == "True" {
            return Some(standing);
        }
        for part in condition["message"].as_str()?.split("; ") {
            let (label, pools) = part.split_once(": ")?;
            let pools = pools.split(", ").map(str::to_owned).collect();
            match label {
                FAILED => standing.failed = pools,
                NOT_DEPLOYED => standing.not_deployed = pools,
                PENDING => standing.pending = pools,
                _ => return None,
            }
        }
        Some(standing)
    }

    /// Whether the pool is none of these.
    #[must_use]
    pub fn is_ready(&self, pool: &str) -> bool {
        ![&self.failed, &self.not_deployed, &self.pending].iter().any(|pools| pools.contains(pool))
    }

    fn text(&self) -> String {
        let parts = [(FAILED, &self.failed), (NOT_DEPLOYED, &self.not_deployed), (PENDING, &self.pending)];
        let parts = parts.into_iter().filter(|(_, pools)| !pools.is_empty()).map(|(label, pools)| {
            let pools: Vec<&str> = pools.iter().map(String::as_str).collect();
            format!("{label}: {}", pools.join(", "))
        });
        parts.collect::<Vec<_>>().join("; ")
    }
}

const FAILED: &str = "Machines failed";
const NOT_DEPLOYED: &str = "Not deployed";
const PENDING: &str = "Waiting for machines";

const HEALTHY: &str = "HealthCheckSuccessful";
const UNHEALTHY: &str = "HealthCheckUnsuccessful";
const UNKNOWN: &str = "ConditionCheckError";

/// Whether the machine deployments there are have faults, as gardenlet wants to know it all the time. `codes_of` finds the
/// codes of a machine's failure.
#[must_use]
pub fn every_node_ready(
    deployments: &BTreeMap<String, Live<MachineDeployment>>,
    hibernated: bool,
    codes_of: impl Fn(Option<&str>, &str) -> BTreeSet<ErrorCode>,
) -> Fact {
    let of_type = ConditionType::EveryNodeReady;
    if hibernated {
        return Fact::holds(of_type, HEALTHY, "Shoot is hibernated");
    }
    let mut failed = deployments.values().flat_map(|deployment| &deployment.object.status.failed_machines);
    if let Some(machine) = failed.next() {
        let operation = &machine.last_operation;
        let message = format!("machine {:?} failed: {}", machine.name, operation.description);
        let codes = codes_of(operation.error_code.as_deref(), &operation.description);
        return Fact { codes, ..Fact::fails(of_type, UNHEALTHY, message) };
    }
    let mut faults = deployments.iter().filter_map(|(name, deployment)| Some((name, fault(&deployment.object)?)));
    match faults.next() {
        None => Fact::holds(of_type, HEALTHY, "All machine deployments are healthy."),
        Some((name, fault)) => {
            Fact::fails(of_type, UNHEALTHY, format!("machine deployment {name:?} is unhealthy: {fault}"))
        }
    }
}

/// Nobody knows whether machine deployments have faults.
#[must_use]
pub fn every_node_unknown(why: &str) -> Fact {
    let fact = Fact::fails(ConditionType::EveryNodeReady, UNKNOWN, format!("The health check can't be made: {why}"));
    Fact { holds: Holds::Unknown, ..fact }
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
    match fact.holds {
        Holds::True => "True",
        Holds::False => "False",
        Holds::Unknown => "Unknown",
    }
}

/// Whether the conditions say the fact already.
#[must_use]
pub fn is_written(present: &[Value], fact: &Fact) -> bool {
    let of_type = present.iter().find(|condition| condition["type"] == fact.condition.as_str());
    of_type.is_some_and(|condition| says(condition, fact))
}

/// Whether the conditions say that it is so, in whatever words.
#[must_use]
pub fn is_said_to_hold(present: &[Value], condition: ConditionType) -> bool {
    present.iter().any(|said| said["type"] == condition.as_str() && said["status"] == "True")
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
        assert_eq!(ready(&deployment(|_| {}), false).holds, Holds::True);
        assert_eq!(ready(&BTreeMap::new(), false).holds, Holds::True);
        for change in [
            |document: &mut Value| document["metadata"]["generation"] = json!(3),
            |document: &mut Value| document["status"]["conditions"] = json!([]),
            |document: &mut Value| document["status"]["conditions"][0]["status"] = json!("False"),
        ] {
            let deployments = deployment(change);
            let fact = ready(&deployments, false);
            assert!(fact.holds == Holds::False && fact.reason == "HealthCheckUnsuccessful", "{fact:?}");
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

    #[test]
    fn how_pools_stand_is_read_from_what_was_written() {
        let pools = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<String>>();
        let standing = Standing { failed: pools(&["a"]), not_deployed: pools(&["b", "c"]), pending: pools(&["d"]) };
        let text = standing.text();
        assert_eq!(text, "Machines failed: a; Not deployed: b, c; Waiting for machines: d");
        let condition =
            |status: &str, message: &str| json!({"type": "PoolsReady", "status": status, "message": message});
        assert_eq!(Standing::recorded(&[condition("False", &text)]), Some(standing));
        assert_eq!(Standing::recorded(&[condition("True", "All 4 pools are ready.")]), Some(Standing::default()));
        assert_eq!(Standing::recorded(&[condition("False", "another program's words")]), None);
        assert_eq!(Standing::recorded(&[]), None);
    }

    #[test]
    fn a_check_that_cannot_be_made_is_unknown() {
        let written = conditions_with(&[], &[every_node_unknown("no answer")], NOW).unwrap();
        assert_eq!((&written[0]["status"], &written[0]["reason"]), (&json!("Unknown"), &json!("ConditionCheckError")));
    }
}
