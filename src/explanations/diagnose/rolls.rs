//! The past rolls of a shoot: records of all its machine deployments, with one entry for everything that rolled together.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::Value;

use super::roll_cause::{KnownValues, RollCause, roll_causes};
use decisions::worker::machines::machine_objects::LiveDeployment;
use decisions::worker::plan::class_inputs::{ClassChange, Difference, History};
use profiles::versions::window::EffectiveWindow;
use wire::api::gardener::TimeWindow;

/// Classes that changed within this time of each other, for the same reason, are one roll. A Worker with many pools is
/// reconciled in minutes.
const SAME_ROLL: SignedDuration = SignedDuration::from_mins(10);
/// Time from maintenance of a Shoot until its Worker is reconciled, at most.
const FOLLOWS_MAINTENANCE: SignedDuration = SignedDuration::from_hours(1);
/// How Gardener describes an update that the owner can't refuse.
const FORCED: &str = "force update required";

/// Machine deployments that rolled together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Roll {
    /// Namespace of the shoot.
    pub namespace: String,
    /// When it began: the first recorded class.
    pub began: Timestamp,
    /// What caused it, as far as objects show.
    pub trigger: RollTrigger,
    /// Why the inputs are unknown, if they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<&'static str>,
    /// The inputs that changed.
    pub causes: Vec<RollCause>,
    /// Names of the pools.
    pub pools: BTreeSet<String>,
    /// Names of the machine deployments.
    pub deployments: BTreeSet<String>,
    /// Number of nodes; only known for the last roll of each machine deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<i32>,
    /// Updated nodes of a roll that is not finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated: Option<i32>,
    /// How long it took, if machine-controller-manager has recorded the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<i64>,
}

/// What caused a roll.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RollTrigger {
    /// Gardener's maintenance updated a version because the Shoot allows it.
    AutomaticMaintenance,
    /// Gardener's maintenance updated a version although the Shoot does not allow it, because it expired.
    ForcedMaintenance,
    /// Credentials of the shoot were rotated.
    Rotation,
    /// It began in the maintenance window, but objects do not show why.
    InMaintenanceWindow,
    /// It began outside of the maintenance window, so the owner or an operator has caused it.
    OwnerOrOperator,
    /// Another controller changed the class.
    AnotherController,
    /// Objects show nothing about it.
    NotRecorded,
}

impl RollTrigger {
    /// The trigger in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::AutomaticMaintenance => "maintenance (automatic)",
            Self::ForcedMaintenance => "maintenance (forced: the version expired)",
            Self::Rotation => "rotation of credentials",
            Self::InMaintenanceWindow => "in the maintenance window (who changed it is not recorded)",
            Self::OwnerOrOperator => "outside of maintenance (owner or operator, not recorded which)",
            Self::AnotherController => "another controller",
            Self::NotRecorded => "trigger not recorded",
        }
    }
}

/// The rolls of these machine deployments, the latest first. `objects` are the Workers and Clusters of their namespaces.
#[must_use]
pub fn rolls(deployments: &[LiveDeployment], objects: &[Value]) -> Vec<Roll> {
    let known = KnownValues::of(objects);
    let mut single: Vec<Roll> = Vec::new();
    for live in deployments {
        let Some(history) = live.class_inputs().and_then(History::read) else { continue };
        for (location, change) in history.changes().enumerate() {
            single.push(roll_of(live, &change, location == 0, objects, &known));
        }
    }
    single.sort_by(|left, right| (&left.namespace, right.began).cmp(&(&right.namespace, left.began)));
    let mut rolls: Vec<Roll> = Vec::new();
    for roll in single {
        match rolls.iter_mut().rev().take_while(|other| other.is_near(&roll)).find(|other| other.is_same(&roll)) {
            Some(same) => same.join(roll),
            None => rolls.push(roll),
        }
    }
    rolls.sort_by(|left, right| (right.began, &left.namespace).cmp(&(left.began, &right.namespace)));
    rolls
}

impl Roll {
    fn is_near(&self, other: &Self) -> bool {
        self.namespace == other.namespace && self.began.duration_since(other.began).abs() <= SAME_ROLL
    }

    fn is_same(&self, other: &Self) -> bool {
        self.causes == other.causes && self.unknown == other.unknown
    }

    fn join(&mut self, other: Self) {
        let Self { began, pools, deployments, nodes, updated, seconds, trigger, .. } = other;
        let end = |began: Timestamp, seconds: Option<i64>| Some(began.as_second().saturating_add(seconds?));
        let last = end(self.began, self.seconds).zip(end(began, seconds)).map(|(left, right)| left.max(right));
        // A finished machine deployment has only updated nodes.
        let is_unfinished = self.updated.is_some() || updated.is_some();
        let both = [self.updated.or(self.nodes), updated.or(nodes)].map(Option::unwrap_or_default);
        self.updated = is_unfinished.then_some(both[0].saturating_add(both[1]));
        self.began = self.began.min(began);
        self.seconds = last.map(|last| last.saturating_sub(self.began.as_second()));
        self.trigger = self.trigger.min(trigger);
        self.pools.extend(pools);
        self.deployments.extend(deployments);
        self.nodes = self.nodes.zip(nodes).map(|(left, right)| left.saturating_add(right));
    }
}

fn roll_of(
    live: &LiveDeployment,
    change: &ClassChange<'_>,
    is_last: bool,
    objects: &[Value],
    known: &KnownValues,
) -> Roll {
    let namespace = live.object.metadata.namespace.clone().unwrap_or_default();
    let causes = roll_causes(change, known);
    let began = change.to.since;
    let is_current = is_last && change.to.class == live.object.spec.template.spec.class.name;
    let status = &live.object.status;
    let desired = live.object.spec.replicas;
    let is_finished = status.updated_replicas >= desired && status.replicas == status.updated_replicas;
    let end = if is_current && is_finished { end_of_roll(live, began) } else { None };
    Roll {
        trigger: trigger(change, &causes, shoot_of(objects, &namespace)),
        unknown: match change.difference {
            Difference::Inputs(_) => None,
            Difference::Order => Some("the order of the inputs, by another release of the controller"),
            Difference::Unknown => Some("the inputs of the earlier or later class are not recorded"),
        },
        namespace,
        began,
        causes,
        pools: live.pool().map(str::to_owned).into_iter().collect(),
        deployments: live.object.metadata.name.clone().into_iter().collect(),
        nodes: is_current.then_some(desired),
        updated: (is_current && !is_finished).then_some(status.updated_replicas.clamp(0, desired.max(0))),
        seconds: end.map(|end| end.duration_since(began).as_secs()),
    }
}

/// When machine-controller-manager reported that all machines have the class.
fn end_of_roll(live: &LiveDeployment, began: Timestamp) -> Option<Timestamp> {
    const COMPLETE: [&str; 2] = ["NewMachineSetAvailable", "NewReplicaSetAvailable"];
    let conditions = live.document.pointer("/status/conditions")?.as_array()?;
    let progressing = conditions.iter().find(|condition| condition["type"] == "Progressing")?;
    let is_complete = progressing["reason"].as_str().is_some_and(|reason| COMPLETE.contains(&reason));
    let end: Timestamp = progressing["lastUpdateTime"].as_str()?.parse().ok()?;
    (is_complete && end > began).then_some(end)
}

fn shoot_of<'a>(objects: &'a [Value], namespace: &str) -> Option<&'a Value> {
    let is_it = |object: &&Value| object["kind"] == "Cluster" && object["metadata"]["name"] == *namespace;
    objects.iter().find(is_it).map(|cluster| &cluster["spec"]["shoot"]).filter(|shoot| shoot.is_object())
}

fn trigger(change: &ClassChange<'_>, causes: &[RollCause], shoot: Option<&Value>) -> RollTrigger {
    if change.to.found {
        return RollTrigger::AnotherController;
    }
    if causes.iter().any(|cause| cause.input.contains("credentials.rotation")) {
        return RollTrigger::Rotation;
    }
    let Some(shoot) = shoot else { return RollTrigger::NotRecorded };
    let began = change.to.since;
    let last = &shoot["status"]["lastMaintenance"];
    let triggered = last["triggeredTime"].as_str().and_then(|time| time.parse::<Timestamp>().ok());
    let age = triggered.map(|triggered| began.duration_since(triggered));
    if age.is_some_and(|age| !age.is_negative() && age <= FOLLOWS_MAINTENANCE) {
        let is_forced = last["description"].as_str().is_some_and(|description| description.contains(FORCED));
        return if is_forced { RollTrigger::ForcedMaintenance } else { RollTrigger::AutomaticMaintenance };
    }
    let window = &shoot["spec"]["maintenance"]["timeWindow"];
    let Ok(window) = serde_json::from_value::<TimeWindow>(window.clone()) else { return RollTrigger::NotRecorded };
    if EffectiveWindow::of(Some(&window)).contains(began) {
        RollTrigger::InMaintenanceWindow
    } else {
        RollTrigger::OwnerOrOperator
    }
}

/// The machine deployments without a readable record, by namespace.
#[must_use]
pub fn unrecorded(deployments: &[LiveDeployment]) -> BTreeMap<&str, Vec<&str>> {
    let mut without: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for live in deployments.iter().filter(|live| live.class_inputs().and_then(History::read).is_none()) {
        let metadata = &live.object.metadata;
        let [namespace, name] = [&metadata.namespace, &metadata.name].map(|text| text.as_deref().unwrap_or_default());
        without.entry(namespace).or_default().push(name);
    }
    without
}
