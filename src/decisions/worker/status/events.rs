//! Pure: decides which events to publish. The previous state of the pools is read from the recorded conditions, so a
//! restart neither loses nor repeats events.

use std::collections::{BTreeMap, BTreeSet};

use crate::worker::machines::machine_objects::LiveDeployment;
use crate::worker::machines::progress::{Progress, Stuck, failed_machines_text};
use crate::worker::plan::Plan;
use crate::worker::plan::roll_budget::{BudgetDecisions, HeldPool, ReleasedPool};
use crate::worker::plan::rolls::Roll;
use crate::worker::plan::stops::StoppedPool;
use crate::worker::plan::zone_waits::{ReleasedZone, WaitingPool, WaitingZone, ZoneWaits};
use crate::worker::status::conditions::{ConditionStatus, ConditionType};
use crate::worker::status::pool_readiness::PoolReadiness;
use crate::worker::status::rolls_held::is_on_hold;
use wire::api::bounded_text::shortened;
use wire::api::gardener::{ErrorCode, Worker};

/// Maximum length of the text about a pool in bytes. A whole note has 200; the status has the whole text.
const MOST_OF_EVENT: usize = 150;

/// A change to publish an event about, once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkerEvent {
    /// Deployments start to replace their machines or to update them in place. One event covers all that start
    /// together.
    RollsStarted(Vec<Roll>),
    /// All machines of these pools are ready again, or all are hibernated.
    PoolsReady {
        /// Names of the pools.
        pools: Vec<String>,
        /// Whether the shoot is hibernated.
        hibernated: bool,
    },
    /// A pool can't be planned, or its machines failed.
    PoolFailed {
        /// Name of the pool.
        pool: String,
        /// Human-readable message.
        message: String,
        /// Gardener error codes.
        codes: BTreeSet<ErrorCode>,
    },
    /// machine-controller-manager did not act on a change and was restarted.
    MachineControllerRestarted(Stuck),
    /// Zones of a pool begin to wait for another zone.
    RollHeld(WaitingPool),
    /// A zone no longer waits although another zone still rolls.
    RollReleased(ReleasedZone),
    /// The budget begins to hold a pool.
    PoolHeld(HeldPool),
    /// The budget no longer holds a pool.
    PoolReleased(ReleasedPool),
    /// A stop begins to affect a pool.
    RollStopped(StoppedPool),
    /// No stop affects this pool any more.
    RollResumed(String),
}

impl WorkerEvent {
    /// Whether it is about something that the reconcile has done, which no later reconcile finds again. Other events are about how
    /// pools stand compared with the recorded conditions: each reconcile finds these until its status is written.
    #[must_use]
    pub fn is_of_action(&self) -> bool {
        match self {
            Self::RollsStarted(_) | Self::MachineControllerRestarted(_) | Self::RollHeld(_) | Self::RollReleased(_) => {
                true
            }
            Self::PoolsReady { .. }
            | Self::PoolFailed { .. }
            | Self::PoolHeld(_)
            | Self::PoolReleased(_)
            | Self::RollStopped(_)
            | Self::RollResumed(_) => false,
        }
    }
}

/// The events of a reconcile. `worker` has the conditions from before it.
#[must_use]
pub fn events(worker: &Worker, plan: &Plan, progress: &Progress, rolls: &[Roll]) -> Vec<WorkerEvent> {
    let mut events = Vec::new();
    if !rolls.is_empty() {
        events.push(WorkerEvent::RollsStarted(rolls.to_vec()));
    }
    let now = PoolReadiness::of(plan, progress);
    // Without a recorded state, ready pools publish no event, but failing pools do.
    let before = PoolReadiness::recorded(&worker.status.conditions).unwrap_or_default();
    for (deployment, machines) in progress.failed() {
        let is_published = events
            .iter()
            .any(|event| matches!(event, WorkerEvent::PoolFailed { pool, .. } if *pool == deployment.pool));
        if before.failed.contains(&deployment.pool) || !before.is_known(&deployment.pool) || is_published {
            continue;
        }
        events.push(WorkerEvent::PoolFailed {
            pool: deployment.pool.clone(),
            message: failed_machines_text(machines, MOST_OF_EVENT),
            codes: machines.iter().flat_map(|machine| machine.codes.iter().copied()).collect(),
        });
    }
    let has_changed = |pool: &str| !before.not_deployed.contains(pool) && before.is_known(pool);
    for error in plan.errors().filter(|error| has_changed(&error.pool)) {
        events.push(WorkerEvent::PoolFailed {
            pool: error.pool.clone(),
            message: shortened(&error.problem.to_string(), MOST_OF_EVENT),
            codes: error.problem.code().into_iter().collect(),
        });
    }
    let planned = plan.pools.iter().flatten().map(|pool| &pool.pool);
    let ready: Vec<String> = planned.filter(|pool| now.is_ready(pool) && !before.is_ready(pool)).cloned().collect();
    // For a new Worker, the end of its operation reports the same.
    let is_new = worker.status.last_operation.as_ref().is_some_and(|last| last.operation_type == "Create");
    if !ready.is_empty() && !is_new {
        events.push(WorkerEvent::PoolsReady { pools: ready, hibernated: progress.hibernated });
    }
    events
}

/// Events about waits that begin or end with this reconcile. `live` are the deployments after its writes.
#[must_use]
pub fn wait_events(waits: &ZoneWaits, live: &BTreeMap<String, LiveDeployment>) -> Vec<WorkerEvent> {
    let begins = |zone: &WaitingZone| {
        let recorded = live.get(&zone.deployment).and_then(|live| live.waits_since(&zone.planned_class));
        zone.is_new && recorded.is_some()
    };
    let held = waits.pools.iter().filter_map(|pool| {
        let zones: Vec<WaitingZone> = pool.zones.iter().filter(|zone| begins(zone)).cloned().collect();
        (!zones.is_empty()).then(|| WorkerEvent::RollHeld(WaitingPool { zones, ..pool.clone() }))
    });
    let has_class = |zone: &&ReleasedZone| {
        live.get(&zone.deployment).is_some_and(|live| live.object.spec.template.spec.class.name == zone.class)
    };
    let released = waits.released.iter().filter(has_class).cloned().map(WorkerEvent::RollReleased);
    held.chain(released).collect()
}

/// Events about pools that the budget begins or ceases to hold, compared with the recorded condition. A condition that
/// omits pools shows neither.
#[must_use]
pub fn budget_events(worker: &Worker, budget: &BudgetDecisions) -> Vec<WorkerEvent> {
    let message = recorded_holds(worker);
    let is_incomplete = is_incomplete(message);
    let held = budget.held.iter().filter(|pool| !is_incomplete && !message.contains(&pool.identity()));
    let released = budget.released.iter().filter(|released| is_on_hold(&released.pool, message));
    held.cloned().map(WorkerEvent::PoolHeld).chain(released.cloned().map(WorkerEvent::PoolReleased)).collect()
}

/// Events about pools that a stop begins or ceases to affect, compared with the recorded condition, as for holds.
#[must_use]
pub fn stop_events(worker: &Worker, plan: &Plan) -> Vec<WorkerEvent> {
    let message = recorded_holds(worker);
    let is_incomplete = is_incomplete(message);
    let is_new = |pool: &&StoppedPool| !is_incomplete && !StoppedPool::is_in_message(&pool.pool, message);
    let stopped = plan.stops.pools.iter().filter(is_new).cloned().map(WorkerEvent::RollStopped);
    let is_stopped = |pool: &str| plan.stops.pools.iter().any(|stopped| stopped.pool == pool);
    let planned = plan.pools.iter().flatten().map(|planned| &planned.pool);
    let resumed = planned.filter(|pool| StoppedPool::is_in_message(pool, message) && !is_stopped(pool));
    stopped.chain(resumed.cloned().map(WorkerEvent::RollResumed)).collect()
}

/// The message of the recorded condition `RollsHeld`; empty unless rolls were held.
fn recorded_holds(worker: &Worker) -> &str {
    let of_type = ConditionType::RollsHeld;
    let recorded = worker.status.conditions.iter().find(|recorded| of_type.is_recorded_in(recorded));
    let recorded = recorded.filter(|recorded| recorded["status"] == ConditionStatus::True.as_str());
    recorded.and_then(|recorded| recorded["message"].as_str()).unwrap_or_default()
}

/// Whether the message of a condition omits pools.
fn is_incomplete(message: &str) -> bool {
    message.ends_with(" more")
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;
    use crate::provider::{PoolPlan, PoolProblem};
    use crate::worker::machines::machine_objects::FailedMachine;
    use crate::worker::machines::progress::{DeploymentProgress, Phase};
    use crate::worker::plan::roll_budget::ReleaseReason;
    use crate::worker::plan::roll_budget::test_support::held_pool;
    use crate::worker::plan::stops::Stops;
    use crate::worker::plan::stops::test_support::stopped_pool;
    use crate::worker::status::conditions::{ConditionsReport, pool_conditions};
    use crate::worker::status::status_text::TextSize;

    /// Pools `a` and `b` are planned, `c` has no volume.
    fn plan() -> Plan {
        let pool = |name: &str| {
            Ok(PoolPlan { pool: name.to_owned(), machines: vec![], status_image: json!({}), in_place_hash: None })
        };
        let pools = vec![pool("a"), pool("b"), Err(PoolProblem::VolumeMissing.of_pool("c"))];
        Plan { pools, provider_status: json!({}), ..Plan::default() }
    }

    fn progress(phases: [Phase; 2]) -> Progress {
        let deployment = |pool: &str, phase: Phase| DeploymentProgress {
            pool: pool.to_owned(),
            deployment: format!("{pool}-z1"),
            phase,
            is_healthy: true,
            rolls: false,
            desired: 1,
            present: 1,
            updated: 1,
            available: 1,
            unavailable: 0,
            preserved: 0,
            unselected: 0,
            selected: 0,
            untaken_since: None,
        };
        let [a, b] = phases;
        let deployments = vec![deployment("a", a), deployment("b", b)];
        Progress { namespace: "ns".to_owned(), deployments, hibernated: false }
    }

    fn failed() -> Phase {
        let codes = [ErrorCode::InfraQuotaExceeded].into();
        Phase::Failed(vec![FailedMachine { name: "m".to_owned(), codes, ..FailedMachine::default() }])
    }

    /// The events of consecutive reconciles.
    fn events_of(reconciles: Vec<[Phase; 2]>) -> Vec<Vec<String>> {
        let plan = plan();
        let mut conditions = Vec::<Value>::new();
        let mut published = Vec::new();
        for phases in reconciles {
            let document = json!({"metadata": {}, "spec": {}, "status": {"conditions": conditions}});
            let worker: Worker = serde_json::from_str(&document.to_string()).unwrap();
            let progress = progress(phases);
            let of_reconcile = events(&worker, &plan, &progress, &[]).into_iter().map(|event| match event {
                WorkerEvent::PoolsReady { pools, .. } => format!("ready {}", pools.join(", ")),
                WorkerEvent::PoolFailed { pool, codes, .. } => format!("failed {pool} {}", codes.len()),
                other => format!("{other:?}"),
            });
            published.push(of_reconcile.collect());
            let conditions_now = pool_conditions(&plan, &[], &progress);
            if let Some(report) = ConditionsReport::of(&conditions, &conditions_now, "2026-11-21T10:00:00Z")
                && let Value::Array(written) = report.document(TextSize::Full)
            {
                conditions = written;
            }
        }
        published
    }

    #[test]
    fn publishes_begin_and_end_of_holds_once() {
        let published = |condition: Value, budget: &BudgetDecisions| {
            let status = json!({"conditions": [condition]});
            let document = json!({"metadata": {}, "spec": {}, "status": status});
            let events = budget_events(&serde_json::from_str(&document.to_string()).unwrap(), budget);
            events.into_iter().map(|event| matches!(event, WorkerEvent::PoolHeld(_))).collect::<Vec<bool>>()
        };
        let condition =
            |status: &str, message: &str| json!({"type": "RollsHeld", "status": status, "message": message});
        let held = BudgetDecisions { held: vec![held_pool()], ..BudgetDecisions::default() };
        let released = ReleasedPool { pool: "web".to_owned(), reason: ReleaseReason::Slot };
        let released = BudgetDecisions { released: vec![released], ..BudgetDecisions::default() };
        assert_eq!(published(condition("False", ""), &held), [true]);
        assert_eq!(published(condition("True", "pool \"db\": zone 1 is on hold; and 3 more"), &held), [false; 0]);
        let recorded = condition("True", &held_pool().text());
        assert_eq!(published(recorded.clone(), &held), [false; 0], "once");
        assert_eq!(published(recorded, &released), [false]);
        assert_eq!(published(condition("False", ""), &released), [false; 0], "it was not on hold");
    }

    #[test]
    fn publishes_begin_and_end_of_stops_once() {
        let published = |status: &str, message: &str, stopped: Vec<StoppedPool>| {
            let condition = json!({"type": "RollsHeld", "status": status, "message": message});
            let document = json!({"metadata": {}, "spec": {}, "status": {"conditions": [condition]}});
            let web =
                PoolPlan { pool: "web".to_owned(), machines: vec![], status_image: json!({}), in_place_hash: None };
            let stops = Stops { pools: stopped, ..Stops::default() };
            let plan = Plan { pools: vec![Ok(web)], stops, ..Plan::default() };
            let events = stop_events(&serde_json::from_str(&document.to_string()).unwrap(), &plan);
            events.into_iter().map(|event| matches!(event, WorkerEvent::RollStopped(_))).collect::<Vec<bool>>()
        };
        let stopped = stopped_pool(Timestamp::UNIX_EPOCH);
        let text = stopped.text();
        assert_eq!(published("False", "", vec![stopped.clone()]), [true]);
        assert_eq!(published("True", "pool \"db\": zone 1 is on hold; and 3 more", vec![stopped.clone()]), [false; 0]);
        assert_eq!(published("True", &text, vec![stopped.clone()]), [false; 0], "once");
        let later = StoppedPool { paused: vec![1, 2], ..stopped };
        assert_eq!(published("True", &text, vec![later]), [false; 0], "the same stop");
        assert_eq!(published("True", &text, Vec::new()), [false]);
        assert_eq!(published("False", &text, Vec::new()), [false; 0], "it was not stopped");
    }

    #[test]
    fn publishes_each_change_once() {
        let published = events_of(vec![
            [Phase::Unobserved, Phase::Pending],
            [Phase::Pending, Phase::Ready],
            [failed(), Phase::Ready],
            [failed(), Phase::Pending],
            [Phase::Pending, Phase::Ready],
            [Phase::Ready, Phase::Ready],
            [Phase::Ready, Phase::Ready],
        ]);
        let expected: [&[&str]; 7] =
            [&["failed c 1"], &["ready b"], &["failed a 1"], &[], &["ready b"], &["ready a"], &[]];
        assert_eq!(published, expected);
    }

    #[test]
    fn ready_pools_publish_no_first_event() {
        assert_eq!(events_of(vec![[Phase::Ready, Phase::Ready]]), [["failed c 1"]]);
    }

    #[test]
    fn publishes_one_event_per_failed_pool() {
        let worker: Worker = serde_json::from_str(r#"{"metadata": {}, "spec": {}}"#).unwrap();
        let zone = |name: &str| DeploymentProgress {
            deployment: name.to_owned(),
            phase: failed(),
            ..DeploymentProgress::ready()
        };
        let progress = Progress { deployments: vec![zone("a-z1"), zone("a-z2")], ..Progress::default() };
        let failed = events(&worker, &plan(), &progress, &[]);
        let failed = failed.iter().filter(|event| matches!(event, WorkerEvent::PoolFailed { pool, .. } if pool == "a"));
        assert_eq!(failed.count(), 1);
    }

    #[test]
    fn omitted_pool_publishes_no_event() {
        let published = |message: &str| {
            let condition = json!({"type": "PoolsReady", "status": "False", "message": message});
            let document = json!({"metadata": {}, "spec": {}, "status": {"conditions": [condition]}});
            let worker: Worker = serde_json::from_str(&document.to_string()).unwrap();
            events(&worker, &plan(), &progress([failed(), Phase::Pending]), &[]).len()
        };
        assert_eq!(published("Machines failed: x and 3 more"), 0, "it may be one of them");
        assert_eq!(published("Machines failed: x"), 2, "pools a and c fail now");
    }

    #[test]
    fn new_worker_publishes_no_ready_event() {
        let ready = |operation: &str| {
            let condition = json!({"type": "PoolsReady", "status": "False", "message": "Waiting for machines: a, b"});
            let last = json!({"type": operation, "state": "Processing", "description": "", "progress": 1});
            let status = json!({"conditions": [condition], "lastOperation": last});
            let document = json!({"metadata": {}, "spec": {}, "status": status});
            let worker: Worker = serde_json::from_str(&document.to_string()).unwrap();
            let events = events(&worker, &plan(), &progress([Phase::Ready, Phase::Ready]), &[]);
            let pools = |event| if let WorkerEvent::PoolsReady { pools, .. } = event { pools } else { Vec::new() };
            events.into_iter().flat_map(pools).collect::<Vec<_>>()
        };
        assert_eq!(ready("Reconcile"), ["a", "b"]);
        assert_eq!(ready("Create"), [""; 0], "its end is published");
    }
}
