//! Cloud credentials of a Worker. They are validated before anything is written, because an error is easier to diagnose
//! than machines that can't be created.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::documents::API_VERSION;
use crate::provider::WorkerError;
use crate::provider::document::{Document, decode_document};
use wire::api::gardener::Worker;
use wire::api::gotext::{json::to_go_json, yaml};
use wire::api::secret::{SecretContent, Secrets, Sensitive};

/// Label of a Secret with a workload identity token instead of a client secret.
const WORKLOAD_IDENTITY: (&str, &str) = ("security.gardener.cloud/purpose", "workload-identity-token-requestor");
const SUBSCRIPTION: &str = "subscriptionID";
const TENANT: &str = "tenantID";
const CLIENT: &str = "clientID";
const IDS: [&str; 3] = [SUBSCRIPTION, TENANT, CLIENT];
const CLIENT_SECRET: &str = "clientSecret";
/// Key with the token of a workload identity.
const TOKEN: &str = "token";
/// Key with a document that supplies ids missing from the Secret of a workload identity.
const CONFIG: &str = "config";

/// Credentials for Azure.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Credentials {
    /// Subscription id.
    pub subscription: String,
    /// Tenant id, which is part of the token URL.
    pub tenant: String,
    /// Client (application) id.
    pub client: String,
    /// Secret that authenticates the client.
    pub proof: ClientAuthentication,
}

/// The secret that authenticates a client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ClientAuthentication {
    /// A client secret.
    ClientSecret(Sensitive),
    /// A workload identity token, exchanged for an access token of Azure. It is rotated regularly in the Secret.
    Assertion(Sensitive),
}

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

/// Validates the Secret in `spec.secretRef`, as far as machine-controller-manager needs it.
///
/// # Errors
/// If the Secret is missing, or lacks a value that all cloud requests need.
pub(super) fn check_credentials(worker: &Worker, secrets: &Secrets) -> Result<(), WorkerError> {
    let (name, content) = secret(worker, secrets)?;
    if is_workload_identity(content) { workload_identity_ids(name, content) } else { ids(name, content) }.map(drop)
}

/// Why a value that is not UTF-8 is invalid.
const NOT_TEXT: &str = "it is not text";

/// The credentials in the Secret of `spec.secretRef`, for requests of this extension.
///
/// # Errors
/// If machine-controller-manager would reject the Secret, or the token of a workload identity is missing.
pub fn credentials(worker: &Worker, secrets: &Secrets) -> Result<Credentials, WorkerError> {
    let (name, content) = secret(worker, secrets)?;
    let workload_identity = is_workload_identity(content);
    let [subscription, tenant, client] =
        if workload_identity { workload_identity_ids(name.clone(), content)? } else { ids(name.clone(), content)? };
    let proof = |key: &'static str| {
        let text = content.non_empty(key).ok_or(WorkerError::CredentialsIncomplete { secret: name.clone(), key })?;
        let unreadable = |_| WorkerError::CredentialsUnreadable { secret: name.clone(), key, reason: NOT_TEXT };
        std::str::from_utf8(text).map(Sensitive::from).map_err(unreadable)
    };
    let proof = if workload_identity {
        ClientAuthentication::Assertion(proof(TOKEN)?)
    } else {
        ClientAuthentication::ClientSecret(proof(CLIENT_SECRET)?)
    };
    for (key, id) in [(SUBSCRIPTION, &subscription), (CLIENT, &client)] {
        if id.is_empty() {
            return Err(WorkerError::CredentialsIncomplete { secret: name, key });
        }
        if let Some(reason) = id_defect(id) {
            return Err(WorkerError::CredentialsUnreadable { secret: name, key, reason });
        }
    }
    Ok(Credentials { subscription, tenant, client, proof })
}

/// The Secret's `namespace/name` and its content.
fn secret<'a>(worker: &Worker, secrets: &'a Secrets) -> Result<(String, &'a SecretContent), WorkerError> {
    let reference = &worker.spec.secret_ref;
    let namespace = reference.namespace.as_deref().unwrap_or_default();
    let name = reference.name.as_deref().unwrap_or_default();
    let secret = format!("{namespace}/{name}");
    match secrets.get(namespace, name) {
        Some(content) => Ok((secret, content)),
        None => Err(WorkerError::CredentialsMissing(secret)),
    }
}

fn is_workload_identity(content: &SecretContent) -> bool {
    content.labels.get(WORKLOAD_IDENTITY.0).is_some_and(|purpose| purpose == WORKLOAD_IDENTITY.1)
}

/// Subscription, tenant and client of a Secret with a client secret.
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

/// The value of a key. Invalid UTF-8 is replaced by characters that the validation of ids rejects.
fn text(content: &SecretContent, key: &str) -> String {
    String::from_utf8_lossy(content.non_empty(key).unwrap_or_default()).into_owned()
}

fn workload_identity_config(secret: &str, text: &[u8]) -> Result<WorkloadIdentityConfig, WorkerError> {
    let reason = "it is not a document of YAML or JSON";
    let unreadable = || WorkerError::CredentialsUnreadable { secret: secret.to_owned(), key: CONFIG, reason };
    let text = std::str::from_utf8(text).map_err(|_| unreadable())?;
    let documents = yaml::documents(text).map_err(|_| unreadable())?;
    let document = to_go_json(documents.first().ok_or_else(unreadable)?);
    let raw = RawValue::from_string(document).map_err(|_| unreadable())?;
    decode_document(&raw)
        .map_err(|source| WorkerError::Document { path: format!("Secret {secret:?} data.{CONFIG}"), source })
}

/// A tenant is part of the token URL.
fn check_tenant(secret: String, tenant: &str) -> Result<(), WorkerError> {
    match id_defect(tenant) {
        None => Ok(()),
        Some(reason) => Err(WorkerError::CredentialsUnreadable { secret, key: TENANT, reason }),
    }
}

/// Why a value is not an id, without any part of it.
fn id_defect(id: &str) -> Option<&'static str> {
    let is_allowed = |character: char| character.is_ascii_alphanumeric() || ".-".contains(character);
    if id.is_empty() {
        Some("it is empty")
    } else if id.chars().all(is_allowed) {
        None
    } else if id.trim_end_matches(['\r', '\n']).chars().all(is_allowed) {
        Some("it ends with a line break")
    } else if id.trim().chars().all(is_allowed) {
        Some("it begins or ends with white space")
    } else {
        Some("it has characters that an id can't have")
    }
}
