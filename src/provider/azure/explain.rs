//! A pool of Azure for people: the same questions as the plan asks, answered one by one, so that an answer is shown
//! also where another one is an error.

mod inputs;

use super::AzureWorker;
use super::documents::WorkerConfig;
use super::hash_data::config_items;
use super::pool::PoolUnit;
use crate::api::gardener::WorkerPool;
use crate::pool::hash::HashItems;
use crate::pool::names::{class_name, deployment_name};
use crate::provider::documents::pool_config;
use crate::provider::explanation;
use crate::provider::{PoolProblem, ProviderExplanation};

impl AzureWorker<'_> {
    pub(super) fn explain(&self, pool: &WorkerPool) -> ProviderExplanation {
        let config: Result<WorkerConfig, _> = pool_config(pool);
        let hash_items = config.as_ref().ok().map(|config| config_items(pool, config));
        let placements = self.placements(pool).unwrap_or_default();
        ProviderExplanation {
            inputs: self.explain_inputs(pool, config.ok().as_ref(), &placements),
            image: self.images.explain(pool),
            placements: placements
                .iter()
                .filter_map(|placement| {
                    let items = hash_items.as_ref().and_then(|items| items.as_ref().ok());
                    self.explain_placement(pool, items, placement).ok()
                })
                .collect(),
        }
    }

    /// Numbers and names of a placement; without a class where the pool can't be hashed.
    fn explain_placement(
        &self,
        pool: &WorkerPool,
        config_items: Option<&HashItems>,
        placement: &PoolUnit<'_>,
    ) -> Result<explanation::PlacementPlan, PoolProblem> {
        let technical_id = &self.context.shoot.status.technical_id;
        let suffix = placement.name_suffix();
        let hashed = config_items.and_then(|items| self.hash(pool, items, placement).ok());
        let class = hashed.map(|hashed| (class_name(technical_id, &pool.name, &hashed.hash, &suffix), hashed.items));
        let deployment = deployment_name(technical_id, &pool.name, &suffix);
        Ok(explanation::PlacementPlan::of(placement.zone(), deployment, placement.bounds(pool)?, class))
    }
}
