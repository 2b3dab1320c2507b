//! Pure step: the conditions of a Worker, one for each fact that a person asks about.
//!
//! * `PoolsDeployed`, `ImageResolved`, `PoolsReady`: what the last reconcile has found of the pools;
//! * `EveryNodeReady`: what gardenlet reads into the Shoot's condition of that name (docs/contract.md),
//!   at any time, also between operations.
//!
//! Conditions that others wrote stay as they are; `ControlPlaneHealthy`, which older extensions left behind, goes. A
//! condition is written only when it says something else than before.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::bounded_text::{Bound, beginning, listed, named};
use crate::api::gardener::ErrorCode;
use crate::provider::PoolProblem;
use crate::worker::machine_objects::LiveDeployment;
use crate::worker::plan::Plan;
use crate::worker::progress::{LONGEST_DESCRIPTION, Progress, fault};
use crate::worker::status_text::{MOST_OF_FAILURE, TextSize, is_same_text};

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
pub struct Condition {
    /// What it is about.
    pub condition_type: ConditionType,
    /// Whether it is so.
    pub status: ConditionStatus,
    /// Short reason.
    pub reason: &'static str,
    /// Text for people.
    pub message: String,
    /// Gardener error codes.
    pub codes: BTreeSet<ErrorCode>,
}

/// Status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionStatus {
    /// The condition is met.
    True,
    /// It is not.
    False,
    /// It could not be determined.
    Unknown,
}

impl ConditionStatus {
    fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl Condition {
    fn met(condition_type: ConditionType, reason: &'static str, message: impl Into<String>) -> Self {
        Self { condition_type, status: ConditionStatus::True, reason, message: message.into(), codes: BTreeSet::new() }
    }

    fn unmet(condition_type: ConditionType, reason: &'static str, message: impl Into<String>) -> Self {
        Self { condition_type, status: ConditionStatus::False, reason, message: message.into(), codes: BTreeSet::new() }
    }

    /// The message in this size. That of `PoolsReady` is read again, so it keeps its form.
    fn text(&self, texts: TextSize) -> String {
        match self.readiness() {
            Some(readiness) => readiness.text(texts),
            None => texts.text(&self.message),
        }
    }

    /// Whether a recorded message is this one, in whatever size.
    fn is_same_message(&self, message: &str) -> bool {
        match self.readiness() {
            Some(readiness) => TextSize::ALL.into_iter().any(|texts| message == readiness.text(texts)),
            None => is_same_text(message, &self.message),
        }
    }

    fn readiness(&self) -> Option<PoolReadiness> {
        let is_of_pools = self.condition_type == ConditionType::PoolsReady && self.status == ConditionStatus::False;
        is_of_pools.then(|| PoolReadiness::read(&self.message)).flatten()
    }
}

/// The conditions of the pools. `write_errors` are writes that failed, as texts.
#[must_use]
pub fn pool_conditions(plan: &Plan, write_errors: &[String], progress: &Progress) -> [Condition; 3] {
    let number = plan.pools.len();
    let errors: Vec<String> = plan.unplanned().map(ToString::to_string).chain(write_errors.iter().cloned()).collect();
    let codes = plan.errors().filter_map(|error| error.problem.code()).collect();
    let deployed = if errors.is_empty() {
        Condition::met(ConditionType::PoolsDeployed, "AllPoolsDeployed", format!("All {number} pools are deployed."))
    } else {
        Condition {
            codes,
            ..Condition::unmet(ConditionType::PoolsDeployed, "PoolsNotDeployed", listed(&errors, MOST_OF_FAILURE))
        }
    };
    [deployed, image_resolved(plan), pools_ready(plan, progress)]
}

/// Nothing could be planned for any pool, so what is there stays as it is.
#[must_use]
pub fn nothing_deployed(why: &str, codes: BTreeSet<ErrorCode>) -> Condition {
    Condition { codes, ..Condition::unmet(ConditionType::PoolsDeployed, "NothingDeployed", why) }
}

/// Whether every pool has an image; of a pool that fails for another reason nobody knows.
fn image_resolved(plan: &Plan) -> Condition {
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
        let codes = [ErrorCode::ConfigurationProblem].into();
        let message = listed(&texts, MOST_OF_FAILURE);
        return Condition { codes, ..Condition::unmet(of_type, "ImageNotResolved", message) };
    }
    if !unknown.is_empty() {
        let pools: Vec<&str> = unknown.into_iter().map(|error| error.pool.as_str()).collect();
        let pools = named(&pools, Bound::bytes(MOST_OF_FAILURE));
        let message = format!("Pools that are not planned for another reason: {pools}");
        return Condition {
            status: ConditionStatus::Unknown,
            ..Condition::unmet(of_type, "NotAllPoolsPlanned", message)
        };
    }
    Condition::met(of_type, "AllImagesResolved", format!("All {} pools have an image.", plan.pools.len()))
}

fn pools_ready(plan: &Plan, progress: &Progress) -> Condition {
    let of_type = ConditionType::PoolsReady;
    let readiness = PoolReadiness::of(plan, progress);
    let reason = match &readiness {
        PoolReadiness { failed, not_deployed, .. } if !(failed.is_empty() && not_deployed.is_empty()) => "PoolsFailed",
        PoolReadiness { pending, .. } if !pending.is_empty() => "WaitingForMachines",
        _ => {
            let unselected = progress.unselected_pools();
            let (reason, message) = match progress.hibernated {
                true => (HIBERNATED, format!("All {} pools are hibernated.", plan.pools.len())),
                false if unselected.is_empty() => {
                    ("AllPoolsReady", format!("All {} pools are ready.", plan.pools.len()))
                }
                false => (
                    UNSELECTED,
                    format!(
                        "Old machines wait for a person to select them for their update: {}",
                        named(&unselected, Bound::bytes(MOST_OF_FAILURE))
                    ),
                ),
            };
            return Condition::met(of_type, reason, message);
        }
    };
    let of_plan = plan.errors().filter_map(|error| error.problem.code());
    let machines = progress.failed().flat_map(|(_, machines)| machines);
    let of_machines = machines.flat_map(|machine| machine.codes.iter().copied());
    Condition {
        codes: of_plan.chain(of_machines).collect(),
        ..Condition::unmet(of_type, reason, readiness.text(TextSize::Full))
    }
}

/// Reason of `PoolsReady` while the shoot is hibernated.
const HIBERNATED: &str = "Hibernated";
/// Reason of `PoolsReady` while old machines wait for a person.
const UNSELECTED: &str = "MachinesToSelect";

/// Whether the last reconcile left the shoot hibernated, as its condition says; `None` when nobody has written one.
#[must_use]
pub fn is_recorded_hibernated(present: &[Value]) -> Option<bool> {
    reason_of_pools_ready(present).map(|reason| reason == HIBERNATED)
}

/// Whether the last reconcile left old machines that a person has to select, as its condition says.
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
pub struct PoolReadiness {
    /// Machines could not be made.
    pub failed: PoolList,
    /// They could not be planned.
    pub not_deployed: PoolList,
    /// Machines are on their way.
    pub pending: PoolList,
}

/// Pools by their names, or by their number where they are too many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolList {
    names: BTreeSet<String>,
    unnamed: usize,
}

impl PoolList {
    fn of<'a>(pools: impl Iterator<Item = &'a str>) -> Self {
        Self { names: pools.map(name_in_list).collect(), unnamed: 0 }
    }

    /// Reads what [`PoolList::text`] has written.
    fn read(text: &str) -> Self {
        let counted = text.strip_suffix(" more").and_then(|text| text.rsplit_once(" and "));
        let counted = counted.and_then(|(names, count)| Some((names, count.parse().ok()?)));
        let (names, unnamed) = counted.unwrap_or((text, 0));
        let names = names.split(", ").filter(|name| !name.is_empty());
        Self { names: names.map(str::to_owned).collect(), unnamed }
    }

    fn text(&self, bytes: usize) -> String {
        let names: Vec<&String> = self.names.iter().collect();
        let text = named(&names, Bound::bytes(bytes.saturating_sub(REST_OF_POOLS)));
        match self.unnamed {
            0 => text,
            unnamed => {
                let told = Self::read(&text);
                let names: Vec<&String> = told.names.iter().collect();
                let all = Bound { items: usize::MAX, bytes: usize::MAX };
                format!("{} and {} more", named(&names, all), told.unnamed + unnamed)
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.names.is_empty() && self.unnamed == 0
    }

    /// Whether the pool is named.
    #[must_use]
    pub fn contains(&self, pool: &str) -> bool {
        self.names.contains(&name_in_list(pool))
    }
}

/// Room for the number of pools that are not named.
const REST_OF_POOLS: usize = 32;

/// A name as it stands in a list: what no Kubernetes object could be called would not be found again there.
fn name_in_list(pool: &str) -> String {
    let character = |one: char| if one.is_alphanumeric() || "-._".contains(one) { one } else { '_' };
    pool.chars().take(LONGEST_NAME).map(character).collect()
}

/// The longest name of a Kubernetes object.
const LONGEST_NAME: usize = 253;

impl PoolReadiness {
    /// How the pools stand now.
    #[must_use]
    pub fn of(plan: &Plan, progress: &Progress) -> Self {
        let failed = PoolList::of(progress.failed().map(|(deployment, _)| deployment.pool.as_str()));
        let awaited = plan.awaited().map(|error| error.pool.as_str());
        let mut pending = PoolList::of(progress.pending_pools().into_iter().chain(awaited));
        pending.names.retain(|pool| !failed.names.contains(pool));
        Self { not_deployed: PoolList::of(plan.errors().map(|error| error.pool.as_str())), failed, pending }
    }

    /// How they stood when the conditions were written; `None` when nothing is known of that.
    #[must_use]
    pub fn recorded(present: &[Value]) -> Option<Self> {
        let condition = pools_ready_of(present)?;
        if condition["status"] == "True" {
            return Some(Self::default());
        }
        Self::read(condition["message"].as_str()?)
    }

    fn read(message: &str) -> Option<Self> {
        let mut readiness = Self::default();
        for part in message.split("; ") {
            let (label, pools) = part.split_once(": ")?;
            let pools = PoolList::read(pools);
            match label {
                FAILED => readiness.failed = pools,
                NOT_DEPLOYED => readiness.not_deployed = pools,
                PENDING => readiness.pending = pools,
                _ => return None,
            }
        }
        Some(readiness)
    }

    /// Whether the pool is none of these.
    #[must_use]
    pub fn is_ready(&self, pool: &str) -> bool {
        !self.lists().iter().any(|(_, pools)| pools.contains(pool))
    }

    /// Whether it is known how the pool stands: it may be one of those that are only counted.
    #[must_use]
    pub fn is_known(&self, pool: &str) -> bool {
        !self.is_ready(pool) || self.lists().iter().all(|(_, pools)| pools.unnamed == 0)
    }

    fn lists(&self) -> [(&'static str, &PoolList); 3] {
        [(FAILED, &self.failed), (NOT_DEPLOYED, &self.not_deployed), (PENDING, &self.pending)]
    }

    fn text(&self, texts: TextSize) -> String {
        let parts = self.lists().into_iter().filter(|(_, pools)| !pools.is_empty());
        let parts = parts.map(|(label, pools)| format!("{label}: {}", pools.text(texts.of_pool_list())));
        parts.collect::<Vec<_>>().join("; ")
    }
}

const FAILED: &str = "Machines failed";
const NOT_DEPLOYED: &str = "Not deployed";
const PENDING: &str = "Waiting for machines";

const HEALTHY: &str = "HealthCheckSuccessful";
const UNHEALTHY: &str = "HealthCheckUnsuccessful";
const UNKNOWN: &str = "ConditionCheckError";

/// Whether the machine deployments there are have faults, as gardenlet wants to know it all the time.
#[must_use]
pub fn every_node_ready(deployments: &BTreeMap<String, LiveDeployment>, hibernated: bool) -> Condition {
    let of_type = ConditionType::EveryNodeReady;
    if hibernated {
        return Condition::met(of_type, HEALTHY, "Shoot is hibernated");
    }
    let mut failed = deployments.values().flat_map(|deployment| &deployment.failed_machines);
    if let Some(machine) = failed.next() {
        let description = beginning(&machine.description, LONGEST_DESCRIPTION);
        let message = format!("machine {:?} failed: {description}{}", machine.name, besides(failed.count()));
        return Condition { codes: machine.codes.clone(), ..Condition::unmet(of_type, UNHEALTHY, message) };
    }
    let mut faults = deployments.iter().filter_map(|(name, deployment)| Some((name, fault(&deployment.object)?)));
    match faults.next() {
        None => Condition::met(of_type, HEALTHY, "All machine deployments are healthy."),
        Some((name, fault)) => {
            let fault = beginning(&fault, LONGEST_DESCRIPTION);
            let message = format!("machine deployment {name:?} is unhealthy: {fault}{}", besides(faults.count()));
            Condition::unmet(of_type, UNHEALTHY, message)
        }
    }
}

/// How many there are besides the one that is told.
fn besides(count: usize) -> String {
    if count == 0 { String::new() } else { format!("; and {count} more") }
}

/// Nobody knows whether machine deployments have faults.
#[must_use]
pub fn every_node_unknown(why: &str) -> Condition {
    let condition =
        Condition::unmet(ConditionType::EveryNodeReady, UNKNOWN, format!("The health check can't be made: {why}"));
    Condition { status: ConditionStatus::Unknown, ..condition }
}

/// `status.conditions` with these conditions, in texts of that size; `None` when they are recorded already. `now` as Kubernetes
/// writes times.
#[must_use]
pub fn conditions_with(present: &[Value], conditions: &[Condition], now: &str, texts: TextSize) -> Option<Value> {
    const LEFT_BEHIND: &str = "ControlPlaneHealthy";
    let mut wanted: Vec<Value> = present.iter().filter(|recorded| recorded["type"] != LEFT_BEHIND).cloned().collect();
    for condition in conditions {
        let before = wanted.iter_mut().find(|recorded| condition.is_of_type(recorded));
        let document = condition.document(before.as_deref(), now, texts);
        match before {
            Some(before) if condition.is_same(before) => {}
            Some(before) => *before = document,
            None => wanted.push(document),
        }
    }
    if wanted == present { None } else { Some(Value::Array(wanted)) }
}

/// Whether the condition is recorded.
#[must_use]
pub fn is_recorded(present: &[Value], condition: &Condition) -> bool {
    present.iter().any(|recorded| condition.is_of_type(recorded) && condition.is_same(recorded))
}

/// Whether a condition of that type is recorded as anything but true.
#[must_use]
pub fn is_denied(present: &[Value], condition_type: ConditionType) -> bool {
    present.iter().any(|recorded| recorded["type"] == condition_type.as_str() && recorded["status"] != "True")
}

impl Condition {
    fn is_of_type(&self, recorded: &Value) -> bool {
        recorded["type"] == self.condition_type.as_str()
    }

    /// Whether a recorded condition of the same type has the same content.
    fn is_same(&self, recorded: &Value) -> bool {
        let codes = recorded["codes"].as_array().map(Vec::as_slice).unwrap_or_default();
        recorded["status"] == self.status.as_str()
            && recorded["reason"] == self.reason
            && recorded["message"].as_str().is_some_and(|message| self.is_same_message(message))
            && codes.iter().map(Value::as_str).eq(self.codes.iter().map(|code| Some(code.as_str())))
    }

    fn document(&self, before: Option<&Value>, now: &str, texts: TextSize) -> Value {
        // The time of the transition is that of the status; another reason or text is an update.
        let since = before.filter(|before| before["status"] == self.status.as_str());
        let since = since.and_then(|before| before["lastTransitionTime"].as_str()).unwrap_or(now);
        let mut document = json!({
            "type": self.condition_type.as_str(),
            "status": self.status.as_str(),
            "reason": self.reason,
            "message": self.text(texts),
            "lastTransitionTime": since,
            "lastUpdateTime": now,
        });
        if !self.codes.is_empty() {
            document["codes"] = json!(self.codes.iter().map(|code| code.as_str()).collect::<Vec<_>>());
        }
        document
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::azure::Azure;

    const NOW: &str = "2026-11-21T10:00:00Z";
    const BEFORE: &str = "2026-11-20T10:00:00Z";

    fn deployment(change: impl FnOnce(&mut Value)) -> BTreeMap<String, LiveDeployment> {
        let mut document = json!({
            "metadata": {"name": "a-z1", "generation": 2},
            "spec": {"replicas": 1},
            "status": {
                "observedGeneration": 2, "replicas": 1, "updatedReplicas": 1,
                "conditions": [{"type": "Available", "status": "True"}],
            },
        });
        change(&mut document);
        [("a-z1".to_owned(), LiveDeployment::read(document, &Azure).unwrap())].into()
    }

    #[test]
    fn nodes_are_ready_when_no_deployment_has_a_fault() {
        assert_eq!(every_node_ready(&deployment(|_| {}), false).status, ConditionStatus::True);
        assert_eq!(every_node_ready(&BTreeMap::new(), false).status, ConditionStatus::True);
        for change in [
            |document: &mut Value| document["metadata"]["generation"] = json!(3),
            |document: &mut Value| document["status"]["conditions"] = json!([]),
            |document: &mut Value| document["status"]["conditions"][0]["status"] = json!("False"),
        ] {
            let deployments = deployment(change);
            let condition = every_node_ready(&deployments, false);
            assert!(
                condition.status == ConditionStatus::False && condition.reason == "HealthCheckUnsuccessful",
                "{condition:?}"
            );
            assert_eq!(every_node_ready(&deployments, true).message, "Shoot is hibernated");
        }
        let operation = json!({"description": "no room", "errorCode": "ResourceExhausted"});
        let failed = json!([{"name": "m1", "lastOperation": operation}]);
        let condition = every_node_ready(&deployment(|document| document["status"]["failedMachines"] = failed), false);
        assert_eq!(condition.message, "machine \"m1\" failed: no room");
        assert_eq!(condition.codes, [ErrorCode::InfraResourcesDepleted].into());
    }

    #[test]
    fn what_is_same_text_already_is_not_said_again() {
        let condition = Condition::met(ConditionType::EveryNodeReady, "HealthCheckSuccessful", "well");
        let foreign = json!({"type": "Foreign", "status": "True", "unknown": 1});
        let left_behind = json!({"type": "ControlPlaneHealthy", "status": "True"});
        let first =
            conditions_with(&[foreign.clone(), left_behind], std::slice::from_ref(&condition), BEFORE, TextSize::Full)
                .unwrap();
        assert_eq!(first[0], foreign, "what others say stays");
        assert_eq!(first.as_array().unwrap().len(), 2, "what older extensions left behind goes");
        let present = first.as_array().unwrap();
        assert_eq!(conditions_with(present, std::slice::from_ref(&condition), NOW, TextSize::Full), None);

        let reworded = Condition { message: "very well".to_owned(), ..condition.clone() };
        let second = conditions_with(present, &[reworded], NOW, TextSize::Full).unwrap();
        assert_eq!((&second[1]["lastTransitionTime"], &second[1]["lastUpdateTime"]), (&json!(BEFORE), &json!(NOW)));
        let turned = Condition::unmet(ConditionType::EveryNodeReady, "HealthCheckUnsuccessful", "badly");
        let third = conditions_with(present, &[turned], NOW, TextSize::Full).unwrap();
        assert_eq!(third[1]["lastTransitionTime"], NOW);
    }

    #[test]
    fn how_pools_stand_is_read_from_what_was_written() {
        let pools = |names: &[&str]| PoolList::of(names.iter().copied());
        let readiness =
            PoolReadiness { failed: pools(&["a"]), not_deployed: pools(&["b", "c"]), pending: pools(&["d"]) };
        let text = readiness.text(TextSize::Full);
        assert_eq!(text, "Machines failed: a; Not deployed: b, c; Waiting for machines: d");
        let condition =
            |status: &str, message: &str| json!({"type": "PoolsReady", "status": status, "message": message});
        assert_eq!(PoolReadiness::recorded(&[condition("False", &text)]), Some(readiness));
        assert_eq!(
            PoolReadiness::recorded(&[condition("True", "All 4 pools are ready.")]),
            Some(PoolReadiness::default())
        );
        assert_eq!(PoolReadiness::recorded(&[condition("False", "another program's words")]), None);
        assert_eq!(PoolReadiness::recorded(&[]), None);
    }

    #[test]
    fn pools_that_are_only_counted_stand_as_nobody_knows() {
        let names: Vec<String> = (0..1000).map(|number| format!("pool-{number:03}")).collect();
        let readiness =
            PoolReadiness { failed: PoolList::of(names.iter().map(String::as_str)), ..PoolReadiness::default() };
        let full = readiness.text(TextSize::Full);
        assert_eq!(PoolReadiness::read(&full), Some(readiness.clone()), "a thousand pools are named");
        let short = readiness.text(TextSize::Short);
        assert!(short.len() <= 1100 && short.ends_with(" more"), "{short}");
        let read = PoolReadiness::read(&short).unwrap();
        assert_eq!(read.text(TextSize::Short), short, "as it was written");
        assert!(!read.is_ready("pool-000") && read.is_known("pool-000"));
        assert!(!read.is_known("pool-999") && !read.is_known("another"));
        let shortest = read.text(TextSize::Shortest);
        let counted = shortest.rsplit(' ').nth(1).unwrap().parse::<usize>().unwrap();
        assert_eq!(counted + shortest.matches("pool-").count(), 1000, "{shortest}");
    }

    #[test]
    fn a_check_that_cannot_be_made_is_unknown() {
        let written = conditions_with(&[], &[every_node_unknown("no answer")], NOW, TextSize::Full).unwrap();
        assert_eq!((&written[0]["status"], &written[0]["reason"]), (&json!("Unknown"), &json!("ConditionCheckError")));
    }
}
