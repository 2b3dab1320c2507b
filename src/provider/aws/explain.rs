//! A pool of AWS for people: the same questions as the plan asks, answered one by one, so that an answer is shown also
//! where another one is an error.

mod inputs;

use super::AwsWorker;
use super::documents::WorkerConfig;
use super::hash_data::provider_items;
use crate::api::gardener::WorkerPool;
use crate::pool::bounds::Bounds;
use crate::pool::hash::{HashedPool, pool_hash};
use crate::pool::zones::positions;
use crate::provider::documents::pool_config;
use crate::provider::explanation::PlacementPlan;
use crate::provider::{PoolProblem, ProviderExplanation};

impl AwsWorker<'_> {
    pub(super) fn explain(&self, pool: &WorkerPool) -> ProviderExplanation {
        let config: Option<WorkerConfig> = pool_config(pool).ok();
        let hashed = config.as_ref().and_then(|config| self.hash(pool, config).ok());
        ProviderExplanation {
            inputs: self.explain_inputs(pool, config.as_ref()),
            image: self.images.explain(pool),
            placements: self.explain_placements(pool, hashed.as_ref()),
        }
    }

    fn hash(&self, pool: &WorkerPool, config: &WorkerConfig) -> Result<HashedPool, PoolProblem> {
        Ok(pool_hash(pool, self.context.shoot, &provider_items(pool, config)?)?)
    }

    /// Numbers and names of each zone; without a class where the pool can't be hashed.
    fn explain_placements(&self, pool: &WorkerPool, hashed: Option<&HashedPool>) -> Vec<PlacementPlan> {
        let placements = positions(&pool.zones).filter_map(|(position, zone)| {
            let deployment = self.deployment_name(pool, position);
            let class = hashed.map(|hashed| (deployment.class_name(&hashed.hash), hashed.items.clone()));
            Some(PlacementPlan::of(Some(zone), deployment, Bounds::in_zone(pool, position).ok()?, class))
        });
        placements.collect()
    }
}
