//! Pure step: lets the zones of a pool roll one after the other, if an annotation of the Worker or its Shoot names the pool.
//!
//! ```text
//!  plan + live objects ─► facts about zones ─► gate ─► the live class in the plan where a zone waits, and ZoneWaits
//! ```
//!
//! In a named pool, every zone has the surge and unavailability of the whole pool, because usually only one zone rolls.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use crate::pool::names::ClassName;
use crate::provider::{MachinePlan, PoolPlan, Provider, TargetDeployment, WorkerContext};
use crate::worker::machines::live_machine::LiveMachine;
use crate::worker::machines::machine_objects::{LiveDeployment, MachineObjects};
use crate::worker::machines::progress::{Hibernation, OwnedObjects, Phase};
use crate::worker::plan::Plan;
use crate::worker::plan::changes::replica_rules;
use crate::worker::plan::deployment::{ReplicaRules, target_replicas};
use crate::worker::plan::gate::{GateVerdict, Machines, Pool, SwitchReason, Zone};
use crate::worker::plan::orphans::is_being_deleted;
use crate::worker::plan::zone_waits::{ReleasedZone, WaitCause, WaitingPool, WaitingZone, ZoneWaits};
use crate::worker::request::Operation;
use wire::api::gardener::{ErrorCode, Shoot, Worker, WorkerPool};
use wire::api::machine::RollingUpdateStrategy;

/// Annotation with the pools whose zones roll one after the other: `*` or names separated by commas.
pub const ANNOTATION: &str = "gardener-extension-worker/zone-by-zone";
/// Label of nodes with the name of their node agent Secret.
const NODE_AGENT_LABEL: &str = "worker.gardener.cloud/gardener-node-agent-secret-name";
/// Error codes that don't result from the class.
const CAPACITY: [ErrorCode; 3] =
    [ErrorCode::InfraResourcesDepleted, ErrorCode::InfraQuotaExceeded, ErrorCode::InfraRateLimitsExceeded];

/// The pools whose zones roll one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ZoneByZone {
    /// All pools.
    All,
    /// The pools with these names.
    Pools(BTreeSet<String>),
}

impl ZoneByZone {
    /// The setting of the Worker, otherwise that of its Shoot.
    #[must_use]
    pub fn of(worker: &Worker, shoot: &Shoot) -> Self {
        let of_worker = worker.metadata.annotations.as_ref().and_then(|annotations| annotations.get(ANNOTATION));
        Self::of_value(of_worker.or_else(|| shoot.annotations().get(ANNOTATION)).map_or("", String::as_str))
    }

    /// The setting with this value of the annotation.
    #[must_use]
    pub fn of_value(value: &str) -> Self {
        let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
        if value.trim() == "*" { Self::All } else { Self::Pools(names.map(str::to_owned).collect()) }
    }

    /// Whether the zones of this pool roll one after the other, unless its machines are updated in place.
    #[must_use]
    pub fn has_pool(&self, pool: &str) -> bool {
        match self {
            Self::All => true,
            Self::Pools(names) => names.contains(pool),
        }
    }
}

/// Gives every zone of the named pools the surge and unavailability of the whole pool.
pub(super) fn set_whole_bounds(context: &WorkerContext<'_>, plan: &mut Plan) {
    let setting = ZoneByZone::of(context.worker, context.shoot);
    for machine in plan.machines_mut().filter(|machine| setting.has_pool(&machine.deployment.pool_name)) {
        let Some(pool) = context.pool(&machine.deployment.pool_name) else { continue };
        if let Some(rolling) = &mut machine.deployment.strategy.rolling_update {
            *rolling = RollingUpdateStrategy {
                max_unavailable: Some(pool.max_unavailable.clone()),
                max_surge: Some(pool.max_surge.clone()),
            };
        }
    }
}

/// Inputs of the gate in addition to the plan.
pub(super) struct GateInputs<'a> {
    pub(super) provider: &'a dyn Provider,
    pub(super) operation: Operation,
    pub(super) live: &'a MachineObjects,
    pub(super) now: Timestamp,
}

/// Puts the live class of each waiting zone into the plan, and returns the waits.
pub(super) fn hold_waiting_zones(context: &WorkerContext<'_>, plan: &mut Plan, inputs: &GateInputs<'_>) -> ZoneWaits {
    let setting = ZoneByZone::of(context.worker, context.shoot);
    let is_in_use = plan.pools.iter().flatten().any(|planned| setting.has_pool(&planned.pool));
    let mut waits = ZoneWaits { is_in_use, ..ZoneWaits::default() };
    if !is_in_use {
        return waits;
    }
    let observed = Observed {
        inputs,
        owned: OwnedObjects::of(inputs.live),
        rules: replica_rules(context, inputs.live),
        has_no_machines_to_protect: context.shoot.should_hibernate() || inputs.operation == Operation::Restore,
    };
    for planned in plan.pools.iter_mut().flatten().filter(|planned| setting.has_pool(&planned.pool)) {
        let Some(pool) = context.pool(&planned.pool) else { continue };
        let facts = observed.pool(planned, pool);
        let verdicts = facts.gate(inputs.now);
        waits.released.extend(released(planned, &facts, &verdicts));
        if let Some(waiting) = observed.waiting(planned, &facts, &verdicts) {
            hold(planned, &waiting, inputs.live);
            waits.pools.push(waiting);
        }
    }
    waits
}

/// Puts the live class of the waiting zones into the plan of their pool.
fn hold(planned: &mut PoolPlan, waiting: &WaitingPool, live: &MachineObjects) {
    for zone in &waiting.zones {
        let Some(deployment) = live.deployments.get(&zone.deployment) else { continue };
        let machine = planned.machines.iter_mut().find(|machine| machine.deployment.name.0 == zone.deployment);
        if let Some(machine) = machine {
            machine.deployment.class_name = ClassName(class_of(deployment).to_owned());
        }
    }
}

/// The zones that no longer wait although it is not their turn.
fn released(planned: &PoolPlan, facts: &Pool<'_>, verdicts: &[GateVerdict]) -> Vec<ReleasedZone> {
    let zones = planned.machines.iter().zip(&facts.zones).zip(verdicts).enumerate();
    let released = zones.filter_map(|(index, ((machine, zone), verdict))| {
        let lacks_machine = match verdict {
            GateVerdict::Switch(SwitchReason::LacksMachine) => true,
            GateVerdict::Switch(SwitchReason::WaitLimit) => false,
            _ => return None,
        };
        Some(ReleasedZone {
            pool: planned.pool.clone(),
            deployment: machine.deployment.name.0.clone(),
            number: index + 1,
            class: machine.deployment.class_name.0.clone(),
            since: zone.waits_since?,
            lacks_machine,
        })
    });
    released.collect()
}

/// The live objects, and what applies to all pools.
struct Observed<'a> {
    inputs: &'a GateInputs<'a>,
    owned: OwnedObjects<'a>,
    rules: ReplicaRules,
    has_no_machines_to_protect: bool,
}

impl Observed<'_> {
    fn pool<'p>(&'p self, planned: &'p PoolPlan, pool: &WorkerPool) -> Pool<'p> {
        let first = planned.machines.first().map(|machine| &machine.deployment);
        let timeout = first.and_then(|deployment| deployment.machine_configuration.creation_timeout);
        Pool {
            is_named: true,
            replaces_machines: first.is_some_and(|deployment| deployment.strategy.in_place_update.is_none()),
            has_no_machines_to_protect: self.has_no_machines_to_protect,
            creation_timeout: timeout.map(|timeout| SignedDuration::from_nanos(timeout.nanoseconds())),
            zones: planned.machines.iter().map(|machine| self.zone(machine, pool)).collect(),
        }
    }

    fn zone<'p>(&'p self, machine: &'p MachinePlan, pool: &WorkerPool) -> Zone<'p> {
        let target = &machine.deployment;
        let target_class = target.class_name.0.as_str();
        let live = self.inputs.live.deployments.get(&target.name.0);
        let Some(live) = live.filter(|live| !class_of(live).is_empty()) else {
            return Zone { target_class, ..Zone::default() };
        };
        let history = live.history().unwrap_or_default();
        let is_ready = class_of(live) == target_class && {
            let progress = self.owned.progress(target, Some(live), Hibernation::NotRequested);
            progress.phase == Phase::Ready
        };
        Zone {
            target_class,
            live_class: Some(class_of(live)),
            recorded_class: history.newest_class().map(str::to_owned),
            class_since: history.class_since(class_of(live)),
            waits_since: history.waits_since(target_class),
            is_being_deleted: is_being_deleted(&live.document),
            key_stays: key_stays(pool, target, live),
            is_ready,
            machines: self.machines(target, live),
        }
    }

    fn machines(&self, target: &TargetDeployment, live: &LiveDeployment) -> Machines {
        let machines = self.owned.machines(&target.name.0);
        let is_of_class = |machine: &&&LiveMachine| *machine.member.class == *class_of(live);
        let replicas = target_replicas(target, Some(live.object.spec.replicas), self.rules);
        Machines {
            target: usize::try_from(replicas).unwrap_or_default(),
            existing: machines.len(),
            have_run: machines.iter().filter(|machine| machine.has_run && !machine.is_being_deleted).count(),
            are_mixed: !machines.iter().all(|machine| is_of_class(&machine)),
            class_has_run: machines.iter().filter(is_of_class).any(|machine| machine.has_run),
            lack_capacity: self.lack_capacity(live, machines),
        }
    }

    /// Also from the machines themselves, because `failedMachines` is empty between two attempts.
    fn lack_capacity(&self, live: &LiveDeployment, machines: &[&LiveMachine]) -> bool {
        let of_machine = |machine: &&LiveMachine| {
            let codes = self.inputs.provider.error_codes(None, &machine.last_description);
            !machine.has_run && codes.iter().any(|code| CAPACITY.contains(code))
        };
        let reported = live.failed_machines.iter().flat_map(|failed| &failed.codes);
        reported.into_iter().any(|code| CAPACITY.contains(code)) || machines.iter().any(of_machine)
    }

    /// The zones that wait, unless there are none.
    fn waiting(&self, planned: &PoolPlan, facts: &Pool<'_>, verdicts: &[GateVerdict]) -> Option<WaitingPool> {
        let zones = planned.machines.iter().zip(&facts.zones).zip(verdicts).enumerate();
        let zones = zones.filter_map(|(index, ((machine, zone), verdict))| match verdict {
            GateVerdict::Wait(since) => Some(WaitingZone {
                deployment: machine.deployment.name.0.clone(),
                number: index + 1,
                planned_class: machine.deployment.class_name.0.clone(),
                since: *since,
                keeps_template: !zone.key_stays,
                is_new: zone.waits_since.is_none(),
            }),
            _ => None,
        });
        let zones: Vec<WaitingZone> = zones.collect();
        (!zones.is_empty()).then(|| {
            let cause = self.cause(planned, facts, verdicts);
            WaitingPool { pool: planned.pool.clone(), zones, cause }
        })
    }

    fn cause(&self, planned: &PoolPlan, facts: &Pool<'_>, verdicts: &[GateVerdict]) -> WaitCause {
        let failing: Vec<usize> = facts.failing(self.inputs.now).collect();
        if let Some(first) = failing.first() {
            let failure = self.failure(&planned.machines[*first].deployment);
            return WaitCause::Failing { zones: failing.iter().map(|index| index + 1).collect(), failure };
        }
        let rolls = |(zone, verdict): (&Zone<'_>, &GateVerdict)| {
            zone.is_rolling() && *verdict == GateVerdict::AsToday || matches!(verdict, GateVerdict::Switch(_))
        };
        let rolling = facts.zones.iter().zip(verdicts).enumerate().filter(|(_, zone)| rolls(*zone));
        WaitCause::Rolling(rolling.map(|(index, _)| index + 1).collect())
    }

    /// Failure of a machine of the class that fails.
    fn failure(&self, target: &TargetDeployment) -> Option<String> {
        let live = self.inputs.live.deployments.get(&target.name.0)?;
        let reported = live.failed_machines.first().map(|failed| failed.description.clone());
        let machines = self.owned.machines(&target.name.0).iter();
        let mut machines = machines.filter(|machine| *machine.member.class == *target.class_name.0);
        let of_machine =
            || machines.find(|machine| !machine.has_run).map(|machine| machine.last_description.to_string());
        reported.or_else(of_machine).filter(|failure| !failure.is_empty())
    }
}

/// Whether new machines of the live class can join: gardenlet keeps only the node agent Secret of the current name.
fn key_stays(pool: &WorkerPool, target: &TargetDeployment, live: &LiveDeployment) -> bool {
    let live_labels = &live.object.spec.template.spec.node_template.metadata.labels;
    let live_key = live_labels.get(NODE_AGENT_LABEL);
    live_key.is_some()
        && live_key == pool.node_agent_secret_name.as_ref()
        && live_key == target.labels.get(NODE_AGENT_LABEL)
}

fn class_of(live: &LiveDeployment) -> &str {
    &live.object.spec.template.spec.class.name
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
    use serde_json::{Value, json};

    use super::*;
    use crate::provider::azure::Azure;
    use crate::provider::test_support::machine_plan;
    use crate::worker::machines::progress::progress;
    use crate::worker::plan::changes::MachineChanges;
    use crate::worker::plan::desired::DesiredState;
    use crate::worker::plan::desired::test_support::Objects;
    use crate::worker::plan::rolls::rolls;

    const NOW: &str = "2026-11-29T12:00:00Z";

    fn now() -> Timestamp {
        NOW.parse().unwrap()
    }

    /// A Worker whose pool `a` has this node agent Secret and this setting.
    fn objects(key: &str, setting: Option<&str>) -> Objects {
        let mut objects = Objects::new(&json!({}));
        objects.0.metadata.annotations = setting.map(|setting| [(ANNOTATION.to_owned(), setting.to_owned())].into());
        objects.0.spec.pools[0].node_agent_secret_name = Some(key.to_owned());
        objects.0.spec.pools[0].max_surge = IntOrString::Int(3);
        objects.0.spec.pools[0].max_unavailable = IntOrString::Int(2);
        objects
    }

    /// The plan of pool `a` in three zones, with this generation of its classes and this node agent Secret.
    fn plan(class: &str, key: &str) -> PoolPlan {
        let machine = |number: usize| {
            let mut machine = machine_plan();
            machine.deployment.name.0 = format!("a-z{number}");
            machine.deployment.class_name.0 = format!("a-{class}-z{number}");
            machine.deployment.secret_name.0 = format!("a-{class}-z{number}");
            machine.deployment.labels = [(NODE_AGENT_LABEL.to_owned(), key.to_owned())].into();
            machine
        };
        PoolPlan {
            pool: "a".to_owned(),
            machines: (1..=3).map(machine).collect(),
            status_image: json!({}),
            in_place_hash: None,
        }
    }

    /// The objects after these writes. All machines of the live classes run.
    fn written(changes: &[MachineChanges<'_>]) -> MachineObjects {
        let mut live = MachineObjects::default();
        for change in changes {
            let mut document = change.deployment.as_ref().map(|write| write.after().clone()).unwrap_or_default();
            document["status"] = json!({"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2,
                "conditions": [{"type": "Available", "status": "True"}]});
            settle(&mut live, document);
        }
        live
    }

    /// Adds a deployment with its machine set and two running machines.
    fn settle(live: &mut MachineObjects, document: Value) {
        let name = document["metadata"]["name"].as_str().unwrap().to_owned();
        let class = document["spec"]["template"]["spec"]["class"].clone();
        let owned = |name: &str, kind: &str, owner: &str| {
            let owner = json!({"apiVersion": "v1", "kind": kind, "name": owner, "uid": "u"});
            json!({"name": name, "ownerReferences": [owner]})
        };
        let spec = json!({"template": {"spec": {"class": class}}});
        let set = json!({"metadata": owned(&format!("{name}-set"), "MachineDeployment", &name), "spec": spec,
            "status": {"replicas": 2, "observedGeneration": 1}});
        live.machine_sets.push(serde_json::from_value(set).unwrap());
        for number in 0..2 {
            let metadata = owned(&format!("{name}-{number}"), "MachineSet", &format!("{name}-set"));
            let status = json!({"currentStatus": {"phase": "Running"}});
            let machine = json!({"metadata": metadata, "spec": {"class": class}, "status": status});
            live.machines.push(serde_json::from_value(machine).unwrap());
        }
        live.deployments.insert(name, LiveDeployment::read_without_codes(document).unwrap());
    }

    /// The objects of a steady Worker with the class `old` and the node agent Secret `k1`.
    fn steady(setting: Option<&str>) -> MachineObjects {
        let objects = objects("k1", setting);
        let desired = objects.desired(Ok(plan("old", "k1"))).with_bounds_of_pools();
        written(&desired.drift(&MachineObjects::default(), Timestamp::UNIX_EPOCH).changes)
    }

    fn gated<'a>(objects: &'a Objects, key: &str, live: &MachineObjects) -> DesiredState<'a> {
        objects.desired(Ok(plan("new", key))).with_gate(&Azure, Operation::Reconcile, live, now())
    }

    fn classes<'a>(desired: &'a DesiredState<'_>) -> Vec<&'a str> {
        desired.plan.machines().map(|machine| machine.deployment.class_name.0.as_str()).collect()
    }

    fn patch<'a>(change: &'a MachineChanges<'_>) -> &'a Value {
        let Some(crate::worker::plan::changes::Write::Patch { patch, .. }) = &change.deployment else {
            panic!("a patch")
        };
        patch
    }

    #[test]
    fn later_zones_wait_with_their_whole_template() {
        let objects = objects("k2", Some("*"));
        let live = steady(Some("*"));
        let desired = gated(&objects, "k2", &live);
        assert_eq!(classes(&desired), ["a-new-z1", "a-old-z2", "a-old-z3"]);
        let drift = desired.drift(&live, now());
        assert!(drift.changes[0].class.is_some() && drift.changes[0].secret.is_some());
        assert_eq!(patch(&drift.changes[0])["spec"]["template"]["spec"]["class"]["name"], "a-new-z1");
        for waiting in &drift.changes[1..] {
            assert!(waiting.class.is_none() && waiting.secret.is_none(), "only zone 1 gets a class");
            let record = patch(waiting)["metadata"]["annotations"].as_object().unwrap();
            assert_eq!((patch(waiting).as_object().unwrap().len(), record.len()), (1, 1), "{}", patch(waiting));
        }
        assert_eq!(rolls(&drift.changes, &live, &[]).len(), 1);
        let after = written(&drift.changes);
        let waiting = after.deployments["a-z2"].waits_since("a-new-z2");
        assert_eq!(waiting, Some(now()));
        let progress = progress(&desired.plan, "ns", &live, Hibernation::NotRequested);
        assert!(!progress.is_ready() && progress.deployments[1].phase == Phase::Waiting);
        assert!(progress.waiting_text().contains("old machine(s) still to go"), "{}", progress.waiting_text());
    }

    #[test]
    fn waiting_zone_takes_other_changes_if_the_key_stays() {
        let objects = objects("k1", Some("a"));
        let live = steady(Some("a"));
        let mut planned = plan("new", "k1");
        for machine in &mut planned.machines {
            machine.deployment.labels.insert("team".to_owned(), "x".to_owned());
        }
        let desired = objects.desired(Ok(planned)).with_gate(&Azure, Operation::Reconcile, &live, now());
        let drift = desired.drift(&live, now());
        let template = &patch(&drift.changes[1])["spec"]["template"];
        assert_eq!(*template, json!({"spec": {"nodeTemplate": {"metadata": {"labels": {"team": "x"}}}}}));
    }

    #[test]
    fn wait_is_written_once() {
        let objects = objects("k2", Some("*"));
        let live = steady(Some("*"));
        let first = gated(&objects, "k2", &live);
        let after = written(&first.drift(&live, now()).changes);
        let later = now() + SignedDuration::from_hours(1);
        let second = objects.desired(Ok(plan("new", "k2"))).with_gate(&Azure, Operation::Reconcile, &after, later);
        let drift = second.drift(&after, later);
        assert!(drift.changes[2].deployment.is_none(), "zone 3 still waits: {:?}", drift.changes[2].deployment);
        assert_eq!(classes(&second), ["a-new-z1", "a-new-z2", "a-old-z3"], "zone 1 is done");
        let zone = second.plan.waits.of("a-z3").unwrap();
        assert_eq!((zone.since, zone.is_new), (now(), false));
    }

    #[test]
    fn removed_setting_ends_waits_and_their_record() {
        let with = objects("k2", Some("*"));
        let live = steady(Some("*"));
        let after = written(&gated(&with, "k2", &live).drift(&live, now()).changes);
        let without = objects("k2", Some(""));
        let desired = gated(&without, "k2", &after);
        assert_eq!(classes(&desired), ["a-new-z1", "a-new-z2", "a-new-z3"]);
        let settled = written(&desired.drift(&after, now()).changes);
        assert_eq!(settled.deployments["a-z2"].waits_since("a-new-z2"), None);
        // The edit is reverted instead: the zones that waited have nothing to roll, and no record of a wait.
        let reverted = with.desired(Ok(plan("old", "k2"))).with_gate(&Azure, Operation::Reconcile, &after, now());
        let reverted = written(&reverted.drift(&after, now()).changes);
        assert_eq!(reverted.deployments["a-z2"].waits_since("a-new-z2"), None);
    }

    #[test]
    fn zone_that_lacks_a_machine_is_released() {
        let objects = objects("k2", Some("*"));
        let live = steady(Some("*"));
        let mut after = written(&gated(&objects, "k2", &live).drift(&live, now()).changes);
        let old = |number: usize| {
            json!({"metadata": {"name": format!("old-{number}"), "labels": {"name": "a-z1"}},
            "spec": {"class": {"name": "a-old-z1"}}})
        };
        after.machines.push(serde_json::from_value(old(0)).unwrap());
        assert_eq!(classes(&gated(&objects, "k2", &after)), ["a-new-z1", "a-old-z2", "a-old-z3"], "zone 1 rolls");
        after.machines.retain(|machine| *machine.member.name != *"a-z3-0");
        let desired = gated(&objects, "k2", &after);
        assert_eq!(classes(&desired), ["a-new-z1", "a-old-z2", "a-new-z3"]);
        let released = &desired.plan.waits.released;
        assert!(released.len() == 1 && released[0].lacks_machine && released[0].number == 3, "{released:?}");
    }

    #[test]
    fn cause_names_the_failing_zone() {
        let objects = objects("k2", Some("*"));
        let live = steady(Some("*"));
        let mut after = written(&gated(&objects, "k2", &live).drift(&live, now()).changes);
        after.machines.retain(|machine| *machine.member.class != *"a-new-z1");
        let failing = |text: &str| {
            let class = json!({"class": {"name": "a-new-z1"}});
            let metadata = json!({"name": "m", "labels": {"name": "a-z1"}});
            let status = json!({"lastOperation": {"type": "Create", "description": text}});
            serde_json::from_value(json!({"metadata": metadata, "spec": class, "status": status})).unwrap()
        };
        let mut document = after.deployments["a-z1"].document.clone();
        document["status"]["unavailableReplicas"] = json!(1);
        after.deployments.insert("a-z1".to_owned(), LiveDeployment::read_without_codes(document).unwrap());
        after.machines.push(failing("no such image"));
        let late = now() + SignedDuration::from_mins(21);
        let cause = |live: &MachineObjects| {
            let desired = objects.desired(Ok(plan("new", "k2"))).with_gate(&Azure, Operation::Reconcile, live, late);
            desired.plan.waits.pools[0].cause.clone()
        };
        let expected = WaitCause::Failing { zones: vec![1], failure: Some("no such image".to_owned()) };
        assert_eq!(cause(&after), expected);
        after.machines.pop();
        after.machines.push(failing("the quota is exceeded: quota exceeded"));
        assert_eq!(cause(&after), WaitCause::Rolling(vec![1]), "the class is not to blame");
    }

    #[test]
    fn nothing_differs_without_the_setting() {
        let live = steady(None);
        for setting in [None, Some(""), Some("b, c"), Some(" , ")] {
            let objects = objects("k2", setting);
            let plain = objects.desired(Ok(plan("new", "k2")));
            let gated = gated(&objects, "k2", &live);
            let documents = |desired: &DesiredState<'_>| json!([desired, desired.drift(&live, now())]);
            assert_eq!(documents(&gated), documents(&plain), "{setting:?}");
            assert!(!gated.depends_on_live_zones(), "{setting:?}");
        }
    }

    #[test]
    fn named_pool_has_undivided_bounds() {
        let objects = objects("k1", Some("b,a"));
        let desired = objects.desired(Ok(plan("old", "k1"))).with_bounds_of_pools();
        for machine in desired.plan.machines() {
            let bounds = json!(machine.deployment.strategy.rolling_update);
            assert_eq!(bounds, json!({"maxUnavailable": 2, "maxSurge": 3}));
        }
    }

    #[test]
    fn deleted_and_restored_shoots_have_no_waits() {
        let live = steady(Some("*"));
        let mut objects = objects("k2", Some("*"));
        let restored = objects.desired(Ok(plan("new", "k2"))).with_gate(&Azure, Operation::Restore, &live, now());
        assert_eq!(classes(&restored), ["a-new-z1", "a-new-z2", "a-new-z3"]);
        let metadata = json!({"deletionTimestamp": NOW});
        objects.2.metadata = serde_json::from_value(metadata).unwrap();
        let plain = objects.desired(Ok(plan("new", "k2")));
        let drift = |desired: &DesiredState<'_>| json!(desired.drift(&live, now()));
        assert_eq!(drift(&gated(&objects, "k2", &live)), drift(&plain));
    }

    #[test]
    fn annotation_of_worker_takes_precedence() {
        let mut objects = objects("k2", None);
        objects.2.metadata.annotations = Some([(ANNOTATION.to_owned(), "*".to_owned())].into());
        assert_eq!(ZoneByZone::of(&objects.0, &objects.2), ZoneByZone::All);
        objects.0.metadata.annotations = Some([(ANNOTATION.to_owned(), String::new())].into());
        assert!(!ZoneByZone::of(&objects.0, &objects.2).has_pool("a"));
        for (value, has_pool) in
            [(" * ", true), ("a", true), (" b , a", true), ("A", false), ("a b", false), ("*,", false)]
        {
            assert_eq!(ZoneByZone::of_value(value).has_pool("a"), has_pool, "{value:?}");
        }
    }
}
