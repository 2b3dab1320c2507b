//! The credentials of an identity: those that AWS's own tools would use, access keys in a Secret, or those of an assumed
//! role. They are cached until shortly before they expire. Every page of a list
//! needs a signature, and the issuer (STS, SSO, a program) should get only one request.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aws_config::SdkConfig;
use aws_config::provider_config::ProviderConfig;
use aws_config::sts::AssumeRoleProvider;
use aws_config::web_identity_token::{StaticConfiguration, WebIdentityTokenCredentialsProvider};
use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use tokio::sync::Mutex;

use profiles::images::identity::{AssumedRole, Identity};

/// Time limit for the issuer of credentials.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How long before their expiry credentials are no longer used.
const MARGIN: Duration = Duration::from_secs(120);

/// Name of the sessions of assumed roles, for CloudTrail.
const SESSION: &str = "gardener-extension-worker";
/// Environment variable with the file that has the token of the pod, as for AWS's own tools.
const TOKEN_FILE: &str = "AWS_WEB_IDENTITY_TOKEN_FILE";
/// Maximum size of a value in a Secret.
const MOST_BYTES: u64 = 16 << 10;

/// The provider of the credentials of an identity. `secrets` is a folder with a folder for each Secret.
///
/// # Errors
/// If the identity can't be used. The error names the Secret or role, but never their content.
pub(super) async fn provider_of(
    identity: &Identity,
    secrets: Option<&Path>,
    configuration: &SdkConfig,
) -> Result<SharedCredentialsProvider, String> {
    match identity {
        Identity::OfProgram => {
            configuration.credentials_provider().ok_or_else(|| "no credentials are configured".to_owned())
        }
        Identity::Secret(name) => Ok(SharedCredentialsProvider::new(keys(secrets, name)?)),
        Identity::Role(role) => Ok(assumed(role, configuration).await),
        Identity::RoleOfSecret(name, role) => {
            let keys = SharedCredentialsProvider::new(keys(secrets, name)?);
            let configuration = configuration.to_builder().credentials_provider(keys).build();
            Ok(assumed(role, &configuration).await)
        }
        Identity::WorkloadIdentity(role) => of_workload(role, configuration),
    }
}

/// The access keys in a Secret, which is read again for each list of images.
fn keys(secrets: Option<&Path>, name: &str) -> Result<Credentials, String> {
    let folder = secrets.ok_or_else(|| format!("Secret {name:?}: no folder with Secrets is configured"))?.join(name);
    let [key, secret] = ["accessKeyID", "secretAccessKey"].map(|key| value(&folder, key));
    let missing = |key: &str| format!("Secret {name:?}: it has no {key}");
    let key = key?.ok_or_else(|| missing("accessKeyID"))?;
    let secret = secret?.ok_or_else(|| missing("secretAccessKey"))?;
    Ok(Credentials::new(key, secret, value(&folder, "sessionToken")?, None, "Secret"))
}

/// A value in the folder of a Secret; `None` if there is none.
fn value(folder: &Path, key: &str) -> Result<Option<String>, String> {
    let unreadable = |error: std::io::Error| format!("Secret {}: {key}: {error}", folder.display());
    let file = match File::open(folder.join(key)) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    let mut text = String::new();
    file.take(MOST_BYTES).read_to_string(&mut text).map_err(unreadable)?;
    let text = text.trim();
    Ok(if text.is_empty() { None } else { Some(text.to_owned()) })
}

/// A role, assumed with the credentials of the configuration.
async fn assumed(role: &AssumedRole, configuration: &SdkConfig) -> SharedCredentialsProvider {
    let builder = AssumeRoleProvider::builder(&role.arn).session_name(SESSION).configure(configuration);
    let builder = match &role.external_id {
        Some(external_id) => builder.external_id(external_id),
        None => builder,
    };
    SharedCredentialsProvider::new(builder.build().await)
}

/// A role, assumed with the token of the pod.
fn of_workload(role: &AssumedRole, configuration: &SdkConfig) -> Result<SharedCredentialsProvider, String> {
    let file = std::env::var_os(TOKEN_FILE).filter(|file| !file.is_empty());
    let file = file.ok_or_else(|| format!("{TOKEN_FILE} does not name the token of the workload"))?;
    let token = StaticConfiguration {
        web_identity_token_file: PathBuf::from(file),
        role_arn: role.arn.clone(),
        session_name: SESSION.to_owned(),
    };
    let provider = ProviderConfig::default().with_region(configuration.region().cloned());
    let provider = WebIdentityTokenCredentialsProvider::builder().configure(&provider).static_configuration(token);
    Ok(SharedCredentialsProvider::new(provider.build()))
}

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
