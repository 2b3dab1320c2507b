//! Splits the machine counts of a pool among its machine deployments.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::zones::{NotAPercentage, ZonePosition, distribute, distribute_int_or_percentage};
use wire::api::gardener::WorkerPool;

/// Machine counts and rolling update limits of a machine deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Minimum number of machines.
    pub minimum: i32,
    /// Maximum number of machines.
    pub maximum: i32,
    /// Machines above the target count during a rolling update.
    pub max_surge: IntOrString,
    /// Machines that may be unavailable during a rolling update.
    pub max_unavailable: IntOrString,
}

/// A surge or unavailability of a pool that can't be split among its zones.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {source}")]
pub struct BoundsError {
    /// Path of the field within the pool.
    pub path: &'static str,
    /// Cause of the failure.
    pub source: NotAPercentage,
}

impl Bounds {
    /// The bounds of the whole pool, for pools with a single machine deployment.
    #[must_use]
    pub fn whole(pool: &WorkerPool) -> Self {
        Self {
            minimum: pool.minimum,
            maximum: pool.maximum,
            max_surge: pool.max_surge.clone(),
            max_unavailable: pool.max_unavailable.clone(),
        }
    }

    /// The share of one zone.
    ///
    /// # Errors
    /// If the surge or unavailability is neither a number nor a percentage.
    pub fn in_zone(pool: &WorkerPool, zone: ZonePosition) -> Result<Self, BoundsError> {
        let share = |path, value, total| {
            distribute_int_or_percentage(value, total, zone).map_err(|source| BoundsError { path, source })
        };
        Ok(Self {
            minimum: distribute(pool.minimum, zone),
            maximum: distribute(pool.maximum, zone),
            max_surge: share("maxSurge", &pool.max_surge, pool.maximum)?,
            max_unavailable: share("maxUnavailable", &pool.max_unavailable, pool.minimum)?,
        })
    }
}
