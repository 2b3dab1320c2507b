//! The credentials of a Worker. They are looked at before anything is written, because a
//! machine that can't be made costs a person more time than an error does.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::documents::API_VERSION;
use crate::api::gardener::Worker;
use crate::api::gotext::{json::to_go_json, yaml};
use crate::api::secret::{SecretContent, Secrets, Sensitive};
use crate::provider::WorkerError;
use crate::provider::document::{Document, decode_document};

/// Label of a Secret without a client secret: a token comes from outside.
const WORKLOAD_IDENTITY: (&str, &str) = ("security.gardener.cloud/purpose", "workload-identity-token-requestor");
const SUBSCRIPTION: &str = "subscriptionID";
const TENANT: &str = "tenantID";
const CLIENT: &str = "clientID";
const IDS: [&str; 3] = [SUBSCRIPTION, TENANT, CLIENT];
const CLIENT_SECRET: &str = "clientSecret";
/// Key of the token of a workload identity.
const TOKEN: &str = "token";
/// Key of a document with the ids that a workload identity does not have as keys of their own.
const CONFIG: &str = "config";

/// Who asks Azure for something.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Credentials {
    /// The subscription.
    pub subscription: String,
    /// The tenant, which is part of the address that tokens come from.
    pub tenant: String,
    /// The client (application).
    pub client: String,
    /// What it proves that with.
    pub proof: Proof,
}

/// What a client proves with who it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Proof {
    /// A password.
    ClientSecret(Sensitive),
    /// A token of a workload identity, for an access token of Azure. It is renewed in the Secret all the time.
    Assertion(Sensitive),
}

/// What a workload identity stands for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkloadIdentityConfig {
    #[serde(rename = "apiVersion")]
    _api_version: Option<String>,
    #[serde(rename = "kind")]
    _kind: Option<String>,
    #[serde(rename = "clientID")]
    client_id: Option<String>,
    #[serde(rename = "tenantID")]
    tenant_id: Option<String>,
    #[serde(rename = "subscriptionID")]
    subscription_id: Option<String>,
}

impl Document for WorkloadIdentityConfig {
    const KIND: &'static str = "WorkloadIdentityConfig";
    const API_VERSION: &'static str = API_VERSION;
    const STRICT: bool = true;
}

/// Looks at the Secret that `spec.secretRef` names: whether it is enough for machine-controller-manager.
///
/// # Errors
/// When it is missing, or something in it that every call to the cloud needs.
pub(super) fn check_credentials(worker: &Worker, secrets: &Secrets) -> Result<(), WorkerError> {
    let (name, content) = secret(worker, secrets)?;
    if is_workload_identity(content) { workload_identity_ids(name, content) } else { ids(name, content) }.map(drop)
}

/// The credentials in the Secret that `spec.secretRef` names, for calls of our own.
///
/// # Errors
/// As machine-controller-manager would fail with them, and where the token of a workload identity is missing.
pub fn credentials(worker: &Worker, secrets: &Secrets) -> Result<Credentials, WorkerError> {
    let (name, content) = secret(worker, secrets)?;
    let workload_identity = is_workload_identity(content);
    let [subscription, tenant, client] =
        if workload_identity { workload_identity_ids(name.clone(), content)? } else { ids(name.clone(), content)? };
    let proof = |key: &'static str| {
        let text = content.non_empty(key).ok_or(WorkerError::CredentialsIncomplete { secret: name.clone(), key })?;
        let unreadable = |_| WorkerError::CredentialsUnreadable { secret: name.clone(), key };
        std::str::from_utf8(text).map(Sensitive::from).map_err(unreadable)
    };
    let proof =
        if workload_identity { Proof::Assertion(proof(TOKEN)?) } else { Proof::ClientSecret(proof(CLIENT_SECRET)?) };
    for (key, id) in [(SUBSCRIPTION, &subscription), (CLIENT, &client)] {
        if id.is_empty() {
            return Err(WorkerError::CredentialsIncomplete { secret: name, key });
        }
        if !is_id(id) {
            return Err(WorkerError::CredentialsUnreadable { secret: name, key });
        }
    }
    Ok(Credentials { subscription, tenant, client, proof })
}

/// `namespace/name` of the Secret, and what is in it.
fn secret<'a>(worker: &Worker, secrets: &'a Secrets) -> Result<(String, &'a SecretContent), WorkerError> {
    let reference = &worker.spec.secret_ref;
    let (namespace, name) =
        (reference.namespace.as_deref().unwrap_or_default(), reference.name.as_deref().unwrap_or_default());
    let secret = format!("{namespace}/{name}");
    match secrets.get(namespace, name) {
        Some(content) => Ok((secret, content)),
        None => Err(WorkerError::CredentialsMissing(secret)),
    }
}

fn is_workload_identity(content: &SecretContent) -> bool {
    content.labels.get(WORKLOAD_IDENTITY.0).is_some_and(|purpose| purpose == WORKLOAD_IDENTITY.1)
}

/// Subscription, tenant and client beside a client secret.
fn ids(secret: String, content: &SecretContent) -> Result<[String; 3], WorkerError> {
    if let Some(key) = IDS.into_iter().find(|key| !content.has_key(key)) {
        return Err(WorkerError::CredentialsIncomplete { secret, key });
    }
    if content.non_empty(CLIENT_SECRET).is_none() {
        return Err(WorkerError::CredentialsIncomplete { secret, key: CLIENT_SECRET });
    }
    let ids = IDS.map(|key| text(content, key));
    check_tenant(secret, &ids[1])?;
    Ok(ids)
}

/// Subscription, tenant and client of a workload identity.
fn workload_identity_ids(secret: String, content: &SecretContent) -> Result<[String; 3], WorkerError> {
    let mut ids = IDS.map(|key| text(content, key));
    if ids.iter().any(String::is_empty) {
        let Some(config) = content.non_empty(CONFIG) else {
            return Err(WorkerError::CredentialsIncomplete { secret, key: CONFIG });
        };
        let config = workload_identity_config(&secret, config)?;
        let configured = [config.subscription_id, config.tenant_id, config.client_id];
        for (id, configured) in ids.iter_mut().zip(configured).filter(|(id, _)| id.is_empty()) {
            *id = configured.unwrap_or_default();
        }
    }
    check_tenant(secret, &ids[1])?;
    Ok(ids)
}

/// The value of a key; what is not UTF-8 can't be an id and is refused as one.
fn text(content: &SecretContent, key: &str) -> String {
    String::from_utf8_lossy(content.non_empty(key).unwrap_or_default()).into_owned()
}

fn workload_identity_config(secret: &str, text: &[u8]) -> Result<WorkloadIdentityConfig, WorkerError> {
    let unreadable = || WorkerError::CredentialsUnreadable { secret: secret.to_owned(), key: CONFIG };
    let text = std::str::from_utf8(text).map_err(|_| unreadable())?;
    let documents = yaml::documents(text).map_err(|_| unreadable())?;
    let document = to_go_json(documents.first().ok_or_else(unreadable)?);
    let raw = RawValue::from_string(document).map_err(|_| unreadable())?;
    decode_document(&raw)
        .map_err(|source| WorkerError::Document { path: format!("Secret {secret:?} data.{CONFIG}"), source })
}

/// A tenant is part of the address that tokens come from.
fn check_tenant(secret: String, tenant: &str) -> Result<(), WorkerError> {
    if is_id(tenant) { Ok(()) } else { Err(WorkerError::CredentialsUnreadable { secret, key: TENANT }) }
}

fn is_id(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
}
