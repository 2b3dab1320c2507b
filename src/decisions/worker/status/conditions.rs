//! Pure step: the conditions of a Worker.
//!
//! * `PoolsDeployed`, `ImageResolved`, `PoolsReady`: the pools in the last reconcile;
//! * `EveryNodeReady`: copied by gardenlet to the Shoot's condition of that name, updated also between operations
//!   (`every_node_ready`);
//! * `ImageDrift`, only with `--image-drift` or `--pin-images`: pools whose image has changed (`class_images`);
//! * `RollsAsPlanned`, only after rolls were saved: whether the actual rolls match them (`rolls_as_planned`);
//! * `RollsHeld`, only with zone by zone or a stop, or after a hold: zones that wait for another zone of their pool, stopped
//!   pools, and pools on hold (`rolls_held`);
//! * `VersionsCurrent`, only with `--version-forecast`: how long the shoot can keep its versions (`versions_current`).
//!
//! Conditions of other controllers are preserved, except `ControlPlaneHealthy`, which older extensions left behind. A
//! condition is written only when its content changes.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::provider::PoolProblem;
use crate::worker::machines::progress::Progress;
use crate::worker::plan::Plan;
use crate::worker::status::pool_readiness::{POOLS_READY, PoolReadiness};
use crate::worker::status::status_text::{MAX_FAILURE_BYTES, TextSize, is_same_text};
use wire::api::bounded_text::{Bound, listed, named};
use wire::api::gardener::ErrorCode;

/// Type of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConditionType {
    /// The machine objects of every pool match the plan.
    PoolsDeployed,
    /// Every pool has an image.
    ImageResolved,
    /// The machines of every pool are ready.
    PoolsReady,
    /// No machine deployment reports a fault.
    EveryNodeReady,
    /// No version of the shoot is forced to change within a year.
    VersionsCurrent,
    /// A class has another image than the CloudProfile.
    ImageDrift,
    /// The pools that roll match the saved rolls.
    RollsAsPlanned,
    /// Zones wait for another zone of their pool, rolls are stopped, or the budget holds pools.
    RollsHeld,
}

impl ConditionType {
    /// The value of `type`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PoolsDeployed => "PoolsDeployed",
            Self::ImageResolved => "ImageResolved",
            Self::PoolsReady => POOLS_READY,
            Self::EveryNodeReady => "EveryNodeReady",
            Self::VersionsCurrent => "VersionsCurrent",
            Self::ImageDrift => "ImageDrift",
            Self::RollsAsPlanned => "RollsAsPlanned",
            Self::RollsHeld => "RollsHeld",
        }
    }
}

/// A condition without timestamps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Type of the condition.
    pub condition_type: ConditionType,
    /// Status of the condition.
    pub status: ConditionStatus,
    /// Machine-readable reason.
    pub reason: &'static str,
    /// Human-readable message.
    pub message: String,
    /// Gardener error codes.
    pub codes: BTreeSet<ErrorCode>,
}

/// Status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionStatus {
    /// The condition is met.
    True,
    /// The condition is not met.
    False,
    /// The status could not be determined.
    Unknown,
    /// The condition is temporarily not met; a status that only Gardener defines.
    Progressing,
}

impl ConditionStatus {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
            Self::Progressing => "Progressing",
        }
    }
}

impl Condition {
    /// The condition is true.
    #[must_use]
    pub fn met(condition_type: ConditionType, reason: &'static str, message: impl Into<String>) -> Self {
        Self { condition_type, status: ConditionStatus::True, reason, message: message.into(), codes: BTreeSet::new() }
    }

    /// The condition is false.
    #[must_use]
    pub fn unmet(condition_type: ConditionType, reason: &'static str, message: impl Into<String>) -> Self {
        Self { condition_type, status: ConditionStatus::False, reason, message: message.into(), codes: BTreeSet::new() }
    }

    /// A condition that can't be determined, and why.
    pub fn unknown(condition_type: ConditionType, reason: &'static str, message: impl Into<String>) -> Self {
        Self { status: ConditionStatus::Unknown, ..Self::unmet(condition_type, reason, message) }
    }

    /// Returns this condition if another status is recorded, so that a condition that is no longer computed does not
    /// stay there indefinitely.
    pub fn in_place_of_recorded(self, present: &[Value]) -> Option<Self> {
        let recorded = status_of(present, self.condition_type)?;
        (recorded != self.status.as_str()).then_some(self)
    }

    /// The message in this size. The message of `PoolsReady` is parsed again, so it keeps its format.
    fn text(&self, texts: TextSize) -> String {
        match self.readiness() {
            Some(readiness) => readiness.text(texts),
            None => texts.text(&self.message),
        }
    }

    /// Whether a recorded message is this one in any size.
    fn is_same_message(&self, message: &str) -> bool {
        match self.readiness() {
            Some(readiness) => TextSize::ALL.into_iter().any(|texts| message == readiness.text(texts)),
            None => is_same_text(message, &self.message),
        }
    }

    /// The pools in the message of `PoolsReady`; `None` if the condition is met, because that message has another
    /// format.
    fn readiness(&self) -> Option<PoolReadiness> {
        let is_of_pools = self.condition_type == ConditionType::PoolsReady;
        is_of_pools.then(|| PoolReadiness::read(&self.message)).flatten()
    }
}

/// The conditions of the pools. `write_errors` are the messages of failed writes.
#[must_use]
pub fn pool_conditions(plan: &Plan, write_errors: &[String], progress: &Progress) -> [Condition; 3] {
    let number = plan.pools.len();
    let errors = errors_of_deploying(plan, write_errors);
    let codes = plan.errors().filter_map(|error| error.problem.code()).collect();
    let deployed = if errors.is_empty() {
        Condition::met(ConditionType::PoolsDeployed, "AllPoolsDeployed", format!("All {number} pools are deployed."))
    } else {
        Condition {
            codes,
            ..Condition::unmet(ConditionType::PoolsDeployed, "PoolsNotDeployed", listed(&errors, MAX_FAILURE_BYTES))
        }
    };
    [deployed, image_resolved(plan), pools_ready(plan, progress)]
}

/// Beginning of the message of `PoolsDeployed` if every error is about an image. `ImageResolved` has the texts, so that
/// `kubectl describe` does not repeat them.
pub const WITHOUT_IMAGE: &str = "Pools without an image (see ImageResolved): ";

/// The errors for `PoolsDeployed`: texts about images come last, and only with the names of their pools.
fn errors_of_deploying(plan: &Plan, write_errors: &[String]) -> Vec<String> {
    let (without, others): (Vec<_>, Vec<_>) = plan.unplanned().partition(|error| is_about_image(&error.problem));
    let mut errors: Vec<String> = others.into_iter().map(ToString::to_string).collect();
    errors.extend(write_errors.iter().cloned());
    if !without.is_empty() {
        let pools: Vec<&str> = without.into_iter().map(|error| error.pool.as_str()).collect();
        errors.push(format!("{WITHOUT_IMAGE}{}", named(&pools, Bound::bytes(MAX_FAILURE_BYTES))));
    }
    errors
}

fn is_about_image(problem: &PoolProblem) -> bool {
    matches!(
        problem,
        PoolProblem::ImageUnresolved { .. }
            | PoolProblem::ImageWithoutReference { .. }
            | PoolProblem::ImageWithoutArchitecture { .. }
    )
}

/// No pool could be planned, so existing objects stay as they are.
#[must_use]
pub fn nothing_deployed(why: &str, codes: BTreeSet<ErrorCode>) -> Condition {
    Condition { codes, ..Condition::unmet(ConditionType::PoolsDeployed, "NothingDeployed", why) }
}

/// Whether every pool has an image; unknown for pools that fail for another reason.
fn image_resolved(plan: &Plan) -> Condition {
    let of_type = ConditionType::ImageResolved;
    let (without, unknown): (Vec<_>, Vec<_>) = plan.unplanned().partition(|error| is_about_image(&error.problem));
    if !without.is_empty() {
        let texts: Vec<String> = without.into_iter().map(ToString::to_string).collect();
        let codes = [ErrorCode::ConfigurationProblem].into();
        let message = listed(&texts, MAX_FAILURE_BYTES);
        return Condition { codes, ..Condition::unmet(of_type, "ImageNotResolved", message) };
    }
    if !unknown.is_empty() {
        let pools: Vec<&str> = unknown.into_iter().map(|error| error.pool.as_str()).collect();
        let pools = named(&pools, Bound::bytes(MAX_FAILURE_BYTES));
        let message = format!("Pools that are not planned for another reason: {pools}");
        return Condition::unknown(of_type, "NotAllPoolsPlanned", message);
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
                    MACHINES_TO_SELECT,
                    format!(
                        "Old machines wait for a person to select them for their update: {}",
                        named(&unselected, Bound::bytes(MAX_FAILURE_BYTES))
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
/// Reason of `PoolsReady` while old machines wait for a user to select them.
const MACHINES_TO_SELECT: &str = "MachinesToSelect";

/// Whether the last reconcile left the shoot hibernated, according to its condition; `None` without one.
#[must_use]
pub fn is_recorded_hibernated(present: &[Value]) -> Option<bool> {
    reason_of_pools_ready(present).map(|reason| reason == HIBERNATED)
}

/// Whether the last reconcile left old machines for a user to select, according to its condition.
#[must_use]
pub fn is_recorded_unselected(present: &[Value]) -> bool {
    reason_of_pools_ready(present) == Some(MACHINES_TO_SELECT)
}

/// Time since which all pools are ready, according to the condition.
#[must_use]
pub fn pools_ready_since(present: &[Value]) -> Option<Timestamp> {
    let condition = pools_ready_of(present).filter(|condition| condition["status"] == "True")?;
    condition["lastTransitionTime"].as_str()?.parse().ok()
}

fn reason_of_pools_ready(present: &[Value]) -> Option<&str> {
    pools_ready_of(present)?["reason"].as_str()
}

fn pools_ready_of(present: &[Value]) -> Option<&Value> {
    present.iter().find(|condition| condition["type"] == POOLS_READY)
}

/// New value of `status.conditions`.
#[derive(Clone, Debug, PartialEq)]
pub struct ConditionsReport {
    conditions: Vec<Reported>,
    now: String,
}

/// A condition in the report.
#[derive(Clone, Debug, PartialEq)]
enum Reported {
    /// An unchanged recorded condition.
    Recorded(Value),
    /// A condition to write, with its last transition time.
    Written(Condition, String),
}

impl ConditionsReport {
    /// Merges these conditions into the recorded ones; `None` if nothing changes. `now` is formatted as Kubernetes
    /// writes times.
    #[must_use]
    pub fn of(present: &[Value], conditions: &[Condition], now: &str) -> Option<Self> {
        const OBSOLETE: &str = "ControlPlaneHealthy";
        let kept = present.iter().filter(|recorded| recorded["type"] != OBSOLETE);
        let mut reported: Vec<Reported> = kept.cloned().map(Reported::Recorded).collect();
        let mut differs = reported.len() != present.len();
        for condition in conditions {
            let is_of_type =
                |one: &&mut Reported| matches!(one, Reported::Recorded(recorded) if condition.is_of_type(recorded));
            match reported.iter_mut().find(is_of_type) {
                Some(Reported::Recorded(recorded)) if condition.is_same(recorded) => continue,
                Some(before) => *before = condition.reported(Some(before), now),
                None => reported.push(condition.reported(None, now)),
            }
            differs = true;
        }
        differs.then(|| Self { conditions: reported, now: now.to_owned() })
    }

    /// The list of conditions, with messages in this size.
    #[must_use]
    pub fn document(&self, texts: TextSize) -> Value {
        let documents = self.conditions.iter().map(|reported| match reported {
            Reported::Recorded(recorded) => recorded.clone(),
            Reported::Written(condition, since) => condition.document(since, &self.now, texts),
        });
        documents.collect()
    }
}

/// Whether the condition is recorded with the same content.
#[must_use]
pub fn is_recorded(present: &[Value], condition: &Condition) -> bool {
    present.iter().any(|recorded| condition.is_of_type(recorded) && condition.is_same(recorded))
}

/// Whether a condition of that type is recorded with any status other than `True`.
#[must_use]
pub fn is_denied(present: &[Value], condition_type: ConditionType) -> bool {
    present.iter().any(|recorded| recorded["type"] == condition_type.as_str() && recorded["status"] != "True")
}

/// The recorded status of a condition type.
#[must_use]
pub fn status_of(present: &[Value], condition_type: ConditionType) -> Option<&str> {
    let recorded = present.iter().find(|recorded| recorded["type"] == condition_type.as_str())?;
    Some(recorded["status"].as_str().unwrap_or_default())
}

impl ConditionType {
    /// Whether a recorded condition is of this type.
    pub(crate) fn is_recorded_in(self, recorded: &Value) -> bool {
        recorded["type"] == self.as_str()
    }
}

impl Condition {
    fn is_of_type(&self, recorded: &Value) -> bool {
        self.condition_type.is_recorded_in(recorded)
    }

    /// Whether a recorded condition of the same type has the same content.
    fn is_same(&self, recorded: &Value) -> bool {
        let codes = recorded["codes"].as_array().map(Vec::as_slice).unwrap_or_default();
        recorded["status"] == self.status.as_str()
            && recorded["reason"] == self.reason
            && recorded["message"].as_str().is_some_and(|message| self.is_same_message(message))
            && codes.iter().map(Value::as_str).eq(self.codes.iter().map(|code| Some(code.as_str())))
    }

    /// Replaces a recorded condition.
    fn reported(&self, before: Option<&Reported>, now: &str) -> Reported {
        // The transition time only changes with the status, not with reason or message.
        let since = match before {
            Some(Reported::Recorded(before)) if before["status"] == self.status.as_str() => {
                before["lastTransitionTime"].as_str()
            }
            _ => None,
        };
        Reported::Written(self.clone(), since.unwrap_or(now).to_owned())
    }

    fn document(&self, since: &str, now: &str, texts: TextSize) -> Value {
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
    use crate::provider::PoolPlan;
    use crate::worker::machines::machine_objects::FailedMachine;
    use crate::worker::machines::progress::{DeploymentProgress, Phase};

    const NOW: &str = "2026-11-21T10:00:00Z";
    const BEFORE: &str = "2026-11-20T10:00:00Z";

    fn reported(present: &[Value], conditions: &[Condition], now: &str) -> Option<Value> {
        ConditionsReport::of(present, conditions, now).map(|report| report.document(TextSize::Full))
    }

    #[test]
    fn writes_condition_only_on_change() {
        let condition = Condition::met(ConditionType::EveryNodeReady, "HealthCheckSuccessful", "well");
        let foreign = json!({"type": "Foreign", "status": "True", "unknown": 1});
        let left_behind = json!({"type": "ControlPlaneHealthy", "status": "True"});
        let first = reported(&[foreign.clone(), left_behind], std::slice::from_ref(&condition), BEFORE).unwrap();
        assert_eq!(first[0], foreign, "what others say stays");
        assert_eq!(first.as_array().unwrap().len(), 2, "what older extensions left behind goes");
        let present = first.as_array().unwrap();
        assert_eq!(reported(present, std::slice::from_ref(&condition), NOW), None);

        let reworded = Condition { message: "very well".to_owned(), ..condition.clone() };
        let second = reported(present, &[reworded], NOW).unwrap();
        assert_eq!((&second[1]["lastTransitionTime"], &second[1]["lastUpdateTime"]), (&json!(BEFORE), &json!(NOW)));
        let turned = Condition::unmet(ConditionType::EveryNodeReady, "HealthCheckUnsuccessful", "badly");
        let third = reported(present, &[turned], NOW).unwrap();
        assert_eq!(third[1]["lastTransitionTime"], NOW);
        let renamed = Condition { reason: "AnotherReason", ..condition };
        assert_eq!(reported(present, &[renamed], NOW).unwrap()[1]["reason"], "AnotherReason", "in the same words");
    }

    #[test]
    fn image_is_unknown_after_other_failure() {
        let pool = |name: &str| PoolPlan {
            pool: name.to_owned(),
            machines: vec![],
            status_image: Value::Null,
            in_place_hash: None,
        };
        let detail = |pools| {
            let condition = image_resolved(&Plan { pools, provider_status: Value::Null, ..Plan::default() });
            (condition.status, condition.reason)
        };
        assert_eq!(detail(vec![Ok(pool("a"))]), (ConditionStatus::True, "AllImagesResolved"));
        let without_volume = || Err(PoolProblem::VolumeMissing.of_pool("b"));
        assert_eq!(detail(vec![Ok(pool("a")), without_volume()]), (ConditionStatus::Unknown, "NotAllPoolsPlanned"));
        let without_architecture =
            Err(PoolProblem::ImageWithoutArchitecture { image: "i".to_owned(), version: "1".to_owned() }.of_pool("c"));
        assert_eq!(detail(vec![without_volume(), without_architecture]), (ConditionStatus::False, "ImageNotResolved"));
    }

    #[test]
    fn one_condition_has_each_error() {
        let image = PoolProblem::ImageWithoutArchitecture { image: "i".to_owned(), version: "1".to_owned() };
        let [image, volume] = [image.of_pool("a"), PoolProblem::VolumeMissing.of_pool("b")];
        let texts = [image.to_string(), volume.to_string(), "the Secret can't be written".to_owned()];
        let plan = Plan { pools: vec![Err(image), Err(volume)], provider_status: Value::Null, ..Plan::default() };
        let failed =
            FailedMachine { name: "m".to_owned(), description: "no quota".to_owned(), ..FailedMachine::default() };
        let deployment = DeploymentProgress { phase: Phase::Failed(vec![failed]), ..DeploymentProgress::ready() };
        let progress = Progress { deployments: vec![deployment], ..Progress::default() };
        let conditions = pool_conditions(&plan, &texts[2..], &progress);
        let messages: String = conditions.iter().map(|condition| condition.message.as_str()).collect();
        for text in &texts {
            assert_eq!(messages.matches(text.as_str()).count(), 1, "{text}: {messages}");
        }
        assert!(!messages.contains("no quota"), "EveryNodeReady has it: {messages}");
        assert!(conditions[0].message.ends_with("Pools without an image (see ImageResolved): a"), "{messages}");
    }

    #[test]
    fn pools_without_pending_machines_are_ready() {
        let plan = Plan { pools: vec![], provider_status: Value::Null, ..Plan::default() };
        let condition = pools_ready(&plan, &Progress::default());
        assert_eq!((condition.status, condition.reason), (ConditionStatus::True, "AllPoolsReady"));
    }

    #[test]
    fn pools_ready_reports_failure_before_waiting() {
        let plan = Plan { pools: vec![], provider_status: Value::Null, ..Plan::default() };
        let reason = |phases: &[Phase]| {
            let of = |phase: &Phase| DeploymentProgress { phase: phase.clone(), ..DeploymentProgress::ready() };
            let progress = Progress { deployments: phases.iter().map(of).collect(), ..Progress::default() };
            pools_ready(&plan, &progress).reason
        };
        assert_eq!(reason(&[Phase::Ready, Phase::Pending]), "WaitingForMachines");
        assert_eq!(reason(&[Phase::Ready, Phase::Ready]), "AllPoolsReady");
        assert_eq!(reason(&[Phase::Failed(vec![]), Phase::Pending]), "PoolsFailed");
    }

    #[test]
    fn condition_has_codes_of_its_failures() {
        let codes = |condition: &Condition| {
            let written = reported(&[], std::slice::from_ref(condition), NOW).unwrap();
            written[0].get("codes").cloned()
        };
        let failed = FailedMachine { codes: [ErrorCode::InfraQuotaExceeded].into(), ..FailedMachine::default() };
        let deployment = DeploymentProgress { phase: Phase::Failed(vec![failed]), ..DeploymentProgress::ready() };
        let progress = Progress { deployments: vec![deployment], ..Progress::default() };
        let pools = vec![Err(PoolProblem::VolumeMissing.of_pool("b"))];
        let [deployed, image, ready] =
            pool_conditions(&Plan { pools, provider_status: Value::Null, ..Plan::default() }, &[], &progress);
        assert_eq!(codes(&deployed), Some(json!(["ERR_CONFIGURATION_PROBLEM"])));
        assert_eq!(codes(&image), None, "another condition is about the volume");
        assert_eq!(codes(&ready), Some(json!(["ERR_CONFIGURATION_PROBLEM", "ERR_INFRA_QUOTA_EXCEEDED"])));
        let unauthenticated = nothing_deployed("no credentials", [ErrorCode::InfraUnauthenticated].into());
        assert_eq!(codes(&unauthenticated), Some(json!(["ERR_INFRA_UNAUTHENTICATED"])));
    }

    #[test]
    fn parses_readiness_from_shortened_condition() {
        let failed = |number: usize| DeploymentProgress {
            pool: format!("pool-{number:03}"),
            phase: Phase::Failed(vec![]),
            ..DeploymentProgress::ready()
        };
        let progress = Progress { deployments: (0..1000).map(failed).collect(), ..Progress::default() };
        let condition =
            pools_ready(&Plan { pools: vec![], provider_status: Value::Null, ..Plan::default() }, &progress);
        let conditions = [condition];
        for texts in [TextSize::Short, TextSize::Shortest] {
            let report = ConditionsReport::of(&[], &conditions, NOW).unwrap().document(texts);
            let present = report.as_array().unwrap();
            let recorded = PoolReadiness::recorded(present).unwrap();
            assert!(recorded.failed.contains("pool-000"), "{report}");
            assert!(!recorded.is_known("pool-999"), "it is only counted: {report}");
            assert!(is_recorded(present, &conditions[0]), "it is not written again: {report}");
        }
    }

    #[test]
    fn names_pools_with_machines_to_select() {
        let of_pool = |pool: &str, unselected: i32| DeploymentProgress {
            pool: pool.to_owned(),
            unselected,
            ..DeploymentProgress::ready()
        };
        let deployments = vec![of_pool("a", 0), of_pool("b", 2)];
        let progress = Progress { deployments, ..Progress::default() };
        let condition =
            pools_ready(&Plan { pools: vec![], provider_status: Value::Null, ..Plan::default() }, &progress);
        assert_eq!((condition.status, condition.reason), (ConditionStatus::True, "MachinesToSelect"));
        assert!(condition.message.ends_with("for their update: b"), "{}", condition.message);
        let present = reported(&[], &[condition], NOW).unwrap();
        assert!(is_recorded_unselected(present.as_array().unwrap()));
    }

    #[test]
    fn reads_ready_since_from_condition() {
        let since = |status: &str| {
            let of = |name: &str, since: &str| json!({"type": name, "status": status, "lastTransitionTime": since});
            pools_ready_since(&[of("PoolsDeployed", NOW), of("PoolsReady", BEFORE)]).map(|since| since.to_string())
        };
        assert_eq!(since("True").as_deref(), Some(BEFORE));
        assert_eq!((since("False"), pools_ready_since(&[])), (None, None));
    }
}
