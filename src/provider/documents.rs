//! The documents of a provider that belong to a whole Worker, and where they stand.

use serde_json::value::RawValue;

use super::document::{Document, decode_document};
use super::{WorkerContext, WorkerError};

impl WorkerContext<'_> {
    /// Where the provider config of the CloudProfile stands, for messages.
    #[must_use]
    pub fn profile_config_path(&self) -> String {
        let profile = self.cloud_profile.metadata.name.as_deref().unwrap_or_default();
        format!("CloudProfile {profile:?} spec.providerConfig")
    }

    /// The provider config of the CloudProfile.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn profile_config<T: Document>(&self) -> Result<Option<T>, WorkerError> {
        decode(&self.profile_config_path(), self.cloud_profile.spec.provider_config.as_deref())
    }

    /// What the infrastructure controller has made for the shoot.
    ///
    /// # Errors
    /// When it is missing or can't be read.
    pub fn infrastructure_status<T: Document>(&self) -> Result<T, WorkerError> {
        const PATH: &str = "Worker spec.infrastructureProviderStatus";
        decode(PATH, self.worker.spec.infrastructure_provider_status.as_deref())?
            .ok_or_else(|| WorkerError::DocumentMissing { path: PATH.to_owned(), kind: T::KIND })
    }

    /// What the provider kept in the status of the Worker.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn provider_status<T: Document>(&self) -> Result<Option<T>, WorkerError> {
        decode("Worker status.providerStatus", self.worker.status.provider_status.as_deref())
    }
}

fn decode<T: Document>(path: &str, raw: Option<&RawValue>) -> Result<Option<T>, WorkerError> {
    raw.map(decode_document).transpose().map_err(|source| WorkerError::Document { path: path.to_owned(), source })
}
