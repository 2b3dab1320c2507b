//! OpenStack: documents, images, disks, machine classes and server groups of `spec.type: openstack`.
//!
//! * [`documents`]: provider configs and statuses;
//! * `profile`, `settings`, `image`: CloudProfiles, and previously used images;
//! * [`credentials`], [`server_groups`], `described`: credentials and cloud dependencies of pools;
//! * `root_disk`, `machine_class`: the root disk and the provider spec; `zonal`: planning of pools.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::pool::hash::ProviderItems;
use crate::provider::documents::pool_config;
use crate::provider::{Dependencies, KnownErrors, PoolPlanner, PoolProblem, Provider, WorkerContext, WorkerError};
use wire::api::gardener::{ShootPools, WorkerPool};
use wire::api::gotext::field::FieldErrors;

pub mod credentials;
mod described;
pub mod documents;
pub mod error_codes;
mod image;
mod machine_class;
mod profile;
mod root_disk;
pub mod server_groups;
mod settings;
mod shoot_pools;
mod zonal;

use zonal::OpenStackWorker;

/// The provider of CloudProfiles and Workers of type `openstack`.
pub struct OpenStack;

impl Provider for OpenStack {
    fn planner<'a>(&self, context: WorkerContext<'a>) -> Result<Box<dyn PoolPlanner + 'a>, WorkerError> {
        Ok(Box::new(OpenStackWorker::open(context)?))
    }

    fn image_pointers(&self, _provider_spec: &Value) -> Vec<String> {
        vec!["/spec/imageID".to_owned(), "/spec/imageName".to_owned()]
    }

    /// A new policy requires a new server group, whose id is unknown here, so the policy is hashed in its place.
    fn pool_items(&self, pool: &WorkerPool) -> Result<ProviderItems, PoolProblem> {
        let config = pool_config(pool)?;
        zonal::provider_items(pool, &config, || Ok(server_groups::policy(&config).map(str::to_owned)))
    }

    fn infrastructure_inputs(&self) -> &'static [&'static str] {
        zonal::INFRASTRUCTURE_INPUTS
    }

    fn described_dependencies(
        &self,
        context: WorkerContext<'_>,
        described: &Value,
    ) -> Result<Option<Dependencies>, WorkerError> {
        let needs = server_groups::needs(&context)?;
        needs.map(|needs| described::described_dependencies(&needs, described)).transpose()
    }

    fn settled_cloud(&self, context: WorkerContext<'_>) -> Result<Option<Value>, WorkerError> {
        Ok(server_groups::needs(&context)?.map(|needs| described::settled(&needs)))
    }

    fn presumed_infrastructure(&self, _config: &Value, _zones: &BTreeSet<&str>, _images: &[&Value]) -> Option<Value> {
        Some(json!({
            "apiVersion": documents::API_VERSION, "kind": "InfrastructureStatus",
            "networks": {"id": "presumed", "subnets": [{"id": "presumed", "purpose": "nodes"}]},
            "node": {"keyName": "presumed"},
            "securityGroups": [{"id": "presumed", "name": "presumed", "purpose": "nodes"}],
        }))
    }

    fn dependency_of_class<'a>(&self, provider_spec: &'a Value) -> Option<&'a str> {
        provider_spec.pointer("/spec/serverGroupID").and_then(Value::as_str)
    }

    fn validate_shoot_pools(&self, pools: &ShootPools, old: Option<&ShootPools>) -> FieldErrors {
        shoot_pools::validate(pools, old)
    }

    fn known_errors(&self) -> &'static KnownErrors {
        &error_codes::KNOWN
    }
}
