//! The numbers of a pool that fall to one of its machine deployments.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::zones::{NotAPercentage, ZonePosition, distribute, distribute_int_or_percentage};
use crate::api::gardener::WorkerPool;

/// Numbers of machines, and how many may be missing or too many during a roll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Fewest machines.
    pub minimum: i32,
    /// Most machines.
    pub maximum: i32,
    /// Machines above the wanted number during a roll.
    pub max_surge: IntOrString,
    /// Machines that may be missing during a roll.
    pub max_unavailable: IntOrString,
}

/// A surge or unavailability of a pool that can't be spread over zones.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {source}")]
pub struct BoundsError {
    /// Path within the pool.
    pub path: &'static str,
    /// Why.
    pub source: NotAPercentage,
}

impl Bounds {
    /// All numbers of the pool, for a deployment that is the only one.
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
    /// When surge or unavailability is neither a number nor a percentage.
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
