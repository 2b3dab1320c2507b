//! Cloud dependencies of pools, such as scale sets. They are fetched or created before planning and passed in as data.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::document::documents;
use super::{PoolProblem, WorkerContext, WorkerError};
use wire::api::gardener::ErrorCode;
use wire::api::gotext::json::decode_value;

documents! { strict
    /// The cloud dependency of a pool as recorded in the provider status.
    #[derive(PartialEq, Eq, serde::Serialize)]
    pub struct DependencyRecord {
        /// Name of the pool.
        pub pool_name: String,
        /// Id of the dependency in the cloud.
        pub id: String,
        /// Name of the dependency in the cloud.
        pub name: String,
    }
}

/// The cloud dependencies that the pools of a Worker need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needs<Scope, Target> {
    /// Location of the dependencies and credentials for it.
    pub scope: Scope,
    /// Pools with a dependency, in pool order.
    pub pools: Vec<PoolNeed<Target>>,
    /// Names of the Worker's pools that may own dependencies.
    pub cached_pools: BTreeSet<String>,
    /// All recorded dependencies.
    pub records: Vec<DependencyRecord>,
    /// Pools whose dependency is invalid or unknown, with the reason. They keep their recorded dependency.
    pub refused: BTreeMap<String, DependencyFailure>,
}

/// The dependency that one pool needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolNeed<Target> {
    /// Name of the pool.
    pub pool: String,
    /// The recorded dependency of the pool.
    pub recorded: Option<DependencyRecord>,
    /// Target state of the dependency.
    pub target: Target,
}

impl<Scope, Target> Needs<Scope, Target> {
    /// Needs of a Worker with these records whose pools need no dependency.
    #[must_use]
    pub fn of_records(scope: Scope, records: Vec<DependencyRecord>) -> Self {
        Self { scope, pools: Vec::new(), cached_pools: BTreeSet::new(), records, refused: BTreeMap::new() }
    }

    /// Adds the need of a pool, or the reason why the pool can't have it.
    pub(in crate::provider) fn add(&mut self, pool: &str, need: Result<PoolNeed<Target>, DependencyFailure>) {
        match need {
            Ok(need) => self.pools.push(need),
            Err(failure) => drop(self.refused.insert(pool.to_owned(), failure)),
        }
    }

    /// The dependencies and records after `provide` for each pool. Records of failed pools stay, those of other pools
    /// are removed.
    pub(in crate::provider) fn provided(
        &self,
        mut provide: impl FnMut(&PoolNeed<Target>) -> Result<DependencyRecord, DependencyFailure>,
    ) -> (Dependencies, Vec<DependencyRecord>) {
        let mut dependencies = Dependencies { failures: self.refused.clone(), ..Dependencies::default() };
        let stays = |record: &&DependencyRecord| self.refused.contains_key(&record.pool_name);
        let mut records: Vec<DependencyRecord> = self.records.iter().filter(stays).cloned().collect();
        for need in &self.pools {
            records.extend(match provide(need) {
                Ok(record) => Some(record),
                Err(failure) => {
                    dependencies.failures.insert(need.pool.clone(), failure);
                    need.recorded.clone()
                }
            });
        }
        (dependencies, records)
    }
}

/// Decodes the cloud that a file describes, either in `member` or as the whole file. `name` is used in messages.
///
/// # Errors
/// If the description can't be decoded.
pub(in crate::provider) fn described_cloud<T: DeserializeOwned>(
    described: &Value,
    member: &str,
    name: &str,
) -> Result<T, WorkerError> {
    decode_value(described.get(member).filter(|cloud| !cloud.is_null()).unwrap_or(described))
        .map_err(|source| WorkerError::Document { path: format!("description of {name}"), source: source.into() })
}

/// The recorded dependencies: after their reconciliation if it happened, otherwise from the provider status. `what` is
/// used in messages.
///
/// # Errors
/// If a record can't be decoded. A pool without its record would get another dependency, which rolls its nodes.
pub(in crate::provider) fn records(
    context: &WorkerContext<'_>,
    what: &str,
    of_status: &[DependencyRecord],
) -> Result<Vec<DependencyRecord>, WorkerError> {
    match context.dependencies.map(|dependencies| &dependencies.records) {
        None => Ok(of_status.to_vec()),
        Some(Value::Null) => Ok(Vec::new()),
        Some(records) => decode_value(records)
            .map_err(|source| WorkerError::Document { path: format!("records of {what}"), source: source.into() }),
    }
}

/// The cloud dependencies of the pools of one Worker.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dependencies {
    /// Records in the format of the provider status.
    pub records: Value,
    /// Reasons why dependencies are missing, by pool name.
    pub failures: BTreeMap<String, DependencyFailure>,
    /// Dependencies in progress, by pool name: what the pool waits for, with the error code to report if it takes too
    /// long.
    pub waiting: BTreeMap<String, DependencyFailure>,
    /// Reason why unused dependencies could not be deleted.
    pub cleanup_failure: Option<String>,
}

impl Dependencies {
    /// Checks that a pool has its dependency, which the field at `path` requires.
    ///
    /// # Errors
    /// If the dependency is missing or in progress.
    pub(in crate::provider) fn check(&self, pool: &str, path: &'static str) -> Result<(), PoolProblem> {
        if let Some(failure) = self.failures.get(pool) {
            return Err(PoolProblem::Dependency { path, failure: failure.clone() });
        }
        self.waiting.get(pool).map_or(Ok(()), |awaited| Err(PoolProblem::DependencyPending(awaited.clone())))
    }
}

/// Reason why a pool lacks its dependency.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DependencyFailure {
    /// Message for users.
    pub message: String,
    /// Gardener's error code, if it is known who has to act.
    pub code: Option<ErrorCode>,
}

impl DependencyFailure {
    /// A failure that only a configuration change resolves.
    #[must_use]
    pub fn of_configuration(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: Some(ErrorCode::ConfigurationProblem) }
    }

    /// A failure with an unknown cause.
    #[must_use]
    pub fn without_code(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: None }
    }
}
