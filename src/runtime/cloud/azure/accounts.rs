//! Accounts at Azure: one pipeline, and so one access token, for all Workers with the same credentials.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use azure_core::credentials::{Secret, TokenCredential};
use azure_core::http::policies::Policy;
use azure_core::http::{
    ClientMethodOptions, ClientOptions, ExponentialRetryOptions, Pipeline, RetryOptions, Transport, UserAgentOptions,
    new_http_client,
};
use azure_identity::{
    ClientAssertion, ClientAssertionCredential, ClientAssertionCredentialOptions, ClientSecretCredential,
    ClientSecretCredentialOptions,
};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::access_token::Authorized;
use super::addresses::{Addresses, configuration, scope};
use super::error::AzureError;
use super::retry_listener::RetryNotifier;
use super::transport::transport;
use crate::cloud::WriteCheck;
use decisions::provider::azure::cloud::AzureCloud;
use decisions::provider::azure::credentials::{ClientAuthentication, Credentials};
use wire::api::secret::Sensitive;

/// Unused accounts are dropped after this time. Tokens of workload identities change all the time, and each of them
/// is a new account.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60 * 60);

/// Inputs of an access token. Two shoots share a token only if all of them are equal.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Identity {
    cloud: AzureCloud,
    tenant: String,
    client: String,
    proof: ClientAuthentication,
}

/// All accounts in use.
pub(super) struct Accounts {
    pub(super) addresses: Addresses,
    transport: Transport,
    retries: RetryOptions,
    cached: Mutex<HashMap<Identity, Cached>>,
    made: AtomicU64,
}

struct Cached {
    account: Account,
    used: Instant,
}

/// A pipeline with its access token.
#[derive(Clone)]
pub(super) struct Account {
    pub(super) pipeline: Pipeline,
    /// Unique among all accounts of this process.
    number: u64,
}

impl Accounts {
    /// Sends requests over the network.
    pub(super) fn new(addresses: Addresses, write_check: WriteCheck) -> Self {
        Self::by(transport(new_http_client(None), addresses.clone(), write_check), addresses, retries())
    }

    /// Sends requests through this transport, with these retries.
    pub(super) fn by(transport: Transport, addresses: Addresses, retries: RetryOptions) -> Self {
        Self { addresses, transport, retries, cached: Mutex::default(), made: AtomicU64::default() }
    }

    /// The account of these credentials. Sends no request yet.
    ///
    /// # Errors
    /// If the credentials are unusable.
    pub(super) fn account(&self, cloud: AzureCloud, credentials: &Credentials) -> Result<Account, AzureError> {
        let identity = Identity {
            cloud,
            tenant: credentials.tenant.clone(),
            client: credentials.client.clone(),
            proof: credentials.proof.clone(),
        };
        let now = Instant::now();
        let mut cached = self.cached.lock();
        if let Some(cached) = cached.get_mut(&identity) {
            cached.used = now;
            return Ok(cached.account.clone());
        }
        cached.retain(|_, cached| now.duration_since(cached.used) < FORGOTTEN_AFTER);
        let pipeline = self.new_pipeline(&identity).map_err(|error| AzureError::of("using the credentials", error))?;
        let account = Account { pipeline, number: self.made.fetch_add(1, Ordering::Relaxed) };
        cached.insert(identity, Cached { account: account.clone(), used: now });
        Ok(account)
    }

    /// Drops an account that was refused, so that the next caller gets a new one with a new token.
    pub(super) fn drop_account(&self, refused: &Account) {
        let mut cached = self.cached.lock();
        cached.retain(|_, cached| cached.account.number != refused.number);
    }

    fn new_pipeline(&self, identity: &Identity) -> azure_core::Result<Pipeline> {
        let credential = self.credential(identity)?;
        let authorized = Authorized::new(credential, scope(identity.cloud));
        let per_try: Vec<Arc<dyn Policy>> = vec![Arc::new(RetryNotifier), Arc::new(authorized)];
        let name = Some("gardener-extension-worker");
        Ok(Pipeline::new(name, Some(env!("CARGO_PKG_VERSION")), self.options(identity.cloud), vec![], per_try, None))
    }

    fn credential(&self, identity: &Identity) -> azure_core::Result<Arc<dyn TokenCredential>> {
        let tenant = &identity.tenant;
        let client = identity.client.clone();
        let client_options = self.options(identity.cloud);
        Ok(match &identity.proof {
            ClientAuthentication::ClientSecret(secret) => {
                let options = ClientSecretCredentialOptions { client_options };
                ClientSecretCredential::new(tenant, client, Secret::new(secret.expose().to_owned()), Some(options))?
            }
            ClientAuthentication::Assertion(token) => {
                let options = ClientAssertionCredentialOptions { client_options };
                ClientAssertionCredential::new(tenant.clone(), client, Held(token.clone()), Some(options))?
            }
        })
    }

    fn options(&self, cloud: AzureCloud) -> ClientOptions {
        ClientOptions {
            retry: self.retries.clone(),
            transport: Some(self.transport.clone()),
            user_agent: UserAgentOptions { application_id: Some("gardener-ext-worker".to_owned()) },
            cloud: Some(Arc::new(configuration(cloud))),
            ..ClientOptions::default()
        }
    }
}

/// Retries transient status codes (408, 429, 500, 502, 503, 504) and broken connections, honouring `Retry-After`.
/// This only delays the background task.
fn retries() -> RetryOptions {
    RetryOptions::exponential(ExponentialRetryOptions {
        initial_delay: azure_core::time::Duration::milliseconds(250),
        max_retries: 4,
        max_total_elapsed: azure_core::time::Duration::seconds(60),
        max_delay: azure_core::time::Duration::seconds(10),
    })
}

/// The token of a workload identity from the Secret.
struct Held(Sensitive);

impl fmt::Debug for Held {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Held(..)")
    }
}

#[async_trait]
impl ClientAssertion for Held {
    async fn secret(&self, _: Option<ClientMethodOptions<'_>>) -> azure_core::Result<String> {
        Ok(self.0.expose().to_owned())
    }
}
