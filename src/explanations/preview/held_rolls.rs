//! Findings about pools that a roll budget of the controller holds (docs/rollouts.md).

use super::budget_effect::BudgetEffect;
use super::compare::WorkerChange;
use super::finding::{Finding, FindingKind};

/// Adds a finding for each pool that a controller with this budget holds while other pools use all slots.
pub fn hold_rolls(limit: u32, workers: &mut [WorkerChange]) {
    for worker in workers {
        let has = |pool: &str, effect: BudgetEffect| {
            worker.placements.iter().any(|change| change.pool == pool && change.budget == effect)
        };
        let affected = worker.placements.iter().filter(|change| change.nodes.affected > 0);
        let mut pools: Vec<&str> = affected.map(|change| change.pool.as_str()).collect();
        pools.dedup();
        pools.retain(|pool| has(pool, BudgetEffect::Holds) && !has(pool, BudgetEffect::Continues));
        let held = pools.into_iter().map(|pool| Finding::of_pool(FindingKind::RollHeld, pool, text(limit)));
        let held: Vec<Finding> = held.collect();
        worker.findings.extend(held);
        worker.findings.sort_by_key(|finding| finding.severity);
    }
}

fn text(limit: u32) -> String {
    let reason = "HELD: no owner requested this roll, and the node agent Secret stays";
    match limit {
        0 => format!(
            "{reason}: with a budget of 0, the pool keeps its class until the annotation gardener-extension-worker/let-roll \
             names it"
        ),
        1 => format!(
            "{reason}: with a budget of 1, the pool keeps its class while another pool of the seed uses the slot"
        ),
        _ => format!(
            "{reason}: with a budget of {limit}, the pool keeps its class while {limit} other pools of the seed use the slots"
        ),
    }
}
