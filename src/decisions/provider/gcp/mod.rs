//! GCP: documents, images, disks, networks and machine classes of `spec.type: gcp`. Its pools have no cloud
//! dependencies.
//!
//! * [`documents`]: provider configs and statuses;
//! * `profile`, `image`: CloudProfiles, and previously used images;
//! * `disks`, `network`, `labels`: parts of a machine;
//! * `config_members`, `hash_data`: GCP inputs of the pool hash;
//! * `machine_class`: the provider spec; `zonal`: planning of pools.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::pool::hash::ProviderItems;
use crate::provider::{KnownErrors, PoolPlanner, PoolProblem, Provider, WorkerContext, WorkerError, pool_config};
use wire::api::gardener::{ShootPools, WorkerPool};
use wire::api::gotext::field::FieldErrors;

mod config_members;
mod disks;
pub mod documents;
mod error_codes;
mod hash_data;
mod image;
pub mod labels;
mod machine_class;
mod network;
mod profile;
mod shoot_pools;
mod zonal;

use zonal::GcpWorker;

/// The provider of CloudProfiles and Workers of type `gcp`.
pub struct Gcp;

impl Provider for Gcp {
    fn planner<'a>(&self, context: WorkerContext<'a>) -> Result<Box<dyn PoolPlanner + 'a>, WorkerError> {
        Ok(Box::new(GcpWorker::open(context)?))
    }

    /// Only the boot disk, because the pool itself names the images of data volumes.
    fn image_pointers(&self, provider_spec: &Value) -> Vec<String> {
        let disks = provider_spec["disks"].as_array().into_iter().flatten().enumerate();
        let boot = disks.filter(|(_, disk)| disk["boot"] == true);
        boot.map(|(position, _)| format!("/disks/{position}/image")).collect()
    }

    fn pool_items(&self, pool: &WorkerPool) -> Result<ProviderItems, PoolProblem> {
        Ok(hash_data::provider_items(pool, &pool_config(pool)?)?)
    }

    fn presumed_infrastructure(&self, _config: &Value, _zones: &BTreeSet<&str>, _images: &[&Value]) -> Option<Value> {
        Some(json!({
            "apiVersion": documents::API_VERSION, "kind": "InfrastructureStatus",
            "networks": {"subnets": [{"name": "presumed", "purpose": "nodes"}]},
            "serviceAccountEmail": "presumed",
        }))
    }

    fn validate_shoot_pools(&self, pools: &ShootPools, old: Option<&ShootPools>) -> FieldErrors {
        shoot_pools::validate(pools, old)
    }

    fn known_errors(&self) -> &'static KnownErrors {
        &error_codes::KNOWN
    }
}
