//! Pure step: a plan for each pool, or why there is none. One pool never blocks another.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::api::gardener::{InPlaceUpdates, WorkerPool};
use crate::pool::names::{ClassName, DeploymentName};
use crate::provider::{MachinePlan, PoolError, PoolPlan, PoolProblem, Provider, WorkerContext, WorkerError};

/// Plan of a Worker.
#[derive(Clone, Debug)]
pub struct Plan {
    /// One result per pool, in the order of the Worker.
    pub pools: Vec<Result<PoolPlan, PoolError>>,
    /// The target `providerStatus`.
    pub provider_status: Value,
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
    Ok(Plan { pools, provider_status })
}

/// Rejects pools that share a name, or the name of a machine deployment, because reconciles could roll the same
/// machines back and forth between them. Their existing objects stay. Gardener rejects such Shoots.
fn reject_shared_names(names: &[&str], pools: &mut [Result<PoolPlan, PoolError>]) {
    let deployments = pools.iter().enumerate().flat_map(|(index, pool)| {
        let machines = pool.iter().flat_map(|pool| &pool.machines);
        machines.map(move |machine| (machine.deployment.name.0.as_str(), index))
    });
    let mut rejected = with_shared_names(deployments);
    rejected.extend(with_shared_names(names.iter().enumerate().map(|(index, name)| (*name, index))));
    for index in rejected {
        let problem =
            PoolProblem::field("name", "another pool of the Worker makes machine deployments of the same name");
        pools[index] = Err(problem.of_pool(names[index]));
    }
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

    /// Names of the target deployments.
    #[must_use]
    pub fn wanted_deployments(&self) -> BTreeSet<&DeploymentName> {
        self.machines().map(|machine| &machine.deployment.name).collect()
    }

    /// Names of the target classes.
    #[must_use]
    pub fn wanted_classes(&self) -> BTreeSet<&ClassName> {
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
    fn pools_that_would_roll_the_same_machines_to_and_fro_are_invalid() {
        assert_eq!(rejected(&[("a", &["ns-a-z1", "ns-a-z2"]), ("b", &["ns-b-z1"])]), [false, false]);
        assert_eq!(rejected(&[("a", &["ns-a-z1"]), ("b", &["ns-b-z1"]), ("a", &["ns-a-z1"])]), [true, false, true]);
        assert_eq!(rejected(&[("", &["ns-"]), ("", &["ns-"])]), [true, true], "names that are missing");
        assert_eq!(rejected(&[("a", &["ns-a-z1"]), ("a-z1", &["ns-a-z1"])]), [true, true], "with and without a zone");
        assert_eq!(rejected(&[("a", &["ns-a-z1"]), ("a", &[])]), [true, true], "in other zones");
        assert_eq!(rejected(&[("a", &["ns-a", "ns-a"]), ("ns-a", &[])]), [false, false], "one pool, and another name");
    }
}
