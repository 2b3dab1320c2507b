//! Azure: documents, images, disks, networks and machine classes of `spec.type: azure`.
//!
//! * [`documents`]: what stands in `providerConfig` and its relatives;
//! * [`image`], [`network`], [`disks`], [`tags`], [`cloud`]: one question of a machine each;
//! * [`hash_data`]: what Azure adds to the pool hash;
//! * [`machine_class`]: the provider spec;
//! * [`credentials`]: whether machines can be made at all;
//! * [`pool`]: one pool from all of it; [`explain`]: the same for people.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::api::gardener::{CapabilityDefinition, ErrorCode, ShootPools, WorkerPool};
use crate::api::gotext::field::FieldErrors;
use crate::provider::image::asks_profile;
use crate::provider::{
    Dependencies, PoolError, PoolPlan, PoolPlanner, Provider, ProviderExplanation, WorkerContext, WorkerError,
};

pub mod cloud;
pub mod credentials;
pub mod disks;
pub mod documents;
pub mod error_codes;
mod explain;
pub mod hash_data;
pub mod image;
mod machine_class;
pub mod network;
mod pool;
mod profile;
mod resource_id;
pub mod scale_sets;
mod shoot_pools;
mod status;
pub mod tags;
#[cfg(test)]
mod test_support;

use cloud::AzureCloud;
use documents::{CloudProfileConfig, InfrastructureStatus, ScaleSetDependency, Subnet, WorkerStatus};

/// The provider of CloudProfiles and Workers of type `azure`.
pub struct Azure;

/// What all pools of one Worker share.
struct AzureWorker<'a> {
    context: WorkerContext<'a>,
    config: Option<Arc<CloudProfileConfig>>,
    infrastructure: InfrastructureStatus,
    status: Option<WorkerStatus>,
    /// Capabilities of the CloudProfile, or those that the old format stands for.
    definitions: Cow<'a, [CapabilityDefinition]>,
    /// Whether the CloudProfile is in the old format.
    old_format: bool,
    nodes_subnet: Subnet,
    /// Scale sets of non-zonal pools, as they are recorded after this pass.
    scale_sets: Vec<ScaleSetDependency>,
}

impl Provider for Azure {
    fn planner<'a>(&self, context: WorkerContext<'a>) -> Result<Box<dyn PoolPlanner + 'a>, WorkerError> {
        AzureWorker::open(context).map(|worker| Box::new(worker) as Box<dyn PoolPlanner>)
    }

    fn described_dependencies(
        &self,
        context: WorkerContext<'_>,
        described: &Value,
    ) -> Result<Option<Dependencies>, WorkerError> {
        let needs = scale_sets::needs(&context)?.filter(|needs| !needs.zonal);
        Ok(needs.map(|needs| scale_sets::described::described_dependencies(&needs, described)))
    }

    fn settled_cloud(&self, context: WorkerContext<'_>) -> Result<Option<Value>, WorkerError> {
        let needs = scale_sets::needs(&context)?.filter(|needs| !needs.zonal);
        Ok(needs.map(|needs| scale_sets::described::settled(&needs)))
    }

    fn validate_shoot_pools(&self, pools: &ShootPools, old: Option<&ShootPools>) -> FieldErrors {
        shoot_pools::validate(pools, old)
    }

    fn sidecar_arguments(&self) -> &'static [&'static str] {
        &["--machine-pv-reattach-timeout=150s"]
    }

    fn error_codes(&self, code: Option<&str>, text: &str) -> BTreeSet<ErrorCode> {
        error_codes::error_codes(code, text)
    }
}

impl<'a> AzureWorker<'a> {
    /// Decodes what all pools share.
    fn open(context: WorkerContext<'a>) -> Result<Self, WorkerError> {
        let config = profile_config(&context)?;
        credentials::check_credentials(context.worker, context.secrets)?;
        let infrastructure: InfrastructureStatus = context.infrastructure_status()?;
        let status: Option<WorkerStatus> = context.provider_status()?;
        let nodes_subnet = network::nodes_subnet(&infrastructure)
            .ok_or(WorkerError::NothingForNodes { path: "networks.subnets", what: "subnet" })?
            .clone();
        let declared = &context.cloud_profile.spec.machine_capabilities;
        let old_format = declared.is_empty();
        let definitions = image::profile_definitions(declared);
        let scale_sets = match context.dependencies {
            Some(dependencies) => serde_json::from_value(dependencies.records.clone()).unwrap_or_default(),
            None => status.as_ref().map(|status| status.vmo_dependencies.clone()).unwrap_or_default(),
        };
        Ok(Self { context, config, infrastructure, status, definitions, old_format, nodes_subnet, scale_sets })
    }
}

impl PoolPlanner for AzureWorker<'_> {
    fn plan_pool(&self, pool: &WorkerPool) -> Result<PoolPlan, PoolError> {
        self.plan(pool).map_err(|problem| problem.of_pool(&pool.name))
    }

    fn explain_pool(&self, pool: &WorkerPool) -> ProviderExplanation {
        self.explain(pool)
    }

    /// What scale sets depend on is the whole Worker.
    fn asks_profile(&self, pool: &WorkerPool) -> Option<Value> {
        self.infrastructure.zoned.then(|| asks_profile(&self.context, pool, pool))
    }

    fn provider_status(&self, planned: &[&PoolPlan], failed: &[&WorkerPool]) -> Value {
        status::provider_status(self.status.as_ref(), &self.scale_sets, planned, failed)
    }
}

/// The provider config of the CloudProfile, with a cloud that exists.
fn profile_config(context: &WorkerContext<'_>) -> Result<Option<Arc<CloudProfileConfig>>, WorkerError> {
    let config: Option<Arc<CloudProfileConfig>> = context.profile_config()?;
    let configuration = config.as_ref().and_then(|config| config.cloud_configuration.as_ref());
    if let Some(configuration) = configuration.filter(|configuration| AzureCloud::configured(configuration).is_none()) {
        return Err(WorkerError::UnknownCloud {
            path: format!("{}.cloudConfiguration.name", context.profile_config_path()),
            name: configuration.name.clone(),
            supported: cloud::CLOUDS,
        });
    }
    Ok(config)
}
