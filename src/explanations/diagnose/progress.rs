//! How far a pool is whose machines change, in one line: the cause, the updated machines, and the time that is left.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use super::facts::Facts;
use super::machine_document::{MachineDocument, moment};
use super::pools::{PoolRow, PoolState};
use super::roll_cause::{KnownValues, RollCause, roll_causes};
use decisions::worker::machines::machine_objects::LiveDeployment;
use decisions::worker::plan::class_inputs::History;

/// A pool whose machines change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolProgress {
    /// Name of the pool.
    pub pool: String,
    /// Whether machines are replaced, created or deleted.
    pub activity: Activity,
    /// The inputs that caused a roll; empty if they are not recorded.
    pub causes: Vec<RollCause>,
    /// Machines of the current class.
    pub updated: i32,
    /// Target number of machines.
    pub desired: i32,
    /// Available machines, including old ones.
    pub available: i32,
    /// When the roll began, if it is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// When the last machine of the current class was created, if machines are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_machine: Option<Timestamp>,
    /// Estimated time that is left, in seconds, if the pace so far is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds_left: Option<i64>,
}

/// What happens to the machines of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Activity {
    /// Machines are replaced or updated in place.
    Rolling,
    /// Machines are created.
    ScalingUp,
    /// Machines are deleted.
    ScalingDown,
}

/// States of a machine deployment that changes without a problem.
const CHANGING: &[PoolState] = &[PoolState::WaitingForMachines, PoolState::NoMachineSet, PoolState::NotObserved];
/// States of a machine deployment that changes, with those of problems.
const CHANGING_OR_STUCK: &[PoolState] = &[
    PoolState::WaitingForMachines,
    PoolState::NoMachineSet,
    PoolState::NotObserved,
    PoolState::MachinesFailed,
    PoolState::Paused,
    PoolState::Frozen,
];

/// The pools whose machines change without a problem, in the order of their rows.
pub(super) fn progress(facts: &Facts<'_>, rows: &[PoolRow]) -> Vec<PoolProgress> {
    of_states(facts, rows, CHANGING)
}

/// The pools that roll, also those with a problem.
pub(super) fn rolling(facts: &Facts<'_>, rows: &[PoolRow]) -> Vec<PoolProgress> {
    let mut rolling = of_states(facts, rows, CHANGING_OR_STUCK);
    rolling.retain(|progress| progress.activity == Activity::Rolling);
    rolling
}

fn of_states(facts: &Facts<'_>, rows: &[PoolRow], states: &[PoolState]) -> Vec<PoolProgress> {
    let known = KnownValues::of(facts.documents());
    let mut pools: Vec<PoolProgress> = Vec::new();
    let mut of_pool: BTreeMap<&str, Vec<&PoolRow>> = BTreeMap::new();
    for row in rows {
        of_pool.entry(&row.pool).or_default().push(row);
    }
    for row in rows {
        let Some(all) = of_pool.remove(row.pool.as_str()) else { continue };
        pools.extend(of_rows(facts, &all, &known, states));
    }
    pools
}

fn of_rows(facts: &Facts<'_>, rows: &[&PoolRow], known: &KnownValues, states: &[PoolState]) -> Option<PoolProgress> {
    let is_changing = |row: &&&PoolRow| states.contains(&row.state);
    let changing: Vec<Change> =
        rows.iter().filter(is_changing).filter_map(|row| Change::of(facts, row, known)).collect();
    let activity = changing.iter().map(|change| change.activity).min()?;
    let rolls = || changing.iter().filter(|change| change.activity == Activity::Rolling);
    let mut causes: Vec<RollCause> = rolls().flat_map(|change| change.causes.clone()).collect();
    causes.sort();
    causes.dedup();
    let sum = |count: fn(&PoolRow) -> i32| rows.iter().map(|row| count(row)).fold(0, i32::saturating_add);
    let desired = sum(|row| row.desired);
    let updated = rows.iter().map(|row| if waits(facts, row) { 0 } else { updated(row) }).fold(0, i32::saturating_add);
    // The roll began when its last deployment is recorded, unless one is unknown.
    let since = rolls().map(|change| change.since).min().flatten();
    Some(PoolProgress {
        pool: rows.first()?.pool.clone(),
        activity,
        causes,
        updated,
        desired,
        available: sum(|row| row.available),
        since,
        last_machine: changing.iter().filter_map(|change| change.last_machine).max(),
        seconds_left: since.and_then(|since| seconds_left(facts.now, since, updated, desired)),
    })
}

/// Whether the zone waits for its new class, so that its machines have the old one.
fn waits(facts: &Facts<'_>, row: &PoolRow) -> bool {
    let live = row.deployment.as_deref().and_then(|name| facts.deployments.get(name));
    let history = live.and_then(LiveDeployment::class_inputs).and_then(History::read);
    history.is_some_and(|history| history.wait.is_some())
}

/// Machines of the current class. Before a change is observed, the status counts those of the earlier class.
fn updated(row: &PoolRow) -> i32 {
    match row.state {
        PoolState::NotObserved | PoolState::NoMachineSet => 0,
        _ => row.updated.clamp(0, row.desired.max(0)),
    }
}

/// Extrapolates the pace so far. Without an updated machine there is none.
fn seconds_left(now: Timestamp, since: Timestamp, updated: i32, desired: i32) -> Option<i64> {
    let elapsed = now.duration_since(since).as_secs();
    let left = i64::from(desired.saturating_sub(updated));
    (updated > 0 && left > 0 && elapsed > 0).then(|| elapsed.saturating_mul(left) / i64::from(updated))
}

/// One machine deployment that changes.
struct Change {
    activity: Activity,
    causes: Vec<RollCause>,
    since: Option<Timestamp>,
    last_machine: Option<Timestamp>,
}

impl Change {
    fn of(facts: &Facts<'_>, row: &PoolRow, known: &KnownValues) -> Option<Self> {
        let deployment = row.deployment.as_deref()?;
        let live = facts.deployments.get(deployment)?;
        let class = &live.object.spec.template.spec.class.name;
        let machines: Vec<&MachineDocument> =
            facts.machines.iter().filter(|machine| machine.deployment() == deployment).collect();
        let is_current = |machine: &&&MachineDocument| machine.spec.class.name == *class;
        let created = machines
            .iter()
            .filter(is_current)
            .filter_map(|machine| moment(machine.metadata.creation_timestamp.as_ref()));
        let last_machine = created.max();
        // A change that is neither observed nor recorded can be anything; its finding shows it.
        if row.state != PoolState::WaitingForMachines && !live.has_had_another_class() {
            return None;
        }
        let activity = activity(row, live, &machines);
        let mut change = Self { activity, causes: Vec::new(), since: None, last_machine };
        if activity == Activity::Rolling {
            change.since = live.class_changed();
            let history = live.class_inputs().and_then(History::read);
            let last = history.as_ref().and_then(|history| history.changes().next());
            change.causes =
                last.filter(|last| last.to.class == *class).map_or(Vec::new(), |last| roll_causes(&last, known));
        }
        Some(change)
    }
}

fn activity(row: &PoolRow, live: &LiveDeployment, machines: &[&MachineDocument]) -> Activity {
    let class = &live.object.spec.template.spec.class.name;
    let has_old_machine =
        machines.iter().any(|machine| !machine.spec.class.name.is_empty() && machine.spec.class.name != *class);
    let is_new_class = live.class_changed().is_some() && live.has_had_another_class();
    let is_unfinished = updated(row) < row.desired;
    if has_old_machine || row.present > row.updated || is_new_class && is_unfinished {
        Activity::Rolling
    } else if row.present > row.desired {
        Activity::ScalingDown
    } else {
        Activity::ScalingUp
    }
}
