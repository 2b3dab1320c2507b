//! What pools depend on at a cloud (such as scale sets): fetched or made before a plan, and handed in as data.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::document::documents;
use super::{PoolProblem, WorkerContext, WorkerError};
use crate::api::gardener::ErrorCode;
use crate::api::gotext::json::decode_value;

documents! { strict
    /// What a pool depends on at the cloud, as the provider status records it.
    #[derive(PartialEq, Eq, serde::Serialize)]
    pub struct DependencyRecord {
        /// Name of the pool.
        pub pool_name: String,
        /// Its id at the cloud.
        pub id: String,
        /// Its name at the cloud.
        pub name: String,
    }
}

/// What the pools of a Worker need at its cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needs<Scope, Wanted> {
    /// Where, and who asks.
    pub scope: Scope,
    /// Pools that need something, in their order.
    pub pools: Vec<PoolNeed<Wanted>>,
    /// Names of the pools of the Worker, as far as they count here.
    pub known_pools: BTreeSet<String>,
    /// All records.
    pub records: Vec<DependencyRecord>,
    /// Pools that can't have what they need, or of which it is unknown, with the reason. They keep what they have.
    pub refused: BTreeMap<String, DependencyFailure>,
}

/// What one pool needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolNeed<Wanted> {
    /// Name of the pool.
    pub pool: String,
    /// What is recorded for it.
    pub recorded: Option<DependencyRecord>,
    /// How it shall be.
    pub wanted: Wanted,
}

impl<Scope, Wanted> Needs<Scope, Wanted> {
    /// No pool needs anything; so much is recorded.
    #[must_use]
    pub fn of_records(scope: Scope, records: Vec<DependencyRecord>) -> Self {
        let (pools, known_pools, refused) = Default::default();
        Self { scope, pools, known_pools, records, refused }
    }

    /// Puts in what a pool needs, or why it can't have it.
    pub(in crate::provider) fn add(&mut self, pool: &str, need: Result<PoolNeed<Wanted>, DependencyFailure>) {
        match need {
            Ok(need) => self.pools.push(need),
            Err(failure) => drop(self.refused.insert(pool.to_owned(), failure)),
        }
    }

    /// What the pools would depend on if each got what `provide` says, and the records then. Those of pools that fail stay, those
    /// of other pools have gone.
    pub(in crate::provider) fn provided(
        &self,
        mut provide: impl FnMut(&PoolNeed<Wanted>) -> Result<DependencyRecord, DependencyFailure>,
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

/// The cloud that a file describes: in a member of its own, or alone. `name` is for messages.
///
/// # Errors
/// When the description can't be read.
pub(in crate::provider) fn described_cloud<T: DeserializeOwned>(
    described: &Value,
    member: &str,
    name: &str,
) -> Result<T, WorkerError> {
    decode_value(described.get(member).filter(|cloud| !cloud.is_null()).unwrap_or(described))
        .map_err(|source| WorkerError::Document { path: format!("description of {name}"), source: source.into() })
}

/// What is recorded: after the dependencies were reconciled, else in the provider status. `what` it is.
///
/// # Errors
/// When a record can't be read: a pool without its record would get something else, and its nodes would roll.
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

/// What the pools of one Worker depend on at the cloud.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dependencies {
    /// The records, in the form in which the provider status keeps them.
    pub records: Value,
    /// Why pools lack theirs, by name of the pool.
    pub failures: BTreeMap<String, DependencyFailure>,
    /// Pools whose own is on its way: what they wait for, with the code for the case that it takes too long.
    pub waiting: BTreeMap<String, DependencyFailure>,
    /// Why what no pool depends on any more could not be removed.
    pub cleanup_failure: Option<String>,
}

impl Dependencies {
    /// Whether a pool has what it depends on, which its field at `path` asks for.
    ///
    /// # Errors
    /// When it lacks it, or waits for it.
    pub(in crate::provider) fn check(&self, pool: &str, path: &'static str) -> Result<(), PoolProblem> {
        if let Some(failure) = self.failures.get(pool) {
            return Err(PoolProblem::Dependency { path, failure: failure.clone() });
        }
        self.waiting.get(pool).map_or(Ok(()), |awaited| Err(PoolProblem::DependencyAwaited(awaited.clone())))
    }
}

/// Why a pool lacks what it depends on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DependencyFailure {
    /// Text for people.
    pub message: String,
    /// Gardener's code, where it is known whose turn it is.
    pub code: Option<ErrorCode>,
}

impl DependencyFailure {
    /// One that only another configuration helps against.
    #[must_use]
    pub fn of_configuration(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: Some(ErrorCode::ConfigurationProblem) }
    }

    /// One that nobody knows whose turn it is of.
    #[must_use]
    pub fn without_code(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: None }
    }
}
