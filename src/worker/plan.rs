//! Pure step: a plan for each pool, or why there is none. One pool never stops another.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::api::gardener::{InPlaceUpdates, WorkerPool};
use crate::pool::names::{ClassName, DeploymentName};
use crate::provider::{MachinePlan, PoolError, PoolPlan, Provider, WorkerContext, WorkerError};

/// What shall exist for a Worker.
#[derive(Clone, Debug)]
pub struct Plan {
    /// One result per pool, in the order of the Worker.
    pub pools: Vec<Result<PoolPlan, PoolError>>,
    /// The `providerStatus` document.
    pub provider_status: Value,
}

/// Plans all pools of a Worker.
///
/// # Errors
/// When nothing can be planned because what all pools share is missing or wrong.
pub fn plan(provider: &dyn Provider, context: WorkerContext<'_>) -> Result<Plan, WorkerError> {
    let spec = &context.worker.spec;
    let planner = provider.planner(context)?;
    let pools: Vec<_> = spec.pools.iter().map(|pool| planner.plan_pool(pool)).collect();
    let planned: Vec<&PoolPlan> = pools.iter().flatten().collect();
    let failed: Vec<&WorkerPool> =
        spec.pools.iter().zip(&pools).filter(|(_, result)| result.is_err()).map(|(pool, _)| pool).collect();
    let provider_status = planner.provider_status(&planned, &failed)?;
    Ok(Plan { pools, provider_status })
}

impl Plan {
    /// The planned machines of all pools, in the order of pools and zones.
    pub fn machines(&self) -> impl Iterator<Item = &MachinePlan> {
        self.pools.iter().flatten().flat_map(|pool| &pool.machines)
    }

    /// The same, to change them.
    pub(crate) fn machines_mut(&mut self) -> impl Iterator<Item = &mut MachinePlan> {
        self.pools.iter_mut().flatten().flat_map(|pool| &mut pool.machines)
    }

    /// Why pools are not planned: because something is wrong, or because they wait for what they depend on.
    pub fn unplanned(&self) -> impl Iterator<Item = &PoolError> {
        self.pools.iter().filter_map(|result| result.as_ref().err())
    }

    /// Why pools could not be planned.
    pub fn errors(&self) -> impl Iterator<Item = &PoolError> {
        self.unplanned().filter(|error| !error.problem.is_awaited())
    }

    /// What pools wait for before they can be planned.
    pub fn awaited(&self) -> impl Iterator<Item = &PoolError> {
        self.unplanned().filter(|error| error.problem.is_awaited())
    }

    /// Names of the deployments that shall exist.
    #[must_use]
    pub fn wanted_deployments(&self) -> BTreeSet<&DeploymentName> {
        self.machines().map(|machine| &machine.deployment.name).collect()
    }

    /// Names of the classes that shall exist.
    #[must_use]
    pub fn wanted_classes(&self) -> BTreeSet<&ClassName> {
        self.machines().map(|machine| &machine.deployment.class_name).collect()
    }

    /// Names of the pools that are not planned. Whatever they have stays.
    #[must_use]
    pub fn failed_pools(&self) -> BTreeSet<&str> {
        self.unplanned().map(|error| error.pool.as_str()).collect()
    }

    /// Hashes of the in-place pools, as `status.inPlaceUpdates` keeps them.
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
