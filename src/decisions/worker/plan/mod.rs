//! Pure step: a plan for each pool, or why there is none. One pool never blocks another.

pub mod changes;
pub mod class_images;
pub mod class_inputs;
pub mod deployment;
pub mod desired;
pub mod difference;
pub mod digest;
pub mod gate;
mod gated;
pub mod named_pools;
pub mod orphans;
pub mod planned_rolls;
pub mod roll_budget;
pub mod rolls;
pub mod rolls_as_planned;
pub mod slots;
pub mod stops;
#[cfg(test)]
mod three_zones;
pub mod zone_by_zone;
pub mod zone_facts;
pub mod zone_waits;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::pool::names::{ClassName, DeploymentName};
use crate::provider::{
    MachinePlan, PoolError, PoolPlan, PoolProblem, Provider, TargetDeployment, WorkerContext, WorkerError,
};
use crate::worker::plan::roll_budget::{BUDGET_USED_UP, BudgetDecisions};
use crate::worker::plan::stops::{STOPPED, Stops};
use crate::worker::plan::zone_waits::{WaitingZone, ZoneWaits};
use wire::api::gardener::{InPlaceUpdates, WorkerPool};

/// Plan of a Worker.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// One result per pool, in the order of the Worker.
    pub pools: Vec<Result<PoolPlan, PoolError>>,
    /// The target `providerStatus`.
    pub provider_status: Value,
    /// Zones that wait for another zone of their pool. In the plan, they have their live class.
    pub waits: ZoneWaits,
    /// Rolls that a person has stopped. In the plan, zones that have not started have their live class.
    pub stops: Stops,
    /// Pools that the budget holds, and the marks of those that it does not. In the plan, pools on hold have their live
    /// classes.
    pub budget: BudgetDecisions,
}

/// Plans all pools of a Worker.
///
/// # Errors
/// When something that all pools share is missing or invalid, so that nothing can be planned.
pub fn plan(provider: &dyn Provider, context: WorkerContext<'_>) -> Result<Plan, WorkerError> {
    let spec = &context.worker.spec;
    let planner = provider.planner(context)?;
    let mut pools: Vec<_> = spec.pools.iter().map(|pool| planner.plan_pool(pool)).collect();
    let names: Vec<&str> = spec.pools.iter().map(|pool| pool.name.as_str()).collect();
    reject_shared_names(&names, &mut pools);
    let planned: Vec<&PoolPlan> = pools.iter().flatten().collect();
    let failed: Vec<&WorkerPool> =
        spec.pools.iter().zip(&pools).filter(|(_, result)| result.is_err()).map(|(pool, _)| pool).collect();
    let provider_status = planner.provider_status(&planned, &failed)?;
    Ok(Plan { pools, provider_status, ..Plan::default() })
}

/// Rejects pools that write the same object twice: the machines would be rolled back and forth, or be too few. Existing
/// objects of such a pool stay as they are. Gardener itself rejects a Shoot with two pools of one name.
fn reject_shared_names(names: &[&str], pools: &mut [Result<PoolPlan, PoolError>]) {
    let parts = pools.iter().enumerate().flat_map(|(index, pool)| {
        let machines = pool.iter().flat_map(|pool| &pool.machines);
        machines.map(move |machine| (machine, index))
    });
    let written = parts.flat_map(|(machine, index)| written_by(machine).map(|object| (object, index)));
    let mut rejected = with_shared_objects(written);
    for index in with_shared_names(names.iter().enumerate().map(|(index, name)| (*name, index))) {
        rejected.insert(index, SharedBy::Pools);
    }
    for (index, shared_by) in rejected {
        let problem = match shared_by {
            SharedBy::Pools => {
                PoolProblem::field("name", "another pool of the Worker makes machine deployments of the same name")
            }
            SharedBy::Zones => PoolProblem::field(
                "zones",
                "two zones of the pool make the same machine objects: a zone must be named only once",
            ),
        };
        pools[index] = Err(problem.of_pool(names[index]));
    }
}

/// The cause of an object that is written twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SharedBy {
    /// Several pools.
    Pools,
    /// Several zones of one pool.
    Zones,
}

/// Kinds and names of the objects that are written for a part of a pool.
fn written_by(machine: &MachinePlan) -> [(&'static str, &str); 3] {
    let TargetDeployment { name, class_name, secret_name, .. } = &machine.deployment;
    [("MachineDeployment", &name.0), ("MachineClass", &class_name.0), ("Secret", &secret_name.0)]
}

/// Positions of pools with an object that another part writes as well.
fn with_shared_objects<'a>(
    written: impl Iterator<Item = ((&'static str, &'a str), usize)>,
) -> BTreeMap<usize, SharedBy> {
    let mut by_object: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (object, index) in written {
        by_object.entry(object).or_default().push(index);
    }
    let mut rejected = BTreeMap::new();
    for indexes in by_object.values().filter(|indexes| indexes.len() > 1) {
        let is_one_pool = indexes.iter().all(|index| index == &indexes[0]);
        for index in indexes {
            let shared_by = if is_one_pool { SharedBy::Zones } else { SharedBy::Pools };
            rejected.entry(*index).or_insert(shared_by);
        }
    }
    rejected
}

/// Indexes with a name that another index has too.
fn with_shared_names<'a>(named: impl Iterator<Item = (&'a str, usize)>) -> BTreeSet<usize> {
    let mut by_name: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for (name, index) in named {
        by_name.entry(name).or_default().insert(index);
    }
    by_name.into_values().filter(|indexes| indexes.len() > 1).flatten().collect()
}

impl Plan {
    /// The planned machines of all pools, in the order of pools and zones.
    pub fn machines(&self) -> impl Iterator<Item = &MachinePlan> {
        self.pools.iter().flatten().flat_map(|pool| &pool.machines)
    }

    /// The planned machines, mutable.
    pub(crate) fn machines_mut(&mut self) -> impl Iterator<Item = &mut MachinePlan> {
        self.pools.iter_mut().flatten().flat_map(|pool| &mut pool.machines)
    }

    /// Why pools are not planned: they are invalid or wait for a dependency.
    pub fn unplanned(&self) -> impl Iterator<Item = &PoolError> {
        self.pools.iter().filter_map(|result| result.as_ref().err())
    }

    /// Why pools are invalid.
    pub fn errors(&self) -> impl Iterator<Item = &PoolError> {
        self.unplanned().filter(|error| !error.problem.is_awaited())
    }

    /// Dependencies that pools wait for.
    pub fn awaited(&self) -> impl Iterator<Item = &PoolError> {
        self.unplanned().filter(|error| error.problem.is_awaited())
    }

    /// Number of pools with zones that wait, are stopped or are on hold, by reason.
    #[must_use]
    pub fn held_pools(&self) -> [(&'static str, usize); 4] {
        let [waiting, failing] = self.waits.numbers();
        [waiting, failing, (STOPPED, self.stops.pools.len()), (BUDGET_USED_UP, self.budget.held.len())]
    }

    /// The zone of a MachineDeployment that keeps its live class, because it waits or is stopped.
    #[must_use]
    pub fn waiting_zone(&self, deployment: &str) -> Option<&WaitingZone> {
        self.waits.of(deployment).or_else(|| self.stops.of(deployment))
    }

    /// Whether a MachineDeployment keeps its live class, because it waits, is stopped or is on hold.
    #[must_use]
    pub fn keeps_live_class(&self, deployment: &str) -> bool {
        self.waiting_zone(deployment).is_some() || self.budget.hold_of(deployment).is_some()
    }

    /// Names of the target deployments.
    #[must_use]
    pub fn target_deployments(&self) -> BTreeSet<&DeploymentName> {
        self.machines().map(|machine| &machine.deployment.name).collect()
    }

    /// Names of the target classes.
    #[must_use]
    pub fn target_classes(&self) -> BTreeSet<&ClassName> {
        self.machines().map(|machine| &machine.deployment.class_name).collect()
    }

    /// Names of the pools that are not planned. Their objects stay.
    #[must_use]
    pub fn failed_pools(&self) -> BTreeSet<&str> {
        self.unplanned().map(|error| error.pool.as_str()).collect()
    }

    /// Hashes of pools with in-place updates, as in `status.inPlaceUpdates`.
    #[must_use]
    pub fn in_place_updates(&self) -> InPlaceUpdates {
        let hashes: BTreeMap<_, _> = self
            .pools
            .iter()
            .flatten()
            .filter_map(|pool| Some((pool.pool.clone(), pool.in_place_hash.as_ref()?.0.clone())))
            .collect();
        InPlaceUpdates { worker_pool_to_hash_map: hashes }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::provider::test_support::machine_plan;

    /// Whether each pool is rejected, given its name and the names of its machine deployments.
    fn rejected(pools: &[(&str, &[&str])]) -> Vec<bool> {
        let names: Vec<&str> = pools.iter().map(|(name, _)| *name).collect();
        let machine = |name: &&str| {
            let mut machine = machine_plan();
            machine.deployment.name = DeploymentName((*name).to_owned());
            machine.deployment.class_name = ClassName(format!("{name}-12345"));
            machine.deployment.secret_name = ClassName(format!("{name}-12345"));
            machine
        };
        let planned = |(name, deployments): &(&str, &[&str])| {
            let machines = deployments.iter().map(machine).collect();
            Ok(PoolPlan { pool: (*name).to_owned(), machines, status_image: json!({}), in_place_hash: None })
        };
        let mut plans: Vec<_> = pools.iter().map(planned).collect();
        reject_shared_names(&names, &mut plans);
        plans.iter().map(Result::is_err).collect()
    }

    #[test]
    fn rejects_pools_with_shared_names() {
        assert_eq!(rejected(&[("a", &["ns-a-z1", "ns-a-z2"]), ("b", &["ns-b-z1"])]), [false, false]);
        assert_eq!(rejected(&[("a", &["ns-a-z1"]), ("b", &["ns-b-z1"]), ("a", &["ns-a-z1"])]), [true, false, true]);
        assert_eq!(rejected(&[("", &["ns-"]), ("", &["ns-"])]), [true, true], "names that are missing");
        assert_eq!(rejected(&[("a", &["ns-a-z1"]), ("a-z1", &["ns-a-z1"])]), [true, true], "with and without a zone");
        assert_eq!(rejected(&[("a", &["ns-a-z1"]), ("a", &[])]), [true, true], "in other zones");
        assert_eq!(rejected(&[("a", &["ns-a", "ns-b"]), ("ns-a", &[])]), [false, false], "a name of another kind");
    }

    #[test]
    fn a_pool_that_writes_an_object_twice_is_invalid() {
        assert_eq!(rejected(&[("a", &["ns-a-z1", "ns-a-z1"]), ("b", &["ns-b-z1"])]), [true, false]);
        let duplicate = ["ns-a-z1", "ns-a-z2", "ns-a-z1"];
        assert_eq!(rejected(&[("a", &duplicate), ("b", &["ns-b-z1", "ns-b-z2"])]), [true, false]);
    }
}
