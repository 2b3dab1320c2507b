//! Metrics of the versions of pools (docs/metrics.md). They are timestamps rather than remaining times, so they stay
//! correct between two reconciles; subtract `time()` to get seconds.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::registry::Registry;

use crate::controller::report::gauges::Gauges;
use profiles::versions::notices::PoolVersions;

/// Maximum number of pools of one Worker that have series.
const MAX_POOLS: usize = 100;

/// Name, help and value of a metric.
type Number = (&'static str, &'static str, fn(&PoolVersions) -> Option<i64>);

const NUMBERS: [Number; 5] = [
    ("pool_image_expiration_timestamp", "When the machine image of a pool expires; absent without a date", |pool| {
        pool.image_expires.map(Timestamp::as_second)
    }),
    (
        "pool_kubernetes_expiration_timestamp",
        "When the Kubernetes version of a pool expires; absent without a date",
        |pool| pool.kubernetes_expires.map(Timestamp::as_second),
    ),
    ("pool_update_available", "1 while an automatic update of a pool would find another version", |pool| {
        Some(pool.update_available.into())
    }),
    (
        "pool_image_update_declined",
        "1 while a newer image exists for a pool whose owner opted out of automatic updates; absent otherwise",
        |pool| pool.declined_update.as_ref().map(|_| 1),
    ),
    (
        "pool_stuck_timestamp",
        "Since which window a version of a pool can't go on, within a year; absent if it can",
        |pool| pool.stuck.map(Timestamp::as_second),
    ),
];

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct OfPool {
    namespace: String,
    pool: String,
}

/// Series for the versions of pools.
#[derive(Default)]
pub(crate) struct VersionMetrics {
    series: [Gauges<OfPool>; NUMBERS.len()],
    /// Pools that have series, by namespace.
    pools: Mutex<BTreeMap<String, Vec<String>>>,
}

impl VersionMetrics {
    pub(crate) fn register(&self, registry: &mut Registry) {
        for ((name, help, _), series) in NUMBERS.iter().zip(&self.series) {
            registry.register(*name, *help, series.clone());
        }
    }

    /// Sets the versions of the pools in a namespace.
    pub(crate) fn set(&self, namespace: &str, pools: &[PoolVersions]) {
        let pools = &pools[..pools.len().min(MAX_POOLS)];
        let names = pools.iter().map(|pool| pool.pool.clone()).collect();
        let mut before = self.known().insert(namespace.to_owned(), names).unwrap_or_default();
        before.retain(|known| pools.iter().all(|pool| pool.pool != *known));
        self.remove(namespace, &before);
        for pool in pools {
            for ((.., number), series) in NUMBERS.iter().zip(&self.series) {
                series.set(labels(namespace, &pool.pool), number(pool));
            }
        }
    }

    /// Removes the series of a deleted Worker's namespace.
    pub(crate) fn forget(&self, namespace: &str) {
        let pools = self.known().remove(namespace).unwrap_or_default();
        self.remove(namespace, &pools);
    }

    fn remove(&self, namespace: &str, pools: &[String]) {
        for pool in pools {
            self.series.iter().for_each(|series| series.set(labels(namespace, pool), None));
        }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Vec<String>>> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn labels(namespace: &str, pool: &str) -> OfPool {
    OfPool { namespace: namespace.to_owned(), pool: pool.to_owned() }
}
