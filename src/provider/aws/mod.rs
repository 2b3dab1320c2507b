//! AWS: documents, images, block devices, networks and machine classes of `spec.type: aws`.
//!
//! * [`documents`]: what stands in `providerConfig` and its relatives;
//! * `image`, [`network`], `block_devices`, [`tags`]: one question of a machine each;
//! * `config_members`, [`hash_data`]: what AWS adds to the pool hash;
//! * `machine_class`: the provider spec; `zonal`: what is AWS's of a pool.

use std::collections::BTreeSet;

use crate::api::gardener::{ErrorCode, ShootPools};
use crate::api::gotext::field::FieldErrors;
use crate::provider::zonal::ZonalPlanner;
use crate::provider::{PoolPlanner, Provider, WorkerContext, WorkerError};

mod block_devices;
mod config_members;
pub mod documents;
pub mod error_codes;
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
        Ok(Box::new(ZonalPlanner(AwsWorker::open(context)?)))
    }

    fn validate_shoot_pools(&self, pools: &ShootPools, old: Option<&ShootPools>) -> FieldErrors {
        shoot_pools::validate(pools, old)
    }

    fn error_codes(&self, code: Option<&str>, text: &str) -> BTreeSet<ErrorCode> {
        error_codes::error_codes(code, text)
    }
}
