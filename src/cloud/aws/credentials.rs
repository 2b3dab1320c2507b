//! The credentials that AWS's own tools would use, kept until shortly before they expire: each page of a list is signed with them,
//! and who gives them out (STS, SSO, a program) is asked once.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use tokio::sync::Mutex;

/// How long somebody may take to give credentials.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How long before they expire credentials are not used any more.
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

    /// Those that can be used now.
    ///
    /// # Errors
    /// With the sources that were tried, never with what was in them.
    pub(super) async fn get(&self) -> Result<Credentials, String> {
        let mut kept = self.kept.lock().await;
        let is_good = |known: &&Credentials| known.expiry().is_none_or(|expiry| expiry > SystemTime::now() + MARGIN);
        if let Some(known) = kept.as_ref().filter(is_good) {
            return Ok(known.clone());
        }
        let given = tokio::time::timeout(TIMEOUT, self.provider.provide_credentials()).await;
        let given = given.map_err(|_| format!("no credentials within {TIMEOUT:?}"))?;
        let given = given.map_err(|error| format!("{:#}", anyhow::Error::from(error)))?;
        Ok(kept.insert(given).clone())
    }
}
