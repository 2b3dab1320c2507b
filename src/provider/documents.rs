//! The documents of a provider that belong to a whole Worker, and where they stand.

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use super::document::{Document, decode_document};
use super::{PoolProblem, WorkerContext, WorkerError};
use crate::api::gardener::WorkerPool;
use crate::api::gotext::json::decode_lenient;

/// Where the documents of a Worker stand, for messages.
pub(super) const INFRASTRUCTURE_STATUS: &str = "Worker spec.infrastructureProviderStatus";
pub(super) const PROVIDER_STATUS: &str = "Worker status.providerStatus";

impl WorkerContext<'_> {
    /// Where the provider config of the CloudProfile stands, for messages.
    #[must_use]
    pub fn profile_config_path(&self) -> String {
        let profile = self.cloud_profile.metadata.name.as_deref().unwrap_or_default();
        format!("CloudProfile {profile:?} spec.providerConfig")
    }

    /// The provider config of the CloudProfile. It is the largest document of all and many Workers share it, so its decoded
    /// form is kept beside the profile.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn profile_config<T: Document + Send + Sync + 'static>(&self) -> Result<Option<Arc<T>>, WorkerError> {
        let spec = &self.cloud_profile.spec;
        let decoded = spec.decoded_provider_config.get_or_decode(|| {
            let config = spec.provider_config.as_deref().map(decode_document::<T>).transpose();
            config.map(|config| config.map(Arc::new))
        });
        (*decoded).clone().map_err(|source| WorkerError::Document { path: self.profile_config_path(), source })
    }

    /// What the infrastructure controller has made for the shoot.
    ///
    /// # Errors
    /// When it is missing or can't be read.
    pub fn infrastructure_status<T: Document>(&self) -> Result<T, WorkerError> {
        decode(INFRASTRUCTURE_STATUS, self.worker.spec.infrastructure_provider_status.as_deref())?
            .ok_or_else(|| WorkerError::DocumentMissing { path: INFRASTRUCTURE_STATUS.to_owned(), kind: T::KIND })
    }

    /// What the provider kept in the status of the Worker.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn provider_status<T: Document>(&self) -> Result<Option<T>, WorkerError> {
        decode(PROVIDER_STATUS, self.worker.status.provider_status.as_deref())
    }

    /// The same as it is recorded, whatever is in it; null when nothing is.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn recorded_provider_status(&self) -> Result<Value, WorkerError> {
        let Some(raw) = self.worker.status.provider_status.as_deref() else { return Ok(Value::Null) };
        decode_lenient(raw.get())
            .map_err(|error| WorkerError::Document { path: PROVIDER_STATUS.to_owned(), source: error.into() })
    }
}

/// The provider config of a pool; absent is empty.
///
/// # Errors
/// When it can't be read.
pub fn pool_config<T: Document>(pool: &WorkerPool) -> Result<T, PoolProblem> {
    Ok(pool.provider_config.as_deref().map(decode_document).transpose()?.unwrap_or_default())
}

/// Decodes a document that stands at a path.
pub(super) fn decode<T: Document>(path: &str, raw: Option<&RawValue>) -> Result<Option<T>, WorkerError> {
    raw.map(decode_document).transpose().map_err(|source| WorkerError::Document { path: path.to_owned(), source })
}

/// The first of what the infrastructure has for nodes. `path` is where it stands, `what` it is.
///
/// # Errors
/// When it has nothing.
pub(super) fn for_nodes<'a, T>(
    listed: &'a [T],
    path: &'static str,
    what: &'static str,
    purpose: fn(&T) -> &String,
) -> Result<&'a T, WorkerError> {
    let missing = WorkerError::NothingForNodes { path, what };
    listed.iter().find(|item| purpose(item) == "nodes").ok_or(missing)
}
