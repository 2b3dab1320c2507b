//! The credentials that AWS's own tools would use, cached until shortly before they expire. Every page of a list
//! needs a signature, and the issuer (STS, SSO, a program) should get only one request.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use tokio::sync::Mutex;

/// Time limit for the issuer of credentials.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How long before their expiry credentials are no longer used.
const MARGIN: Duration = Duration::from_secs(120);

/// Credentials for all regions.
#[derive(Clone)]
pub(super) struct KeptCredentials {
    provider: SharedCredentialsProvider,
    kept: Arc<Mutex<Option<Credentials>>>,
}

impl KeptCredentials {
    pub(super) fn new(provider: SharedCredentialsProvider) -> Self {
        Self { provider, kept: Arc::default() }
    }

    /// Returns valid credentials.
    ///
    /// # Errors
    /// The error lists the sources that were tried, but never their content.
    pub(super) async fn get(&self) -> Result<Credentials, String> {
        let mut kept = self.kept.lock().await;
        let is_good = |cached: &&Credentials| cached.expiry().is_none_or(|expiry| expiry > SystemTime::now() + MARGIN);
        if let Some(cached) = kept.as_ref().filter(is_good) {
            return Ok(cached.clone());
        }
        let given = tokio::time::timeout(TIMEOUT, self.provider.provide_credentials()).await;
        let given = given.map_err(|_| format!("no credentials within {TIMEOUT:?}"))?;
        let given = given.map_err(|error| format!("{:#}", anyhow::Error::from(error)))?;
        Ok(kept.insert(given).clone())
    }
}
