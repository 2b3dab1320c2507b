//! Pure step: asks the gate about the pools that a setting concerns, and applies its decisions to the plan.
//!
//! ```text
//!  plan + live objects ─► facts about zones ─► gate ─► the live class in the plan where a zone waits, is stopped or is
//!                                                      on hold; ZoneWaits, Stops and BudgetDecisions
//! ```

use jiff::Timestamp;

use crate::provider::{MachinePlan, PoolPlan, WorkerContext};
use crate::worker::machines::machine_objects::{LiveDeployment, MachineObjects};
use crate::worker::plan::Plan;
use crate::worker::plan::class_inputs::{inputs_of, record_with};
use crate::worker::plan::gate::{GateVerdict, PauseDecision, Pool, PoolBudget, WAIT_LIMIT, Zone};
use crate::worker::plan::named_pools::NamedPools;
use crate::worker::plan::roll_budget::{BudgetDecisions, HeldPool, HeldZone, RollBudget, hold_pool, let_roll};
use crate::worker::plan::rolls::cause_of;
use crate::worker::plan::stops::{StopLimit, StoppedPool, Stops, stop_rolls};
use crate::worker::plan::zone_by_zone::{hold_waiting_zones, released_zones, waiting_pool, waiting_zone, zone_by_zone};
use crate::worker::plan::zone_facts::{GateInputs, PoolSettings, ZoneFacts, class_of};
use crate::worker::plan::zone_waits::{WaitingZone, ZoneWaits};

/// The settings of a Worker.
struct Settings<'a> {
    zone_by_zone: NamedPools,
    stop: NamedPools,
    let_roll: NamedPools,
    budget: Option<&'a RollBudget>,
    /// Free slots that are left.
    free: usize,
}

/// Decisions of the gate about a Worker.
#[derive(Default)]
struct Decisions {
    waits: ZoneWaits,
    stops: Stops,
    budget: BudgetDecisions,
}

/// Puts the live class of each zone that waits, is stopped or is on hold into the plan, with the decisions.
pub(super) fn apply_gate(context: &WorkerContext<'_>, plan: &mut Plan, inputs: &GateInputs<'_>) {
    let mut settings = Settings {
        zone_by_zone: zone_by_zone(context.worker, context.shoot),
        stop: stop_rolls(context.worker, context.shoot),
        let_roll: let_roll(context.worker, context.shoot),
        budget: inputs.budget,
        free: inputs.budget.map_or(0, |budget| budget.free),
    };
    let mut decisions = Decisions { budget: BudgetDecisions::with(inputs.budget), ..Decisions::default() };
    let names_pool = |setting: &NamedPools| plan.pools.iter().flatten().any(|planned| setting.has_pool(&planned.pool));
    decisions.waits.is_in_use = names_pool(&settings.zone_by_zone);
    decisions.stops.is_in_use = names_pool(&settings.stop);
    let is_concerned = |planned: &PoolPlan| {
        settings.zone_by_zone.has_pool(&planned.pool)
            || settings.stop.has_pool(&planned.pool)
            || has_pause_mark(planned, inputs.live)
            || inputs.budget.is_some() && concerns_budget(planned, inputs.live)
    };
    let concerned: Vec<bool> = plan.pools.iter().map(|pool| pool.as_ref().is_ok_and(is_concerned)).collect();
    if concerned.contains(&true) {
        let facts = ZoneFacts::of(context, inputs);
        let pools = plan.pools.iter_mut().zip(concerned).filter(|(_, is_concerned)| *is_concerned);
        for planned in pools.filter_map(|(pool, _)| pool.as_mut().ok()) {
            settings.apply_to_pool(planned, &facts, &mut decisions);
        }
    }
    plan.waits = decisions.waits;
    plan.stops = decisions.stops;
    plan.budget = decisions.budget;
}

/// Whether this controller has paused a zone of the pool.
fn has_pause_mark(planned: &PoolPlan, live: &MachineObjects) -> bool {
    let mut live = planned.machines.iter().filter_map(|machine| live.deployments.get(&machine.deployment.name.0));
    live.any(LiveDeployment::has_pause_mark)
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
    fn apply_to_pool(&mut self, planned: &mut PoolPlan, facts: &ZoneFacts<'_>, decisions: &mut Decisions) {
        let Some(pool) = facts.context.pool(&planned.pool) else { return };
        let settings = PoolSettings {
            pool,
            is_zone_by_zone: self.zone_by_zone.has_pool(&planned.pool),
            is_stopped: self.stop.has_pool(&planned.pool),
            budget: self.budget_of(&planned.pool),
        };
        let Decisions { waits, stops, budget } = decisions;
        let (waiting, stopped, held) = {
            let pool = facts.pool(planned, &settings);
            let verdicts = pool.gate(facts.now);
            waits.released.extend(released_zones(planned, &pool, &verdicts));
            if budget.limit.is_some() {
                budget.record(planned, &pool, &verdicts);
            }
            stops.pauses.extend(pauses(planned, &pool));
            let stopped = stopped_pool(planned, &pool, &verdicts, facts);
            let held = held_pool(budget.limit, planned, &pool, &verdicts, facts);
            (waiting_pool(planned, &pool, &verdicts, facts), stopped, held)
        };
        if budget.taken.contains(&planned.pool) && !self.has_reserved(&planned.pool) {
            self.free = self.free.saturating_sub(1);
        }
        if let Some(held) = held {
            hold_pool(planned, &held);
            budget.held.push(held);
        }
        if let Some(waiting) = waiting {
            hold_waiting_zones(planned, &waiting.zones, facts);
            waits.pools.push(waiting);
        }
        if let Some(stopped) = stopped {
            hold_waiting_zones(planned, &stopped.zones, facts);
            stops.pools.push(stopped);
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

/// The pauses that change or stay, by name of the MachineDeployment.
fn pauses<'a>(planned: &'a PoolPlan, pool: &Pool<'_>) -> impl Iterator<Item = (String, PauseDecision)> + 'a {
    let pauses = planned.machines.iter().zip(pool.pauses());
    let pauses = pauses.filter(|(_, pause)| *pause != PauseDecision::Keep);
    pauses.map(|(machine, pause)| (machine.deployment.name.0.clone(), pause))
}

/// The zones of a pool that a stop pauses or lets keep their class, unless there are none.
fn stopped_pool(
    planned: &PoolPlan,
    pool: &Pool<'_>,
    verdicts: &[GateVerdict],
    facts: &ZoneFacts<'_>,
) -> Option<StoppedPool> {
    let mut stopped = StoppedPool {
        pool: planned.pool.clone(),
        zones: Vec::new(),
        lacking: Vec::new(),
        paused: Vec::new(),
        limit: None,
    };
    for (index, ((machine, zone), verdict)) in planned.machines.iter().zip(&pool.zones).zip(verdicts).enumerate() {
        let GateVerdict::Stop(since) = verdict else { continue };
        stopped.zones.push(waiting_zone(index, machine, zone, *since));
        if zone.lacks_machine() {
            stopped.lacking.push(index + 1);
        }
    }
    let pauses = pool.pauses().into_iter().enumerate().filter(|(_, pause)| *pause == PauseDecision::Pause);
    stopped.paused = pauses.map(|(index, _)| index + 1).collect();
    let has_order = pool.is_named && pool.failing(facts.now).next().is_none();
    if has_order {
        stopped.limit = limit_of(&stopped.zones, facts.now);
    }
    (!stopped.zones.is_empty() || !stopped.paused.is_empty()).then_some(stopped)
}

/// When the first of these zones has waited for the longest time.
fn limit_of(zones: &[WaitingZone], now: Timestamp) -> Option<StopLimit> {
    let since = zones.iter().map(|zone| zone.since).min()?;
    let at = since.checked_add(WAIT_LIMIT).ok()?;
    Some(StopLimit { at, is_over: at <= now })
}

/// The zones of a pool that are on hold, unless there are none.
fn held_pool(
    limit: Option<usize>,
    planned: &PoolPlan,
    pool: &Pool<'_>,
    verdicts: &[GateVerdict],
    facts: &ZoneFacts<'_>,
) -> Option<HeldPool> {
    let zones = planned.machines.iter().zip(&pool.zones).zip(verdicts).enumerate();
    let held = zones.filter(|(_, (_, verdict))| **verdict == GateVerdict::Hold);
    let held: Vec<(&MachinePlan, HeldZone)> = held
        .filter_map(|(index, ((machine, zone), _))| Some((machine, held_zone(index + 1, machine, zone)?)))
        .collect();
    let (first, zone) = held.first()?;
    let live = facts.live.deployments.get(&zone.deployment)?;
    let inputs = inputs_of(&first.hash_items, facts.context.pool(&planned.pool)?, facts.context.shoot);
    let history = record_with(live, &zone.planned_class, &inputs, facts.now);
    let inputs = history.map(|history| cause_of(&history, facts.provider.infrastructure_inputs()).0);
    Some(HeldPool {
        pool: planned.pool.clone(),
        zones: held.into_iter().map(|(_, zone)| zone).collect(),
        inputs: inputs.unwrap_or_default(),
        limit: limit.unwrap_or_default(),
    })
}

fn held_zone(number: usize, machine: &MachinePlan, zone: &Zone<'_>) -> Option<HeldZone> {
    Some(HeldZone {
        deployment: machine.deployment.name.0.clone(),
        number,
        live_class: zone.live_class?.to_owned(),
        planned_class: machine.deployment.class_name.0.clone(),
    })
}
