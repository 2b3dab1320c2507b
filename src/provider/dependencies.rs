//! What pools depend on at a cloud (such as scale sets): fetched or made before a plan, and handed in as data.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::api::gardener::ErrorCode;

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
}
