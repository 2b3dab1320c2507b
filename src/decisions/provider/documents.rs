//! Provider documents that belong to a whole Worker, with their paths.

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use super::document::{Document, decode_document};
use super::{PoolProblem, WorkerContext, WorkerError};
use wire::api::gardener::WorkerPool;
use wire::api::gotext::json::decode_lenient;

/// Paths of a Worker's documents, for messages.
pub(super) const INFRASTRUCTURE_STATUS: &str = "Worker spec.infrastructureProviderStatus";
pub(super) const PROVIDER_STATUS: &str = "Worker status.providerStatus";

impl WorkerContext<'_> {
    /// Path of the CloudProfile's provider config, for messages.
    #[must_use]
    pub fn profile_config_path(&self) -> String {
        let profile = self.cloud_profile.metadata.name.as_deref().unwrap_or_default();
        format!("CloudProfile {profile:?} spec.providerConfig")
    }

    /// Decodes the provider config of the CloudProfile. It is the largest document and shared by many Workers, so the
    /// decoded form is cached in the profile.
    ///
    /// # Errors
    /// If it can't be decoded.
    pub fn profile_config<T: Document + Send + Sync + 'static>(&self) -> Result<Option<Arc<T>>, WorkerError> {
        let spec = &self.cloud_profile.spec;
        let decoded = spec.decoded_provider_config.get_or_decode(|| {
            let config = spec.provider_config.as_deref().map(decode_document::<T>).transpose();
            config.map(|config| config.map(Arc::new))
        });
        (*decoded).clone().map_err(|source| WorkerError::Document { path: self.profile_config_path(), source })
    }

    /// Decodes the status that the infrastructure controller wrote for the shoot.
    ///
    /// # Errors
    /// If it is missing or can't be decoded.
    pub fn infrastructure_status<T: Document>(&self) -> Result<T, WorkerError> {
        decode(INFRASTRUCTURE_STATUS, self.worker.spec.infrastructure_provider_status.as_deref())?
            .ok_or_else(|| WorkerError::DocumentMissing { path: INFRASTRUCTURE_STATUS.to_owned(), kind: T::KIND })
    }

    /// Decodes the provider status of the Worker.
    ///
    /// # Errors
    /// If it can't be decoded.
    pub fn provider_status<T: Document>(&self) -> Result<Option<T>, WorkerError> {
        decode(PROVIDER_STATUS, self.worker.status.provider_status.as_deref())
    }

    /// The provider status as plain JSON, regardless of its type; null if absent.
    ///
    /// # Errors
    /// If it is not valid JSON.
    pub fn recorded_provider_status(&self) -> Result<Value, WorkerError> {
        let Some(raw) = self.worker.status.provider_status.as_deref() else { return Ok(Value::Null) };
        decode_lenient(raw.get())
            .map_err(|error| WorkerError::Document { path: PROVIDER_STATUS.to_owned(), source: error.into() })
    }
}

/// Decodes the provider config of a pool; empty if absent.
///
/// # Errors
/// If it can't be decoded.
pub fn pool_config<T: Document>(pool: &WorkerPool) -> Result<T, PoolProblem> {
    Ok(pool.provider_config.as_deref().map(decode_document).transpose()?.unwrap_or_default())
}

/// Decodes the document at a path.
pub(super) fn decode<T: Document>(path: &str, raw: Option<&RawValue>) -> Result<Option<T>, WorkerError> {
    raw.map(decode_document).transpose().map_err(|source| WorkerError::Document { path: path.to_owned(), source })
}

/// The first entry of the infrastructure status with the purpose `nodes`. `path` and `what` are used in messages.
///
/// # Errors
/// If no entry has that purpose.
pub(super) fn for_nodes<'a, T>(
    listed: &'a [T],
    path: &'static str,
    what: &'static str,
    purpose: fn(&T) -> &String,
) -> Result<&'a T, WorkerError> {
    let missing = WorkerError::NodesEntryMissing { path, what };
    listed.iter().find(|item| purpose(item) == "nodes").ok_or(missing)
}
