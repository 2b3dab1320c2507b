//! Planning and explanation for providers whose pools have one machine deployment per zone. A provider implements only
//! its own part as a [`ZonalProvider`].

use serde_json::Value;

use super::explanation::{EffectiveInput, Origin, PlacementPlan};
use super::image::{SelectedImage, WorkerImages};
use super::machine_class::{ClassContent, machine_class};
use super::{
    MachinePlan, PoolError, PoolPlan, PoolPlanner, PoolProblem, ProviderExplanation, TargetDeployment, UserData,
    WorkerContext, WorkerError, user_data,
};
use crate::pool::bounds::Bounds;
use crate::pool::hash::{HashedPool, ProviderItems, pool_hash};
use crate::pool::names::{DeploymentName, deployment_name};
use crate::pool::zones::{ZonePosition, positions};
use wire::api::gardener::WorkerPool;

/// The provider-specific part of planning a Worker.
pub(in crate::provider) trait ZonalProvider {
    /// The provider config of a pool.
    type Config;
    /// Provider-specific values that all zones of a pool share.
    type Shared;
    /// Node labels that hold the zone.
    const ZONE_LABELS: &'static [&'static str];
    /// Whether the Gardener library of the Go extension supports preserved failed machines.
    const PRESERVES_MACHINES: bool = true;

    /// Decodes the provider config of a pool.
    fn config(pool: &WorkerPool) -> Result<Self::Config, PoolProblem>;

    /// Suffix of a zone's object names. Zones are numbered from 1 in the order of the pool.
    fn deployment_suffix(_zone: &str, position: ZonePosition) -> String {
        format!("-z{}", u64::from(position.index) + 1)
    }

    /// Hash inputs of the provider.
    fn hash_items(&self, pool: &WorkerPool, config: &Self::Config) -> Result<ProviderItems, PoolProblem>;

    /// Computes the values that all zones share.
    fn shared(&self, pool: &WorkerPool, config: &Self::Config) -> Result<Self::Shared, PoolProblem>;

    /// The machine class of a zone.
    fn class_content(&self, inputs: &PoolInputs<'_, Self>, zone: &str) -> Result<ClassContent, PoolProblem>;

    /// The provider status entry for the image of a pool.
    fn status_image(&self, pool: &WorkerPool, image: &SelectedImage<'_>) -> Value;

    /// See [`PoolPlanner::provider_status`].
    fn provider_status(&self, planned: &[&PoolPlan], failed: &[&WorkerPool]) -> Result<Value, WorkerError>;

    /// Provider-specific inputs other than the region, for `explain`.
    fn explain_inputs(&self, pool: &WorkerPool, config: Option<&Self::Config>) -> Vec<EffectiveInput>;
}

/// Values that all zones of a pool share.
pub(in crate::provider) struct PoolInputs<'a, Worker: ZonalProvider + ?Sized> {
    pub(in crate::provider) pool: &'a WorkerPool,
    pub(in crate::provider) config: Worker::Config,
    pub(in crate::provider) image: SelectedImage<'a>,
    pub(in crate::provider) shared: Worker::Shared,
    hashed: HashedPool,
    user_data: UserData,
}

/// Plans the pools of such a Worker.
pub(in crate::provider) struct ZonalPlanner<'a, Worker> {
    pub(in crate::provider) context: WorkerContext<'a>,
    pub(in crate::provider) images: WorkerImages<'a>,
    pub(in crate::provider) worker: Worker,
}

impl<Worker: ZonalProvider> PoolPlanner for ZonalPlanner<'_, Worker> {
    fn plan_pool(&self, pool: &WorkerPool) -> Result<PoolPlan, PoolError> {
        self.plan(pool).map_err(|problem| problem.of_pool(&pool.name))
    }

    /// Evaluates each input on its own, so that one error does not hide the others.
    fn explain_pool(&self, pool: &WorkerPool) -> ProviderExplanation {
        let config = Worker::config(pool).ok();
        let hashed = config.as_ref().and_then(|config| self.hash(pool, config).ok());
        let region = &self.context.worker.spec.region;
        let mut inputs = vec![EffectiveInput::of(Origin::Worker, "spec.region", "region", region)];
        inputs.extend(self.worker.explain_inputs(pool, config.as_ref()));
        ProviderExplanation {
            inputs,
            image: self.images.explain(pool),
            placements: self.explain_placements(pool, hashed.as_ref()),
        }
    }

    fn needs_profile(&self, pool: &WorkerPool) -> Option<Value> {
        Some(self.images.needs_profile(pool))
    }

    fn provider_status(&self, planned: &[&PoolPlan], failed: &[&WorkerPool]) -> Result<Value, WorkerError> {
        self.worker.provider_status(planned, failed)
    }
}

impl<Worker: ZonalProvider> ZonalPlanner<'_, Worker> {
    fn plan(&self, pool: &WorkerPool) -> Result<PoolPlan, PoolProblem> {
        let config = Worker::config(pool)?;
        let inputs = PoolInputs {
            pool,
            hashed: self.hash(pool, &config)?,
            image: self.images.select(pool).selected?,
            shared: self.worker.shared(pool, &config)?,
            user_data: user_data(&self.context, pool)?,
            config,
        };
        let machines = positions(&pool.zones).map(|(position, zone)| self.machine_plan(&inputs, zone, position));
        Ok(PoolPlan {
            pool: pool.name.clone(),
            machines: machines.collect::<Result<_, _>>()?,
            status_image: self.worker.status_image(pool, &inputs.image),
            in_place_hash: inputs.hashed.in_place,
        })
    }

    fn hash(&self, pool: &WorkerPool, config: &Worker::Config) -> Result<HashedPool, PoolProblem> {
        Ok(pool_hash(pool, self.context.shoot, &self.worker.hash_items(pool, config)?)?)
    }

    fn machine_plan(
        &self,
        inputs: &PoolInputs<'_, Worker>,
        zone: &str,
        position: ZonePosition,
    ) -> Result<MachinePlan, PoolProblem> {
        let pool = inputs.pool;
        let name = self.deployment_name(pool, zone, position);
        let class_name = name.class_name(&inputs.hashed.hash);
        let mut labels = pool.labels.clone();
        labels.extend(Worker::ZONE_LABELS.iter().map(|label| ((*label).to_owned(), zone.to_owned())));
        let mut deployment =
            TargetDeployment::of_pool(pool, name, &class_name, Bounds::in_zone(pool, position)?, labels);
        if Worker::PRESERVES_MACHINES {
            deployment.preserve_failed_machines(pool, Some(position));
        } else {
            deployment.machine_configuration.machine_preserve_timeout = None;
        }
        Ok(MachinePlan {
            zone: Some(zone.to_owned()),
            class: machine_class(&self.context, &class_name, self.worker.class_content(inputs, zone)?),
            user_data: inputs.user_data.clone(),
            deployment,
            hash_items: inputs.hashed.items.clone(),
        })
    }

    fn deployment_name(&self, pool: &WorkerPool, zone: &str, position: ZonePosition) -> DeploymentName {
        let suffix = Worker::deployment_suffix(zone, position);
        deployment_name(&self.context.shoot.status.technical_id, &pool.name, &suffix)
    }

    /// Counts and names of each zone, without a class if the pool can't be hashed.
    fn explain_placements(&self, pool: &WorkerPool, hashed: Option<&HashedPool>) -> Vec<PlacementPlan> {
        let placements = positions(&pool.zones).filter_map(|(position, zone)| {
            let deployment = self.deployment_name(pool, zone, position);
            let class = hashed.map(|hashed| (deployment.class_name(&hashed.hash), hashed.items.clone()));
            Some(PlacementPlan::of(Some(zone), deployment, Bounds::in_zone(pool, position).ok()?, class))
        });
        placements.collect()
    }
}
