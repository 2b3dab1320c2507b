//! AWS: documents, images, block devices, networks and machine classes of `spec.type: aws`.
//!
//! * [`documents`]: what stands in `providerConfig` and its relatives;
//! * [`image`], [`network`], `block_devices`, [`tags`]: one question of a machine each;
//! * [`hash_data`]: what AWS adds to the pool hash;
//! * `machine_class`: the provider spec;
//! * `pool`: one pool from all of it; `explain`: the same for people.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::api::gardener::{ErrorCode, ShootPools, WorkerPool};
use crate::api::gotext::field::FieldErrors;
use crate::provider::image::WorkerImages;
use crate::provider::{PoolError, PoolPlan, PoolPlanner, Provider, ProviderExplanation, WorkerContext, WorkerError};

mod block_devices;
mod config_members;
pub mod documents;
pub mod error_codes;
mod explain;
pub mod hash_data;
pub mod image;
mod machine_class;
pub mod network;
mod pool;
mod profile;
mod shoot_pools;
mod status;
pub mod tags;

use documents::{InfrastructureStatus, WorkerStatus};

/// The provider of CloudProfiles and Workers of type `aws`.
pub struct Aws;

/// What all pools of one Worker share.
struct AwsWorker<'a> {
    context: WorkerContext<'a>,
    images: WorkerImages<'a>,
    infrastructure: InfrastructureStatus,
    status: Option<WorkerStatus>,
    security_group: String,
}

impl Provider for Aws {
    fn planner<'a>(&self, context: WorkerContext<'a>) -> Result<Box<dyn PoolPlanner + 'a>, WorkerError> {
        AwsWorker::open(context).map(|worker| Box::new(worker) as Box<dyn PoolPlanner>)
    }

    fn validate_shoot_pools(&self, pools: &ShootPools, old: Option<&ShootPools>) -> FieldErrors {
        shoot_pools::validate(pools, old)
    }

    fn error_codes(&self, code: Option<&str>, text: &str) -> BTreeSet<ErrorCode> {
        error_codes::error_codes(code, text)
    }
}

impl<'a> AwsWorker<'a> {
    /// Decodes what all pools share.
    fn open(context: WorkerContext<'a>) -> Result<Self, WorkerError> {
        let infrastructure = context.infrastructure_status()?;
        let status: Option<WorkerStatus> = context.provider_status()?;
        let images = WorkerImages::open_with(&Aws, context, image::kept_images(&context, status.as_ref()))?;
        let security_group = network::nodes_security_group(&infrastructure)
            .ok_or(WorkerError::NothingForNodes { path: "vpc.securityGroups", what: "security group" })?
            .to_owned();
        Ok(Self { context, images, infrastructure, status, security_group })
    }
}

impl PoolPlanner for AwsWorker<'_> {
    fn plan_pool(&self, pool: &WorkerPool) -> Result<PoolPlan, PoolError> {
        self.plan(pool).map_err(|problem| problem.of_pool(&pool.name))
    }

    fn explain_pool(&self, pool: &WorkerPool) -> ProviderExplanation {
        self.explain(pool)
    }

    fn asks_profile(&self, pool: &WorkerPool) -> Option<Value> {
        Some(self.images.asks_profile(pool))
    }

    fn provider_status(&self, planned: &[&PoolPlan], failed: &[&WorkerPool]) -> Result<Value, WorkerError> {
        let declared = &self.context.cloud_profile.spec.machine_capabilities;
        status::provider_status(self.status.as_ref(), declared, planned, failed)
    }
}
