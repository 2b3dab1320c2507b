//! Pure: the budget for rolls that no owner requested (docs/rollouts.md): which pools are on hold, and which marks are
//! written. [`gate`](crate::worker::plan::gate) decides, and [`slots`](crate::worker::plan::slots) counts slots.

use std::collections::{BTreeMap, BTreeSet};

use crate::pool::names::ClassName;
use crate::provider::{MachinePlan, PoolPlan};
use crate::worker::machines::machine_objects::LiveDeployment;
use crate::worker::plan::class_inputs::{BudgetMembers, MarkChange, owner_digest};
use crate::worker::plan::gate::{GateVerdict, Mark, Pool, SwitchReason, Zone};
use crate::worker::plan::named_pools::NamedPools;
use crate::worker::plan::zone_waits::{quoted, zones_named};
use wire::api::bounded_text::{escaped, in_one_line, shortened};
use wire::api::gardener::{Shoot, Worker, WorkerPool};

/// Annotation with the pools whose rolls need no slot: `*` or names separated by commas.
pub const LET_ROLL_ANNOTATION: &str = "gardener-extension-worker/let-roll";
/// Reason while pools are on hold.
pub const BUDGET_USED_UP: &str = "BudgetUsedUp";
/// Maximum length of the name of a class in bytes.
const MOST_OF_CLASS: usize = 120;
/// Maximum length of a cause in bytes.
const MOST_OF_CAUSE: usize = 300;

/// The pools whose rolls need no slot.
#[must_use]
pub fn let_roll(worker: &Worker, shoot: &Shoot) -> NamedPools {
    NamedPools::of(LET_ROLL_ANNOTATION, worker, shoot)
}

/// The budget of the seed for one decision about a Worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RollBudget {
    /// At most this many pools of the seed have an unrequested roll in progress.
    pub limit: usize,
    /// Number of free slots.
    pub free: usize,
    /// Pools of the Worker with a reserved slot.
    pub reserved: BTreeSet<String>,
}

/// Decisions of the budget about a Worker.
#[derive(Clone, Debug, Default)]
pub struct BudgetDecisions {
    /// At most this many pools of the seed have an unrequested roll in progress; `None` if no budget is set.
    pub limit: Option<usize>,
    /// Pools on hold, in the order of the plan.
    pub held: Vec<HeldPool>,
    /// Pools that roll, with the reason why the budget does not hold them.
    pub released: Vec<ReleasedPool>,
    /// Names of the pools that use a slot and have no mark yet.
    pub taken: BTreeSet<String>,
    /// Marks to write, by name of the MachineDeployment.
    pub marks: BTreeMap<String, Mark>,
    /// Names of the pools that are done, so that their marks are removed.
    pub done: BTreeSet<String>,
}

/// A pool on hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldPool {
    /// Name of the pool.
    pub pool: String,
    /// Its zones on hold, in the order of the pool.
    pub zones: Vec<HeldZone>,
    /// Inputs of the class name that would change, in human-readable form.
    pub inputs: Vec<String>,
    /// At most this many pools of the seed have an unrequested roll in progress.
    pub limit: usize,
}

/// A zone on hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldZone {
    /// Name of its MachineDeployment.
    pub deployment: String,
    /// Its number in the pool, from 1.
    pub number: usize,
    /// Name of the class that it keeps.
    pub live_class: String,
    /// Name of the planned class.
    pub planned_class: String,
}

/// A pool that the budget does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleasedPool {
    /// Name of the pool.
    pub pool: String,
    /// Why it is not on hold.
    pub reason: ReleaseReason,
}

/// Why the budget does not hold a roll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseReason {
    /// It has a slot.
    Slot,
    /// `let-roll` names the pool.
    LetRoll,
    /// The name of the node agent Secret changes.
    KeyChanges,
    /// The owner has edited the pool.
    Requested,
}

impl BudgetDecisions {
    /// No decision yet.
    pub(super) fn with(budget: Option<&RollBudget>) -> Self {
        Self { limit: budget.map(|budget| budget.limit), ..Self::default() }
    }

    /// The hold of a MachineDeployment.
    #[must_use]
    pub fn hold_of(&self, deployment: &str) -> Option<&HeldZone> {
        self.held.iter().flat_map(|pool| &pool.zones).find(|zone| zone.deployment == deployment)
    }

    /// What the record of a MachineDeployment gets.
    #[must_use]
    pub(super) fn members(&self, machine: &MachinePlan, pool: &WorkerPool) -> BudgetMembers {
        if self.limit.is_none() {
            return BudgetMembers::Off;
        }
        let mark = match self.marks.get(&machine.deployment.name.0) {
            Some(mark) => MarkChange::Write(*mark),
            None if self.done.contains(&machine.deployment.pool_name) => MarkChange::Remove,
            None => MarkChange::Keep,
        };
        BudgetMembers::On { owner: owner_digest(pool), mark }
    }

    /// Records marks, slots and releases of a pool.
    pub(super) fn record(&mut self, planned: &PoolPlan, pool: &Pool<'_>, verdicts: &[GateVerdict]) {
        for ((machine, zone), verdict) in planned.machines.iter().zip(&pool.zones).zip(verdicts) {
            if let Some(mark) = pool.mark_to_write(zone, *verdict) {
                self.marks.insert(machine.deployment.name.0.clone(), mark);
            }
        }
        if pool.takes_slot(verdicts) {
            self.taken.insert(planned.pool.clone());
        }
        if pool.is_done() {
            self.done.insert(planned.pool.clone());
        }
        let zones = pool.zones.iter().zip(verdicts);
        let reason = zones.filter_map(|(zone, verdict)| release_reason(pool, zone, *verdict)).next();
        if let Some(reason) = reason {
            self.released.push(ReleasedPool { pool: planned.pool.clone(), reason });
        }
    }
}

fn release_reason(pool: &Pool<'_>, zone: &Zone<'_>, verdict: GateVerdict) -> Option<ReleaseReason> {
    match verdict {
        GateVerdict::Switch(SwitchReason::NoMachines)
        | GateVerdict::AsToday
        | GateVerdict::Stop(_)
        | GateVerdict::Hold
        | GateVerdict::Wait(_) => None,
        GateVerdict::Switch(_) if !zone.key_stays => Some(ReleaseReason::KeyChanges),
        GateVerdict::Switch(_) if zone.is_requested => Some(ReleaseReason::Requested),
        GateVerdict::Switch(_) => match pool.mark_to_write(zone, verdict)? {
            Mark::Budget => Some(ReleaseReason::Slot),
            Mark::Released => Some(ReleaseReason::LetRoll),
        },
    }
}

/// Puts the live classes of a pool on hold into its plan, with their names. A class that does not exist is created
/// under its name; an existing one stays.
pub(super) fn hold_pool(planned: &mut PoolPlan, held: &HeldPool) {
    for zone in &held.zones {
        let machine = planned.machines.iter_mut().find(|machine| machine.deployment.name.0 == zone.deployment);
        let Some(machine) = machine else { continue };
        let name = &zone.live_class;
        machine.deployment.class_name = ClassName(name.clone());
        machine.deployment.secret_name = ClassName(name.clone());
        machine.class.metadata.name = Some(name.clone());
        if let Some(reference) = &mut machine.class.secret_ref {
            reference.name = Some(name.clone());
        }
    }
}

impl HeldPool {
    /// Which zones keep which class. The text stays the same while the same zones are on hold for the same class.
    #[must_use]
    pub fn identity(&self) -> String {
        let pool = quoted(&self.pool);
        let numbers: Vec<usize> = self.zones.iter().map(|zone| zone.number).collect();
        let verb = if numbers.len() == 1 { "is" } else { "are" };
        let class = |name: &str| shortened(&escaped(&in_one_line(name)), MOST_OF_CLASS);
        let classes = self.zones.first().map_or_else(String::new, |zone| {
            format!(" ({} instead of {})", class(&zone.live_class), class(&zone.planned_class))
        });
        format!("pool {pool}: {} {verb} on hold{classes}", zones_named(&numbers))
    }

    /// Which zones keep which class, why, and when they roll.
    #[must_use]
    pub fn text(&self) -> String {
        let cause = if self.inputs.is_empty() {
            "not recorded".to_owned()
        } else {
            shortened(&escaped(&in_one_line(&self.inputs.join(", "))), MOST_OF_CAUSE)
        };
        let end = match self.limit {
            0 => "the budget is 0, so only the annotation let-roll starts the roll".to_owned(),
            1 => "the roll starts with a reconcile once the pool that rolls is done".to_owned(),
            limit => format!("the roll starts with a reconcile once one of {limit} pools that roll is done"),
        };
        format!("{}; cause: {cause}; {end}", self.identity())
    }
}

impl LiveDeployment {
    /// The mark of a roll that concerns the budget.
    #[must_use]
    pub fn mark(&self) -> Option<Mark> {
        self.history()?.mark
    }
}

/// A pool on hold, for tests.
#[cfg(any(test, feature = "testing"))]
pub mod test_support {
    use super::*;

    /// Zones 1 and 2 of pool `web` are on hold.
    #[must_use]
    pub fn held_pool() -> HeldPool {
        let zone = |number: usize| HeldZone {
            deployment: format!("shoot--p--s-web-z{number}"),
            number,
            live_class: format!("shoot--p--s-web-z{number}-11111"),
            planned_class: format!("shoot--p--s-web-z{number}-22222"),
        };
        HeldPool {
            pool: "web".to_owned(),
            zones: vec![zone(1), zone(2)],
            inputs: vec!["infrastructureProviderStatus.identity.id changed".to_owned()],
            limit: 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::test_support::held_pool;
    use super::*;
    use crate::provider::azure::Azure;
    use crate::worker::machines::machine_objects::{DigestedObject, MachineObjects};
    use crate::worker::machines::progress::{Hibernation, progress};
    use crate::worker::plan::changes::{MachineChanges, Write, class_document, class_secret};
    use crate::worker::plan::class_images::ImagePolicy;
    use crate::worker::plan::desired::DesiredState;
    use crate::worker::plan::desired::test_support::Objects;
    use crate::worker::plan::orphans::{MachineControllerManagerState, orphans};
    use crate::worker::plan::rolls::rolls;
    use crate::worker::plan::three_zones::{classes, inputs, now, objects, patch, plan, steady, written};
    use crate::worker::plan::zone_facts::GateInputs;
    use crate::worker::request::Operation;

    fn budget(limit: usize, free: usize) -> RollBudget {
        RollBudget { limit, free, reserved: BTreeSet::new() }
    }

    /// The desired state with the class `new` and the same node agent Secret.
    fn gated<'a>(objects: &'a Objects, live: &MachineObjects, budget: &RollBudget) -> DesiredState<'a> {
        let desired = objects.desired(Ok(plan("new", "k1")));
        desired.with_gate(&GateInputs { budget: Some(budget), ..inputs(live, now()) })
    }

    /// The live objects with the existing classes and Secrets of the class `old`.
    fn steady_with_classes() -> MachineObjects {
        let mut live = steady(None);
        for machine in plan("old", "k1").machines {
            let name = machine.deployment.class_name.0.clone();
            live.classes.insert(name.clone(), DigestedObject::class(class_document(&machine)).unwrap());
            live.class_secrets.insert(name, DigestedObject::secret(class_secret(&machine, "shoot--p--s")));
        }
        live
    }

    fn record(change: &MachineChanges<'_>) -> Value {
        let after = change.deployment.as_ref().unwrap().after();
        let text = after["metadata"]["annotations"][crate::worker::plan::class_inputs::ANNOTATION].as_str().unwrap();
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn pool_on_hold_keeps_classes_and_takes_other_changes() {
        let mut objects = objects("k1", None);
        objects.0.spec.pools[0].maximum = 9;
        let live = steady_with_classes();
        let desired = gated(&objects, &live, &budget(0, 0));
        assert_eq!(classes(&desired), ["a-old-z1", "a-old-z2", "a-old-z3"]);
        let drift = desired.drift(&live, now());
        for change in &drift.changes {
            assert!(change.class.is_none(), "the content of a class stays");
            assert!(patch(change).pointer("/spec/template").is_none(), "{}", patch(change));
            assert!(record(change)["g"][0]["o"].is_string() && record(change)["g"].as_array().unwrap().len() == 1);
        }
        assert!(rolls(&drift.changes, &live, &[]).is_empty());
        let progress = progress(&desired.plan, "ns", &live, Hibernation::NotRequested);
        assert!(progress.is_ready(), "{progress:?}");
        let orphans = orphans(&desired.plan, &live, MachineControllerManagerState::Running);
        assert!(orphans.is_empty(), "{orphans:?}");
        assert!(desired.plan.waits.pools.is_empty() && desired.depends_on_live_zones());
    }

    #[test]
    fn second_reconcile_on_hold_writes_nothing() {
        let objects = objects("k1", None);
        let live = steady_with_classes();
        let first = gated(&objects, &live, &budget(1, 0));
        let mut after = written(&first.drift(&live, now()).changes);
        (after.classes, after.class_secrets) = (live.classes.clone(), live.class_secrets.clone());
        let second = gated(&objects, &after, &budget(1, 0));
        assert_eq!(classes(&second), ["a-old-z1", "a-old-z2", "a-old-z3"]);
        assert!(!second.drift(&after, now()).changes.iter().any(MachineChanges::is_to_write));
        let images = second.with_images(&Azure, ImagePolicy::Report, &after);
        assert_eq!(images.image_drifts().count(), 0, "a class on hold is not compared");
    }

    #[test]
    fn secret_on_hold_follows_the_user_data() {
        let objects = objects("k1", None);
        let live = steady_with_classes();
        let none = budget(0, 0);
        let mut planned = plan("new", "k1");
        planned.machines[0].user_data.0 = b"a newer CA bundle".to_vec();
        let desired = objects.desired(Ok(planned));
        let desired = desired.with_gate(&GateInputs { budget: Some(&none), ..inputs(&live, now()) });
        let drift = desired.drift(&live, now());
        let Some(Write::Replace(secret)) = &drift.changes[0].secret else { panic!("it differs") };
        assert_eq!(secret.metadata.name.as_deref(), Some("a-old-z1"));
        assert_eq!(secret.data.as_ref().unwrap()["userData"].0, b"a newer CA bundle");
        assert!(drift.changes[0].class.is_none() && drift.changes[1].secret.is_none());
    }

    #[test]
    fn missing_class_on_hold_is_created_under_its_name() {
        let objects = objects("k1", None);
        let mut live = steady_with_classes();
        live.classes.remove("a-old-z1");
        live.class_secrets.remove("a-old-z1");
        let desired = gated(&objects, &live, &budget(0, 0));
        let drift = desired.drift(&live, now());
        let Some(Write::Create(class)) = &drift.changes[0].class else { panic!("it does not exist") };
        assert_eq!(class["metadata"]["name"], "a-old-z1");
        let Some(Write::Create(secret)) = &drift.changes[0].secret else { panic!("it does not exist") };
        assert_eq!(secret.metadata.name.as_deref(), Some("a-old-z1"));
        assert!(drift.changes[1].class.is_none());
    }

    #[test]
    fn free_slot_writes_the_mark_with_the_class() {
        let objects = objects("k1", None);
        let live = steady_with_classes();
        let desired = gated(&objects, &live, &budget(1, 1));
        assert_eq!(classes(&desired), ["a-new-z1", "a-new-z2", "a-new-z3"]);
        assert!(desired.plan.budget.taken.contains("a") && desired.plan.budget.held.is_empty());
        let reason = ReleasedPool { pool: "a".to_owned(), reason: ReleaseReason::Slot };
        assert_eq!(desired.plan.budget.released, [reason]);
        let drift = desired.drift(&live, now());
        for change in &drift.changes {
            assert_eq!(
                (&record(change)["u"], &record(change)["g"][0]["o"]),
                (&json!("budget"), &json!(owner(&objects)))
            );
            assert!(patch(change)["spec"]["template"]["spec"]["class"]["name"].is_string());
        }
        // The roll is done.
        let after = written(&drift.changes);
        let done = gated(&objects, &after, &budget(1, 0));
        let changes = done.drift(&after, now()).changes;
        let without_mark = changes.iter().filter(|change| record(change).get("u").is_none());
        assert_eq!(without_mark.count(), 3, "the marks are removed");
    }

    fn owner(objects: &Objects) -> String {
        owner_digest(&objects.0.spec.pools[0])
    }

    #[test]
    fn reserved_slot_is_the_pools_own() {
        let objects = objects("k1", None);
        let live = steady_with_classes();
        let reserved = RollBudget { reserved: ["a".to_owned()].into(), ..budget(1, 0) };
        assert_eq!(classes(&gated(&objects, &live, &reserved)), ["a-new-z1", "a-new-z2", "a-new-z3"]);
    }

    #[test]
    fn annotation_releases_without_a_slot() {
        let mut objects = objects("k1", None);
        objects.0.metadata.annotations = Some([(LET_ROLL_ANNOTATION.to_owned(), "b, a".to_owned())].into());
        let live = steady_with_classes();
        let desired = gated(&objects, &live, &budget(0, 0));
        assert_eq!(desired.plan.budget.released[0].reason, ReleaseReason::LetRoll);
        assert!(desired.plan.budget.taken.is_empty());
        assert_eq!(record(&desired.drift(&live, now()).changes[0])["u"], "released");
    }

    #[test]
    fn edit_of_the_owner_is_never_held() {
        let mut objects = objects("k1", None);
        let live = steady_with_classes();
        let held = gated(&objects, &live, &budget(0, 0));
        let after = written(&held.drift(&live, now()).changes);
        objects.0.spec.pools[0].data_volumes = vec![wire::api::gardener::DataVolume::default()];
        let requested = gated(&objects, &after, &budget(0, 0));
        assert_eq!(classes(&requested), ["a-new-z1", "a-new-z2", "a-new-z3"]);
        assert_eq!(requested.plan.budget.released[0].reason, ReleaseReason::Requested);
        let records = requested.drift(&after, now()).changes.iter().map(record).collect::<Vec<_>>();
        assert!(records.iter().all(|record| record.get("u").is_none()), "no mark: {records:?}");
    }

    #[test]
    fn changed_key_is_never_held() {
        let objects = objects("k2", None);
        let live = steady_with_classes();
        let none = budget(0, 0);
        let desired = objects.desired(Ok(plan("new", "k2")));
        let desired = desired.with_gate(&GateInputs { budget: Some(&none), ..inputs(&live, now()) });
        assert_eq!(classes(&desired), ["a-new-z1", "a-new-z2", "a-new-z3"]);
        assert_eq!(desired.plan.budget.released[0].reason, ReleaseReason::KeyChanges);
    }

    #[test]
    fn restored_shoots_are_never_held() {
        let objects = objects("k1", None);
        let live = steady_with_classes();
        let none = budget(0, 0);
        let inputs = GateInputs { operation: Operation::Restore, budget: Some(&none), ..inputs(&live, now()) };
        let restored = objects.desired(Ok(plan("new", "k1"))).with_gate(&inputs);
        assert_eq!(classes(&restored), ["a-new-z1", "a-new-z2", "a-new-z3"]);
        assert!(restored.plan.budget.taken.is_empty());
    }

    #[test]
    fn removed_budget_removes_marks() {
        let objects = objects("k1", None);
        let live = steady_with_classes();
        let marked = written(&gated(&objects, &live, &budget(1, 1)).drift(&live, now()).changes);
        assert_eq!(marked.deployments["a-z1"].mark(), Some(Mark::Budget));
        let without = objects.desired(Ok(plan("new", "k1"))).with_gate(&inputs(&marked, now()));
        let after = written(&without.drift(&marked, now()).changes);
        assert_eq!(after.deployments["a-z1"].mark(), None);
    }

    #[test]
    fn nothing_changes_without_a_roll_except_owners() {
        let objects = objects("k1", None);
        let live = steady_with_classes();
        let desired = objects.desired(Ok(plan("old", "k1")));
        let any = budget(3, 3);
        let gated = desired.clone().with_gate(&GateInputs { budget: Some(&any), ..inputs(&live, now()) });
        assert_eq!(json!(gated), json!(desired));
        let after = written(&gated.drift(&live, now()).changes);
        let second = desired.with_gate(&GateInputs { budget: Some(&any), ..inputs(&after, now()) });
        assert!(second.drift(&after, now()).changes.iter().all(|change| change.deployment.is_none()));
    }

    #[test]
    fn text_names_classes_cause_and_end() {
        let mut pool = held_pool();
        let text = r#"pool "web": zones 1, 2 are on hold (shoot--p--s-web-z1-11111 instead of shoot--p--s-web-z1-22222); cause: infrastructureProviderStatus.identity.id changed; the roll starts with a reconcile once one of 3 pools that roll is done"#;
        assert_eq!(pool.text(), text);
        pool.limit = 0;
        assert!(pool.text().ends_with("the budget is 0, so only the annotation let-roll starts the roll"));
        pool.pool = "\u{1b}[2J".repeat(500);
        pool.zones = (0..5000).map(|number| HeldZone { number, ..pool.zones[0].clone() }).collect();
        pool.zones[0].live_class = "\u{1b}".repeat(5000);
        pool.inputs = vec!["\u{1b}".repeat(5000)];
        let text = pool.text();
        assert!(text.len() < 1300 && !text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn members_are_off_without_a_budget() {
        let objects = objects("k1", None);
        let machine = &plan("new", "k1").machines[0];
        let members = BudgetDecisions::default().members(machine, &objects.0.spec.pools[0]);
        assert_eq!(members, BudgetMembers::Off);
    }
}
