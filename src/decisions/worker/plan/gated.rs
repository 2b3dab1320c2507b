//! Pure step: asks the gate about the pools that a setting concerns, and applies its decisions to the plan.
//!
//! ```text
//!  plan + live objects ─► facts about zones ─► gate ─► the live class in the plan where a zone waits or is on hold,
//!                                                      ZoneWaits and BudgetDecisions
//! ```

use jiff::Timestamp;

use crate::provider::{PoolPlan, Provider, WorkerContext};
use crate::worker::machines::machine_objects::{LiveDeployment, MachineObjects};
use crate::worker::plan::Plan;
use crate::worker::plan::gate::PoolBudget;
use crate::worker::plan::named_pools::NamedPools;
use crate::worker::plan::roll_budget::{BudgetDecisions, RollBudget, hold_pool, let_roll};
use crate::worker::plan::zone_by_zone::{hold_waiting_zones, released_zones, waiting_pool, zone_by_zone};
use crate::worker::plan::zone_facts::{PoolSettings, ZoneFacts, class_of};
use crate::worker::plan::zone_waits::ZoneWaits;
use crate::worker::request::Operation;

/// Inputs of the gate in addition to the plan.
#[derive(Clone, Copy)]
pub struct GateInputs<'a> {
    /// Provider of the Worker.
    pub provider: &'a dyn Provider,
    /// The operation.
    pub operation: Operation,
    /// The live objects.
    pub live: &'a MachineObjects,
    /// The time.
    pub now: Timestamp,
    /// The budget with its free slots; `None` without `--roll-budget`.
    pub budget: Option<&'a RollBudget>,
}

/// The settings of a Worker.
struct Settings<'a> {
    zone_by_zone: NamedPools,
    let_roll: NamedPools,
    budget: Option<&'a RollBudget>,
    /// Free slots that are left.
    free: usize,
}

/// Puts the live class of each zone that waits or is on hold into the plan, with the decisions.
pub(super) fn apply_gate(context: &WorkerContext<'_>, plan: &mut Plan, inputs: &GateInputs<'_>) {
    let mut settings = Settings {
        zone_by_zone: zone_by_zone(context.worker, context.shoot),
        let_roll: let_roll(context.worker, context.shoot),
        budget: inputs.budget,
        free: inputs.budget.map_or(0, |budget| budget.free),
    };
    let mut waits = ZoneWaits::default();
    let mut budget = BudgetDecisions::with(inputs.budget);
    waits.is_in_use = plan.pools.iter().flatten().any(|planned| settings.zone_by_zone.has_pool(&planned.pool));
    let is_concerned = |planned: &PoolPlan| {
        settings.zone_by_zone.has_pool(&planned.pool)
            || inputs.budget.is_some() && concerns_budget(planned, inputs.live)
    };
    let concerned: Vec<bool> = plan.pools.iter().map(|pool| pool.as_ref().is_ok_and(is_concerned)).collect();
    if concerned.contains(&true) {
        let facts = ZoneFacts::of(context, inputs);
        let pools = plan.pools.iter_mut().zip(concerned).filter(|(_, is_concerned)| *is_concerned);
        for planned in pools.filter_map(|(pool, _)| pool.as_mut().ok()) {
            settings.apply_to_pool(context, planned, &facts, (&mut waits, &mut budget));
        }
    }
    plan.waits = waits;
    plan.budget = budget;
}

/// Whether a zone of the pool has another class than planned, or a mark.
fn concerns_budget(planned: &PoolPlan, live: &MachineObjects) -> bool {
    planned.machines.iter().any(|machine| {
        let target = &machine.deployment;
        let concerns = |live: &LiveDeployment| class_of(live) != target.class_name.0 || live.mark().is_some();
        live.deployments.get(&target.name.0).is_some_and(concerns)
    })
}

impl Settings<'_> {
    fn apply_to_pool(
        &mut self,
        context: &WorkerContext<'_>,
        planned: &mut PoolPlan,
        facts: &ZoneFacts<'_>,
        (waits, budget): (&mut ZoneWaits, &mut BudgetDecisions),
    ) {
        let Some(pool) = context.pool(&planned.pool) else { return };
        let is_zone_by_zone = self.zone_by_zone.has_pool(&planned.pool);
        let settings = PoolSettings { pool, is_zone_by_zone, budget: self.budget_of(&planned.pool) };
        let (waiting, held) = {
            let pool = facts.pool(planned, &settings);
            let verdicts = pool.gate(facts.now);
            waits.released.extend(released_zones(planned, &pool, &verdicts));
            if budget.limit.is_some() {
                budget.record(planned, &pool, &verdicts);
            }
            let held = budget.held_pool(planned, &pool, &verdicts, facts, context);
            (waiting_pool(planned, &pool, &verdicts, facts), held)
        };
        if budget.taken.contains(&planned.pool) && !self.has_reserved(&planned.pool) {
            self.free = self.free.saturating_sub(1);
        }
        if let Some(held) = held {
            hold_pool(planned, &held);
            budget.held.push(held);
        }
        if let Some(waiting) = waiting {
            hold_waiting_zones(planned, &waiting, facts);
            waits.pools.push(waiting);
        }
    }

    fn budget_of(&self, pool: &str) -> Option<PoolBudget> {
        self.budget?;
        Some(if self.let_roll.has_pool(pool) {
            PoolBudget::LetRoll
        } else if self.free > 0 || self.has_reserved(pool) {
            PoolBudget::FreeSlot
        } else {
            PoolBudget::NoSlot
        })
    }

    fn has_reserved(&self, pool: &str) -> bool {
        self.budget.is_some_and(|budget| budget.reserved.contains(pool))
    }
}

/// Pool `a` in three zones, for tests.
#[cfg(test)]
pub(super) mod test_support {
    use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
    use serde_json::{Value, json};

    use super::*;
    use crate::provider::azure::Azure;
    use crate::provider::test_support::machine_plan;
    use crate::worker::plan::changes::{MachineChanges, Write};
    use crate::worker::plan::desired::DesiredState;
    use crate::worker::plan::desired::test_support::Objects;
    use crate::worker::plan::zone_by_zone::ANNOTATION;
    use crate::worker::plan::zone_facts::NODE_AGENT_LABEL;

    /// Inputs of a reconcile without a budget.
    pub(in crate::worker::plan) fn inputs(live: &MachineObjects, now: Timestamp) -> GateInputs<'_> {
        GateInputs { provider: &Azure, operation: Operation::Reconcile, live, now, budget: None }
    }

    pub(in crate::worker::plan) const NOW: &str = "2026-11-29T12:00:00Z";

    pub(in crate::worker::plan) fn now() -> Timestamp {
        NOW.parse().unwrap()
    }

    /// A Worker whose pool `a` has this node agent Secret and this setting.
    pub(in crate::worker::plan) fn objects(key: &str, setting: Option<&str>) -> Objects {
        let mut objects = Objects::new(&json!({}));
        objects.0.metadata.annotations = setting.map(|setting| [(ANNOTATION.to_owned(), setting.to_owned())].into());
        objects.0.spec.pools[0].node_agent_secret_name = Some(key.to_owned());
        objects.0.spec.pools[0].max_surge = IntOrString::Int(3);
        objects.0.spec.pools[0].max_unavailable = IntOrString::Int(2);
        objects
    }

    /// The plan of pool `a` in three zones, with this generation of its classes and this node agent Secret.
    pub(in crate::worker::plan) fn plan(class: &str, key: &str) -> PoolPlan {
        let machine = |number: usize| {
            let mut machine = machine_plan();
            machine.deployment.name.0 = format!("a-z{number}");
            machine.deployment.class_name.0 = format!("a-{class}-z{number}");
            machine.deployment.secret_name.0 = format!("a-{class}-z{number}");
            machine.class.metadata.name = Some(format!("a-{class}-z{number}"));
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
    pub(in crate::worker::plan) fn written(changes: &[MachineChanges<'_>]) -> MachineObjects {
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
    pub(in crate::worker::plan) fn settle(live: &mut MachineObjects, document: Value) {
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
    pub(in crate::worker::plan) fn steady(setting: Option<&str>) -> MachineObjects {
        let objects = objects("k1", setting);
        let desired = objects.desired(Ok(plan("old", "k1"))).with_bounds_of_pools();
        written(&desired.drift(&MachineObjects::default(), Timestamp::UNIX_EPOCH).changes)
    }

    pub(in crate::worker::plan) fn classes<'a>(desired: &'a DesiredState<'_>) -> Vec<&'a str> {
        desired.plan.machines().map(|machine| machine.deployment.class_name.0.as_str()).collect()
    }

    pub(in crate::worker::plan) fn patch<'a>(change: &'a MachineChanges<'_>) -> &'a Value {
        let Some(Write::Patch { patch, .. }) = &change.deployment else { panic!("a patch") };
        patch
    }
}
