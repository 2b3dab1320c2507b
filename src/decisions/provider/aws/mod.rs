//! AWS: documents, images, block devices, networks and machine classes of `spec.type: aws`.
//!
//! * [`documents`]: provider configs and statuses;
//! * `image`, [`network`], `block_devices`, [`tags`]: parts of a machine;
//! * `config_members`, [`hash_data`]: AWS inputs of the pool hash;
//! * `machine_class`: the provider spec; `zonal`: planning of pools.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::pool::hash::ProviderItems;
use crate::provider::{KnownErrors, PoolPlanner, PoolProblem, Provider, WorkerContext, WorkerError, pool_config};
use wire::api::gardener::{ShootPools, WorkerPool};
use wire::api::gotext::field::FieldErrors;

mod block_devices;
mod config_members;
pub mod documents;
mod error_codes;
pub mod hash_data;
mod image;
mod machine_class;
pub mod network;
mod profile;
mod shoot_pools;
pub mod tags;
mod zonal;

use zonal::AwsWorker;

/// The provider of CloudProfiles and Workers of type `aws`.
pub struct Aws;

impl Provider for Aws {
    fn planner<'a>(&self, context: WorkerContext<'a>) -> Result<Box<dyn PoolPlanner + 'a>, WorkerError> {
        Ok(Box::new(AwsWorker::open(context)?))
    }

    fn image_pointers(&self, _provider_spec: &Value) -> Vec<String> {
        vec!["/ami".to_owned()]
    }

    fn pool_items(&self, pool: &WorkerPool) -> Result<ProviderItems, PoolProblem> {
        Ok(hash_data::provider_items(pool, &pool_config(pool)?)?)
    }

    fn presumed_infrastructure(&self, _config: &Value, zones: &BTreeSet<&str>, _images: &[&Value]) -> Option<Value> {
        let subnets = zones.iter().map(|zone| json!({"id": zone, "purpose": "nodes", "zone": zone}));
        Some(json!({
            "apiVersion": documents::API_VERSION, "kind": "InfrastructureStatus",
            "ec2": {"keyName": "presumed"},
            "iam": {"instanceProfiles": [{"name": "presumed", "purpose": "nodes"}]},
            "vpc": {
                "subnets": subnets.collect::<Value>(), "securityGroups": [{"id": "presumed", "purpose": "nodes"}],
            },
        }))
    }

    fn validate_shoot_pools(&self, pools: &ShootPools, old: Option<&ShootPools>) -> FieldErrors {
        shoot_pools::validate(pools, old)
    }

    fn known_errors(&self) -> &'static KnownErrors {
        &error_codes::KNOWN
    }
}
