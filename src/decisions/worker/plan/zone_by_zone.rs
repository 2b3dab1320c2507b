//! Pure step: lets the zones of a pool roll one after the other, if an annotation of the Worker or its Shoot names the pool.
//! [`gate`](crate::worker::plan::gate) decides, and `gated` applies its decisions.
//!
//! In a named pool, every zone has the surge and unavailability of the whole pool, because usually only one zone rolls.

use jiff::Timestamp;

use crate::pool::names::ClassName;
use crate::provider::{MachinePlan, PoolPlan, WorkerContext};
use crate::worker::plan::Plan;
use crate::worker::plan::gate::{GateVerdict, Pool, SwitchReason, Zone};
use crate::worker::plan::named_pools::NamedPools;
use crate::worker::plan::zone_facts::{ZoneFacts, class_of};
use crate::worker::plan::zone_waits::{ReleasedZone, WaitCause, WaitingPool, WaitingZone};
use wire::api::gardener::{Shoot, Worker};
use wire::api::machine::RollingUpdateStrategy;

/// Annotation with the pools whose zones roll one after the other: `*` or names separated by commas.
pub const ANNOTATION: &str = "gardener-extension-worker/zone-by-zone";

/// The pools whose zones roll one after the other, unless their machines are updated in place.
#[must_use]
pub fn zone_by_zone(worker: &Worker, shoot: &Shoot) -> NamedPools {
    NamedPools::of(ANNOTATION, worker, shoot)
}

/// Gives every zone of the named pools the surge and unavailability of the whole pool.
pub(super) fn set_whole_bounds(context: &WorkerContext<'_>, plan: &mut Plan) {
    let setting = zone_by_zone(context.worker, context.shoot);
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

/// Puts the live class of zones that wait or are stopped into the plan of their pool.
pub(super) fn hold_waiting_zones(planned: &mut PoolPlan, zones: &[WaitingZone], facts: &ZoneFacts<'_>) {
    for zone in zones {
        let Some(deployment) = facts.live.deployments.get(&zone.deployment) else { continue };
        let machine = planned.machines.iter_mut().find(|machine| machine.deployment.name.0 == zone.deployment);
        if let Some(machine) = machine {
            machine.deployment.class_name = ClassName(class_of(deployment).to_owned());
        }
    }
}

/// The zones that no longer wait although it is not their turn.
pub(super) fn released_zones(planned: &PoolPlan, pool: &Pool<'_>, verdicts: &[GateVerdict]) -> Vec<ReleasedZone> {
    let zones = planned.machines.iter().zip(&pool.zones).zip(verdicts).enumerate();
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

/// The zones that wait, unless there are none.
pub(super) fn waiting_pool(
    planned: &PoolPlan,
    pool: &Pool<'_>,
    verdicts: &[GateVerdict],
    facts: &ZoneFacts<'_>,
) -> Option<WaitingPool> {
    let zones = planned.machines.iter().zip(&pool.zones).zip(verdicts).enumerate();
    let zones = zones.filter_map(|(index, ((machine, zone), verdict))| match verdict {
        GateVerdict::Wait(since) => Some(waiting_zone(index, machine, zone, *since)),
        GateVerdict::AsToday | GateVerdict::Switch(_) | GateVerdict::Stop(_) | GateVerdict::Hold => None,
    });
    let zones: Vec<WaitingZone> = zones.collect();
    (!zones.is_empty()).then(|| {
        let cause = wait_cause(planned, pool, verdicts, facts);
        WaitingPool { pool: planned.pool.clone(), zones, cause }
    })
}

/// A zone that keeps its live class since this time. `index` is its place in the pool.
pub(super) fn waiting_zone(index: usize, machine: &MachinePlan, zone: &Zone<'_>, since: Timestamp) -> WaitingZone {
    WaitingZone {
        deployment: machine.deployment.name.0.clone(),
        number: index + 1,
        planned_class: machine.deployment.class_name.0.clone(),
        since,
        keeps_template: !zone.key_stays,
        is_new: zone.waits_since.is_none(),
    }
}

fn wait_cause(planned: &PoolPlan, pool: &Pool<'_>, verdicts: &[GateVerdict], facts: &ZoneFacts<'_>) -> WaitCause {
    let failing: Vec<usize> = pool.failing(facts.now).collect();
    if let Some(first) = failing.first() {
        let failure = facts.failure(&planned.machines[*first].deployment);
        return WaitCause::Failing { zones: failing.iter().map(|index| index + 1).collect(), failure };
    }
    let zones = pool.zones.iter().zip(verdicts).enumerate();
    let rolling = zones.filter(|(_, (zone, verdict))| zone.is_rolling() || matches!(verdict, GateVerdict::Switch(_)));
    WaitCause::Rolling(rolling.map(|(index, _)| index + 1).collect())
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use serde_json::json;

    use super::*;
    use crate::worker::machines::machine_objects::{LiveDeployment, MachineObjects};
    use crate::worker::machines::progress::{Hibernation, Phase, progress};
    use crate::worker::plan::desired::DesiredState;
    use crate::worker::plan::desired::test_support::Objects;
    use crate::worker::plan::rolls::rolls;
    use crate::worker::plan::three_zones::{NOW, classes, inputs, now, objects, patch, plan, steady, written};
    use crate::worker::plan::zone_facts::GateInputs;
    use crate::worker::request::Operation;

    fn gated<'a>(objects: &'a Objects, key: &str, live: &MachineObjects) -> DesiredState<'a> {
        objects.desired(Ok(plan("new", key))).with_gate(&inputs(live, now()))
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
        let desired = objects.desired(Ok(planned)).with_gate(&inputs(&live, now()));
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
        let second = objects.desired(Ok(plan("new", "k2"))).with_gate(&inputs(&after, later));
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
        let reverted = with.desired(Ok(plan("old", "k2"))).with_gate(&inputs(&after, now()));
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
            let desired = objects.desired(Ok(plan("new", "k2"))).with_gate(&inputs(live, late));
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
        let restored = objects
            .desired(Ok(plan("new", "k2")))
            .with_gate(&GateInputs { operation: Operation::Restore, ..inputs(&live, now()) });
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
        assert_eq!(zone_by_zone(&objects.0, &objects.2), NamedPools::All);
        objects.0.metadata.annotations = Some([(ANNOTATION.to_owned(), String::new())].into());
        assert!(!zone_by_zone(&objects.0, &objects.2).has_pool("a"));
        for (value, has_pool) in
            [(" * ", true), ("a", true), (" b , a", true), ("A", false), ("a b", false), ("*,", false)]
        {
            assert_eq!(NamedPools::of_value(value).has_pool("a"), has_pool, "{value:?}");
        }
    }
}
