//! Azure: documents, images, disks, networks and machine classes of `spec.type: azure`.
//!
//! * `documents`: provider configs and statuses;
//! * `image`, `network`, `disks`, `tags`, `cloud`: parts of a machine;
//! * `hash_data`: Azure inputs of the pool hash;
//! * `machine_class`: the provider spec;
//! * `credentials`: validation of the credentials;
//! * `pool`: planning of a pool; `explain`: its explanation.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::pool::hash::ProviderItems;
use crate::pool::volumes::sorted_data_volumes;
use crate::provider::documents::for_nodes;
use crate::provider::image::WorkerImages;
use crate::provider::profile::ProfileConfig;
use crate::provider::{
    Dependencies, DependencyRecord, KnownErrors, PoolError, PoolPlan, PoolPlanner, PoolProblem, Provider,
    ProviderExplanation, WorkerContext, WorkerError, pool_config,
};
use wire::api::gardener::{ShootPools, WorkerPool};
use wire::api::gotext::field::FieldErrors;

pub mod cloud;
mod config_members;
pub mod credentials;
mod disks;
pub mod documents;
mod error_codes;
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
use documents::{CloudProfileConfig, InfrastructureStatus, Subnet, WorkerStatus};
use hash_data::PlacementInputs;

/// The provider of CloudProfiles and Workers of type `azure`.
pub struct Azure;

/// Values that all pools of one Worker share.
struct AzureWorker<'a> {
    context: WorkerContext<'a>,
    config: Option<Arc<CloudProfileConfig>>,
    images: WorkerImages<'a>,
    infrastructure: InfrastructureStatus,
    status: Option<WorkerStatus>,
    /// Whether the CloudProfile is in the old format.
    old_format: bool,
    nodes_subnet: Subnet,
    /// Recorded scale sets of non-zonal pools, after their reconciliation.
    scale_sets: Vec<DependencyRecord>,
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
        let needs = scale_sets::needs(&context)?.filter(|needs| !needs.scope.zonal);
        needs.map(|needs| scale_sets::described::described_dependencies(&needs, described)).transpose()
    }

    fn settled_cloud(&self, context: WorkerContext<'_>) -> Result<Option<Value>, WorkerError> {
        let needs = scale_sets::needs(&context)?.filter(|needs| !needs.scope.zonal);
        Ok(needs.map(|needs| scale_sets::described::settled(&needs)))
    }

    fn dependency_of_class<'a>(&self, provider_spec: &'a Value) -> Option<&'a str> {
        provider_spec.pointer("/properties/machineSet/id").and_then(Value::as_str)
    }

    fn image_pointers(&self, _provider_spec: &Value) -> Vec<String> {
        vec!["/properties/storageProfile/imageReference".to_owned()]
    }

    fn infrastructure_inputs(&self) -> &'static [&'static str] {
        hash_data::INFRASTRUCTURE_INPUTS
    }

    fn pool_items(&self, pool: &WorkerPool) -> Result<ProviderItems, PoolProblem> {
        let config_items = hash_data::config_items(pool, &pool_config(pool)?)?;
        Ok(hash_data::provider_items(&sorted_data_volumes(pool), PlacementInputs::default(), &config_items))
    }

    fn presumed_infrastructure(&self, config: &Value, zones: &BTreeSet<&str>, _images: &[&Value]) -> Option<Value> {
        let configured = config["networks"]["zones"].as_array().filter(|zones| !zones.is_empty());
        let (layout, subnets) = match configured {
            None => ("SingleSubnet", vec![json!({"name": "nodes", "purpose": "nodes"})]),
            Some(_) => (
                "MultipleSubnet",
                zones.iter().map(|zone| json!({"name": zone, "purpose": "nodes", "zone": zone})).collect(),
            ),
        };
        let identity = config.get("identity").map(|identity| json!({"id": identity["name"]}));
        Some(json!({
            "apiVersion": documents::API_VERSION, "kind": "InfrastructureStatus",
            "resourceGroup": {"name": "presumed"}, "identity": identity,
            "networks": {"vnet": {"name": "presumed"}, "layout": layout, "subnets": subnets},
            "zoned": config["zoned"],
        }))
    }

    fn validate_shoot_pools(&self, pools: &ShootPools, old: Option<&ShootPools>) -> FieldErrors {
        shoot_pools::validate(pools, old)
    }

    fn sidecar_arguments(&self) -> &'static [&'static str] {
        &["--machine-pv-reattach-timeout=150s"]
    }

    fn known_errors(&self) -> &'static KnownErrors {
        &error_codes::KNOWN
    }
}

impl<'a> AzureWorker<'a> {
    /// Decodes the documents that all pools share.
    fn open(context: WorkerContext<'a>) -> Result<Self, WorkerError> {
        let config = profile_config(&context)?;
        credentials::check_credentials(context.worker, context.secrets)?;
        let infrastructure: InfrastructureStatus = context.infrastructure_status()?;
        let status: Option<WorkerStatus> = context.provider_status()?;
        let subnets = &infrastructure.networks.subnets;
        let nodes_subnet = for_nodes(subnets, "networks.subnets", "subnet", |subnet| &subnet.purpose)?.clone();
        let old_format = context.cloud_profile.spec.machine_capabilities.is_empty();
        let profile = config.clone().map(|config| config as Arc<dyn ProfileConfig>);
        let images = WorkerImages::new(&Azure, context, profile, image::kept_images(status.as_ref()));
        let scale_sets = scale_sets::records(&context, status.as_ref())?;
        Ok(Self { context, config, images, infrastructure, status, old_format, nodes_subnet, scale_sets })
    }
}

impl PoolPlanner for AzureWorker<'_> {
    fn plan_pool(&self, pool: &WorkerPool) -> Result<PoolPlan, PoolError> {
        self.plan(pool).map_err(|problem| problem.of_pool(&pool.name))
    }

    fn explain_pool(&self, pool: &WorkerPool) -> ProviderExplanation {
        self.explain(pool)
    }

    /// Without zones the whole Worker is an input, because its pools depend on scale sets.
    fn needs_profile(&self, pool: &WorkerPool) -> Option<Value> {
        self.infrastructure.zoned.then(|| self.images.needs_profile(pool))
    }

    fn provider_status(&self, planned: &[&PoolPlan], failed: &[&WorkerPool]) -> Result<Value, WorkerError> {
        Ok(status::provider_status(self.status.as_ref(), &self.scale_sets, planned, failed))
    }
}

/// Decodes the provider config of the CloudProfile and checks its cloud.
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
