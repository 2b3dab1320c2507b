//! AliCloud: documents, images, disks and machine classes of `spec.type: alicloud`. Its pools have no cloud
//! dependencies.
//!
//! * [`documents`]: provider configs and statuses;
//! * `profile`, `image`: CloudProfiles, and the images in the account of the shoot;
//! * `disks`, `machine_class`: disks and provider spec; `zonal`: planning of pools.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::pool::hash::ProviderItems;
use crate::provider::{KnownErrors, PoolPlanner, PoolProblem, Provider, WorkerContext, WorkerError};
use wire::api::gardener::{ShootPools, WorkerPool};
use wire::api::gotext::field::FieldErrors;

mod disks;
pub mod documents;
mod error_codes;
mod image;
mod machine_class;
mod profile;
mod shoot_pools;
mod zonal;

use zonal::AliCloudWorker;

/// The provider of CloudProfiles and Workers of type `alicloud`.
pub struct AliCloud;

impl Provider for AliCloud {
    fn planner<'a>(&self, context: WorkerContext<'a>) -> Result<Box<dyn PoolPlanner + 'a>, WorkerError> {
        Ok(Box::new(AliCloudWorker::open(context)?))
    }

    fn image_pointers(&self, _provider_spec: &Value) -> Vec<String> {
        vec!["/imageID".to_owned()]
    }

    fn pool_items(&self, pool: &WorkerPool) -> Result<ProviderItems, PoolProblem> {
        Ok(zonal::provider_items(pool))
    }

    fn presumed_infrastructure(&self, _config: &Value, zones: &BTreeSet<&str>, images: &[&Value]) -> Option<Value> {
        // The infrastructure controller copies images for encrypted root volumes.
        let copies = images.iter().map(
            |image| json!({"name": image["name"], "version": image["version"], "id": "presumed", "encrypted": true}),
        );
        let switches = zones.iter().map(|zone| json!({"id": zone, "purpose": "nodes", "zone": zone}));
        Some(json!({
            "apiVersion": documents::API_VERSION, "kind": "InfrastructureStatus",
            "vpc": {
                "vswitches": switches.collect::<Value>(), "securityGroups": [{"id": "presumed", "purpose": "nodes"}],
            },
            "machineImages": copies.collect::<Value>(),
        }))
    }

    fn validate_shoot_pools(&self, pools: &ShootPools, old: Option<&ShootPools>) -> FieldErrors {
        shoot_pools::validate(pools, old)
    }

    fn known_errors(&self) -> &'static KnownErrors {
        &error_codes::KNOWN
    }
}
