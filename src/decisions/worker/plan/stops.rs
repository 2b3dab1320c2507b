//! Pure: rolls that a person has stopped with an annotation (docs/rollouts.md): which zones are paused or keep their class, and
//! the texts. [`gate`](crate::worker::plan::gate) decides, and `gated` applies its decisions.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::worker::machines::machine_objects::LiveDeployment;
use crate::worker::plan::class_inputs::annotate;
use crate::worker::plan::gate::PauseDecision;
use crate::worker::plan::named_pools::NamedPools;
use crate::worker::plan::zone_waits::{WaitingZone, quoted, seconds, zones_named};
use wire::api::gardener::{Shoot, Worker};

/// Annotation with the pools whose rolls are stopped: `*` or names separated by commas.
pub const STOP_ANNOTATION: &str = "gardener-extension-worker/stop-rolls";
/// Mark of MachineDeployments that this controller has paused. A pause without it belongs to a person.
pub const PAUSED_ANNOTATION: &str = "gardener-extension-worker/paused";
/// Reason while rolls are stopped.
pub const STOPPED: &str = "Stopped";

/// The pools whose rolls are stopped.
#[must_use]
pub fn stop_rolls(worker: &Worker, shoot: &Shoot) -> NamedPools {
    NamedPools::of(STOP_ANNOTATION, worker, shoot)
}

/// Stopped rolls of a plan.
#[derive(Clone, Debug, Default)]
pub struct Stops {
    /// Whether the annotation names a pool of the plan.
    pub is_in_use: bool,
    /// Pools with stopped rolls, in the order of the plan.
    pub pools: Vec<StoppedPool>,
    /// Pauses that this controller sets, keeps or ends, by name of the MachineDeployment.
    pub pauses: BTreeMap<String, PauseDecision>,
}

/// A pool whose roll is stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoppedPool {
    /// Name of the pool.
    pub pool: String,
    /// Its zones that keep their class, in the order of the pool.
    pub zones: Vec<WaitingZone>,
    /// Numbers of those that lack a machine, which their old class can't provide.
    pub lacking: Vec<usize>,
    /// Numbers of its paused zones.
    pub paused: Vec<usize>,
    /// When the first of its zones has waited for its turn for the longest time; `None` if its zones have no order.
    pub limit: Option<StopLimit>,
}

/// The time after which zones of a stopped pool no longer roll one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopLimit {
    /// The time.
    pub at: Timestamp,
    /// Whether it has passed.
    pub is_over: bool,
}

impl Stops {
    /// The zone of a MachineDeployment that keeps its class.
    #[must_use]
    pub fn of(&self, deployment: &str) -> Option<&WaitingZone> {
        self.pools.iter().flat_map(|pool| &pool.zones).find(|zone| zone.deployment == deployment)
    }

    /// Whether this controller keeps a MachineDeployment paused.
    #[must_use]
    pub fn is_paused(&self, deployment: &str) -> bool {
        self.pauses.get(deployment) == Some(&PauseDecision::Pause)
    }

    /// Sets or removes `paused` and its mark in the next state of a MachineDeployment, always both.
    pub(super) fn set_pause(&self, deployment: &str, target: &mut Value) {
        match self.pauses.get(deployment) {
            None | Some(PauseDecision::Keep) => {}
            Some(PauseDecision::Pause) => {
                target["spec"]["paused"] = json!(true);
                annotate(target, PAUSED_ANNOTATION, "true");
            }
            Some(PauseDecision::Resume) => {
                for (path, member) in [("/spec", "paused"), ("/metadata/annotations", PAUSED_ANNOTATION)] {
                    if let Some(Value::Object(members)) = target.pointer_mut(path) {
                        members.remove(member);
                    }
                }
            }
        }
    }

    /// The next time after which a text differs.
    #[must_use]
    pub fn next_end(&self) -> Option<Timestamp> {
        let limits = self.pools.iter().filter_map(|pool| pool.limit);
        limits.filter(|limit| !limit.is_over).map(|limit| limit.at).min()
    }
}

impl StoppedPool {
    /// Whether the message of a condition contains a stop of this pool.
    #[must_use]
    pub fn is_in_message(pool: &str, message: &str) -> bool {
        message.contains(&identity(pool))
    }

    /// Which zones are paused or keep their class, what that costs, and how it ends.
    #[must_use]
    pub fn text(&self) -> String {
        let mut parts = vec![identity(&self.pool)];
        if !self.paused.is_empty() {
            let verb = if self.paused.len() == 1 { "is" } else { "are" };
            parts.push(format!("{} {verb} paused", zones_named(&self.paused)));
        }
        let kept = self.numbers(|_| true);
        if !kept.is_empty() {
            let keep = if kept.len() == 1 { "keeps its" } else { "keep their" };
            parts.push(format!("{} {keep} class", zones_named(&kept)));
        }
        parts.extend(self.cost());
        parts.extend(self.limit.map(|limit| {
            let at = seconds(limit.at);
            match limit.is_over {
                false => format!("if the stop lasts beyond {at}, these zones roll at the same time when it ends"),
                true => {
                    format!("their six hours ended at {at}, so these zones roll at the same time when the stop ends")
                }
            }
        }));
        parts.join("; ")
    }

    /// The zones that no node can join.
    fn cost(&self) -> Option<String> {
        let closed = self.numbers(|zone| zone.keeps_template);
        if closed.is_empty() {
            return None;
        }
        let lack = if self.lacking.len() == 1 { "lacks" } else { "lack" };
        let lacking = match self.lacking.is_empty() {
            true => String::new(),
            false => format!(", and {} {lack} a machine", zones_named(&self.lacking)),
        };
        let (zones, pool) = (zones_named(&closed), quoted(&self.pool));
        Some(format!("no node can join {zones} of pool {pool} until the roll continues{lacking}"))
    }

    fn numbers(&self, is_meant: impl Fn(&WaitingZone) -> bool) -> Vec<usize> {
        self.zones.iter().filter(|zone| is_meant(zone)).map(|zone| zone.number).collect()
    }
}

/// The beginning of a pool's text, which stays the same as long as the pool is stopped.
fn identity(pool: &str) -> String {
    format!("pool {}: rolls are stopped by the annotation stop-rolls", quoted(pool))
}

impl LiveDeployment {
    /// Whether the MachineDeployment has the mark of a pause by this controller.
    #[must_use]
    pub fn has_pause_mark(&self) -> bool {
        self.object.metadata.annotations.as_ref().is_some_and(|names| names.contains_key(PAUSED_ANNOTATION))
    }
}

/// Stopped pools, for tests.
#[cfg(any(test, feature = "testing"))]
pub mod test_support {
    use super::*;
    use crate::worker::plan::zone_waits::test_support::waiting_pool;

    /// Zone 1 of pool `web` is paused, and zones 2 and 3 keep their class since this time.
    #[must_use]
    pub fn stopped_pool(since: Timestamp) -> StoppedPool {
        let zones = waiting_pool(since).zones;
        StoppedPool { pool: "web".to_owned(), zones, lacking: Vec::new(), paused: vec![1], limit: None }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::test_support::stopped_pool;
    use super::*;
    use crate::provider::PoolProblem;
    use crate::worker::machines::machine_objects::MachineObjects;
    use crate::worker::machines::progress::{Hibernation, Phase, progress};
    use crate::worker::plan::desired::DesiredState;
    use crate::worker::plan::desired::test_support::Objects;
    use crate::worker::plan::three_zones::{classes, inputs, now, objects, patch, plan, steady, written};
    use crate::worker::plan::zone_facts::GateInputs;
    use crate::worker::request::Operation;

    /// A Worker whose zones roll one after the other, with this stop.
    fn stopping(key: &str, stop: Option<&str>) -> Objects {
        let mut objects = objects(key, Some("*"));
        if let Some(stop) = stop {
            let annotations = objects.0.metadata.annotations.get_or_insert_default();
            annotations.insert(STOP_ANNOTATION.to_owned(), stop.to_owned());
        }
        objects
    }

    fn gated<'a>(objects: &'a Objects, live: &MachineObjects) -> DesiredState<'a> {
        let key = objects.0.spec.pools[0].node_agent_secret_name.clone().unwrap();
        objects.desired(Ok(plan("new", &key))).with_gate(&inputs(live, now()))
    }

    /// Zone 1 rolls to the class `new`, and zones 2 and 3 wait.
    fn rolling(key: &str) -> MachineObjects {
        let live = steady(Some("*"));
        let mut after = written(&gated(&stopping(key, None), &live).drift(&live, now()).changes);
        let old =
            json!({"metadata": {"name": "old", "labels": {"name": "a-z1"}}, "spec": {"class": {"name": "a-old-z1"}}});
        after.machines.push(serde_json::from_value(old).unwrap());
        after
    }

    /// The objects after the writes of MachineDeployments.
    fn after(desired: &DesiredState<'_>, live: &MachineObjects) -> MachineObjects {
        let mut after = live.clone();
        for change in desired.drift(live, now()).changes {
            let Some(write) = &change.deployment else { continue };
            let written = LiveDeployment::read_without_codes(write.after().clone()).unwrap();
            after.deployments.insert(change.machine.deployment.name.0.clone(), written);
        }
        after
    }

    fn edited(live: &MachineObjects, edit: impl Fn(&mut Value)) -> MachineObjects {
        let mut edited = live.clone();
        let mut document = edited.deployments["a-z1"].document.clone();
        edit(&mut document);
        edited.deployments.insert("a-z1".to_owned(), LiveDeployment::read_without_codes(document).unwrap());
        edited
    }

    fn pause_of(live: &MachineObjects) -> (bool, bool) {
        let zone = &live.deployments["a-z1"];
        (zone.object.spec.paused, zone.has_pause_mark())
    }

    #[test]
    fn stop_pauses_the_rolling_zone_only() {
        let objects = stopping("k2", Some("*"));
        let live = rolling("k2");
        let desired = gated(&objects, &live);
        assert_eq!(classes(&desired), ["a-new-z1", "a-old-z2", "a-old-z3"]);
        let drift = desired.drift(&live, now());
        let pause = json!({"metadata": {"annotations": {PAUSED_ANNOTATION: "true"}, "resourceVersion": null}, "spec": {"paused": true}});
        assert_eq!(*patch(&drift.changes[0]), pause, "in one write that conflicts with others");
        assert!(drift.changes[1..].iter().all(|change| !change.is_to_write()), "they wait already");
        let stopped = &desired.plan.stops.pools[0];
        assert_eq!((stopped.paused.as_slice(), stopped.zones.len()), (&[1][..], 2));
        assert!(desired.plan.waits.pools.is_empty() && desired.depends_on_live_zones());

        let paused = after(&desired, &live);
        assert_eq!(pause_of(&paused), (true, true));
        let again = gated(&objects, &paused);
        assert!(again.drift(&paused, now()).changes.iter().all(|change| change.deployment.is_none()), "once");
    }

    #[test]
    fn paused_zone_is_pending() {
        let live = rolling("k2");
        let objects = stopping("k2", Some("a"));
        let desired = gated(&objects, &live);
        let progress = progress(&desired.plan, "ns", &after(&desired, &live), Hibernation::NotRequested);
        let phases: Vec<&Phase> = progress.deployments.iter().map(|deployment| &deployment.phase).collect();
        assert_eq!(phases, [&Phase::Waiting; 3]);
        assert!(progress.untaken().is_empty());
    }

    #[test]
    fn end_of_stop_removes_pause_and_mark() {
        let live = rolling("k2");
        let stopping_objects = stopping("k2", Some("*"));
        let paused = after(&gated(&stopping_objects, &live), &live);
        for stop in [None, Some(""), Some("b")] {
            let objects = stopping("k2", stop);
            let resumed = gated(&objects, &paused);
            let drift = resumed.drift(&paused, now());
            let patch = patch(&drift.changes[0]);
            let resume = json!({"metadata": {"annotations": {PAUSED_ANNOTATION: null}, "resourceVersion": null}, "spec": {"paused": null}});
            assert_eq!(*patch, resume, "{stop:?}");
            assert!(resumed.plan.stops.pools.is_empty() && resumed.depends_on_live_zones());
            assert_eq!(pause_of(&after(&resumed, &paused)), (false, false));
        }
    }

    #[test]
    fn done_roll_is_resumed_under_the_stop() {
        let objects = stopping("k2", Some("*"));
        let live = rolling("k2");
        let mut paused = after(&gated(&objects, &live), &live);
        paused.machines.pop();
        let desired = gated(&objects, &paused);
        assert_eq!(pause_of(&after(&desired, &paused)), (false, false));
        assert_eq!(desired.plan.stops.pools[0].paused, [0; 0]);
    }

    #[test]
    fn pause_of_a_person_stays() {
        let live = edited(&rolling("k2"), |it| it["spec"]["paused"] = json!(true));
        for stop in [Some("*"), None] {
            let objects = stopping("k2", stop);
            let desired = gated(&objects, &live);
            assert_eq!(pause_of(&after(&desired, &live)), (true, false), "{stop:?}");
            assert!(desired.plan.stops.pools.iter().all(|pool| pool.paused.is_empty()));
        }
    }

    #[test]
    fn half_a_pause_is_completed_or_removed() {
        let live = edited(&rolling("k2"), |it| it["metadata"]["annotations"][PAUSED_ANNOTATION] = json!("true"));
        for (stop, expected) in [(Some("*"), (true, true)), (None, (false, false))] {
            let objects = stopping("k2", stop);
            assert_eq!(pause_of(&after(&gated(&objects, &live), &live)), expected);
        }
    }

    #[test]
    fn roll_that_has_not_started_keeps_everything() {
        let objects = stopping("k2", Some("a"));
        let live = steady(Some("*"));
        let desired = gated(&objects, &live);
        assert_eq!(classes(&desired), ["a-old-z1", "a-old-z2", "a-old-z3"]);
        let drift = desired.drift(&live, now());
        for change in &drift.changes {
            assert!(change.class.is_none() && change.secret.is_none());
            assert_eq!(patch(change).as_object().unwrap().len(), 1, "only the record: {}", patch(change));
        }
        let waiting = after(&desired, &live);
        assert_eq!(waiting.deployments["a-z1"].waits_since("a-new-z1"), Some(now()));
        assert!(desired.plan.stops.pools[0].paused.is_empty() && desired.plan.stops.pauses.is_empty());
        let pool = gated(&objects, &waiting).plan.stops.pools[0].clone();
        assert!(pool.zones.iter().all(|zone| zone.since == now() && !zone.is_new));
    }

    #[test]
    fn hibernation_and_restore_resume() {
        let live = rolling("k2");
        let mut objects = stopping("k2", Some("*"));
        let paused = after(&gated(&objects, &live), &live);
        let restore = GateInputs { operation: Operation::Restore, ..inputs(&paused, now()) };
        let restored = objects.desired(Ok(plan("new", "k2"))).with_gate(&restore);
        assert_eq!(pause_of(&after(&restored, &paused)), (false, false));
        assert_eq!(classes(&restored), ["a-new-z1", "a-new-z2", "a-new-z3"]);
        objects.2 = serde_json::from_value(json!({"spec": {"hibernation": {"enabled": true}}})).unwrap();
        assert_eq!(pause_of(&after(&gated(&objects, &paused), &paused)), (false, false));
    }

    /// Cases 47, 58 and 60 of the specification.
    #[test]
    fn deletions_and_unplanned_pools_keep_the_pause() {
        let live = rolling("k2");
        let mut objects = stopping("k2", Some("*"));
        let paused = after(&gated(&objects, &live), &live);
        for setting in [Some("*"), None] {
            let objects = stopping("k2", setting);
            let unplanned = objects.desired(Err(PoolProblem::VolumeMissing.of_pool("a")));
            let unplanned = unplanned.with_gate(&inputs(&paused, now()));
            assert!(unplanned.drift(&paused, now()).changes.is_empty() && !unplanned.plan.stops.is_in_use);
        }
        let metadata = json!({"deletionTimestamp": "2026-11-29T12:00:00Z"});
        objects.2.metadata = serde_json::from_value(metadata).unwrap();
        let desired = gated(&objects, &paused);
        assert_eq!(pause_of(&after(&desired, &paused)), (true, true));
        assert!(desired.plan.stops.pools.is_empty());
        assert_eq!(classes(&desired), ["a-new-z1", "a-new-z2", "a-new-z3"], "as without the setting");
    }

    #[test]
    fn nothing_differs_without_the_stop() {
        let live = rolling("k2");
        let plain = stopping("k2", None);
        let plain = gated(&plain, &live);
        for setting in [Some(""), Some("b, c"), Some(" , ")] {
            let objects = stopping("k2", setting);
            let gated = gated(&objects, &live);
            let documents = |desired: &DesiredState<'_>| json!([desired, desired.drift(&live, now())]);
            assert_eq!(documents(&gated), documents(&plain), "{setting:?}");
            assert!(!gated.plan.stops.is_in_use && gated.plan.stops.pauses.is_empty());
        }
    }

    #[test]
    fn text_states_the_cost() {
        let since: Timestamp = "2026-11-29T12:00:00Z".parse().unwrap();
        let mut pool = stopped_pool(since);
        let text = r#"pool "web": rolls are stopped by the annotation stop-rolls; zone 1 is paused; zones 2, 3 keep their class; no node can join zones 2, 3 of pool "web" until the roll continues"#;
        assert_eq!(pool.text(), text);
        pool.lacking = vec![3];
        assert!(pool.text().ends_with("until the roll continues, and zone 3 lacks a machine"), "{}", pool.text());
        pool.zones.iter_mut().for_each(|zone| zone.keeps_template = false);
        pool.lacking.clear();
        assert!(!pool.text().contains("no node can join"), "the old class provides machines: {}", pool.text());
        pool.zones.clear();
        pool.paused = vec![1, 2];
        let text = r#"pool "web": rolls are stopped by the annotation stop-rolls; zones 1, 2 are paused"#;
        assert_eq!(pool.text(), text);
        assert!(StoppedPool::is_in_message("web", text) && !StoppedPool::is_in_message("db", text));
    }

    #[test]
    fn text_states_the_end_of_six_hours() {
        let live = rolling("k2");
        let objects = stopping("k2", Some("*"));
        let text = |hours: i64| {
            let now = now() + SignedDuration::from_hours(hours);
            let desired = objects.desired(Ok(plan("new", "k2"))).with_gate(&inputs(&live, now));
            (desired.plan.stops.pools[0].text(), desired.plan.stops.next_end())
        };
        let end = "2026-11-29T18:00:00Z";
        let (before, again) = text(1);
        let expected = format!("if the stop lasts beyond {end}, these zones roll at the same time when it ends");
        assert!(before.ends_with(&expected), "{before}");
        assert_eq!(again, Some(end.parse().unwrap()));
        let (after, again) = text(7);
        let expected =
            format!("their six hours ended at {end}, so these zones roll at the same time when the stop ends");
        assert!(after.ends_with(&expected), "{after}");
        assert_eq!(again, None);
        let mut without_order = stopping("k2", Some("*"));
        without_order.0.metadata.annotations.as_mut().unwrap().retain(|name, _| name == STOP_ANNOTATION);
        let desired = without_order.desired(Ok(plan("new", "k2"))).with_gate(&inputs(&live, now()));
        assert_eq!(desired.plan.stops.pools[0].limit, None, "all zones roll at the same time in any case");
    }

    #[test]
    fn text_is_bounded_and_escaped() {
        let mut pool = stopped_pool(Timestamp::MAX);
        pool.pool = "\u{1b}[2J".repeat(500);
        let zone = pool.zones[0].clone();
        pool.zones = (0..5000).map(|number| WaitingZone { number, ..zone.clone() }).collect();
        (pool.paused, pool.lacking) = ((0..5000).collect(), (0..5000).collect());
        let text = pool.text();
        assert!(text.len() < 1500 && !text.contains('\u{1b}'), "{text}");
    }
}
