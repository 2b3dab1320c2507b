//! Whether machines can be made with the credentials of a Worker (spec/azure-worker.md section 5). They are looked at
//! before anything is written, because a machine that can't be made costs a person more time than an error does.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::documents::API_VERSION;
use crate::api::gotext::{json::to_go_json, yaml};
use crate::api::secret::SecretContent;
use crate::provider::document::{Document, decode_document};
use crate::provider::{WorkerContext, WorkerError};

/// Label of a Secret without a client secret: a token comes from outside.
const WORKLOAD_IDENTITY: (&str, &str) = ("security.gardener.cloud/purpose", "workload-identity-token-requestor");
const IDS: [&str; 3] = ["subscriptionID", "tenantID", "clientID"];
const CLIENT_SECRET: &str = "clientSecret";
/// Key of a document with the ids that a workload identity does not have as keys of their own.
const CONFIG: &str = "config";

/// What a workload identity stands for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkloadIdentityConfig {
    #[serde(rename = "apiVersion")]
    _api_version: Option<String>,
    #[serde(rename = "kind")]
    _kind: Option<String>,
    #[serde(rename = "clientID")]
    _client_id: Option<String>,
    #[serde(rename = "tenantID")]
    tenant_id: Option<String>,
    #[serde(rename = "subscriptionID")]
    _subscription_id: Option<String>,
}

impl Document for WorkloadIdentityConfig {
    const KIND: &'static str = "WorkloadIdentityConfig";
    const API_VERSION: &'static str = API_VERSION;
    const STRICT: bool = true;
}

/// Looks at the Secret that `spec.secretRef` names.
///
/// # Errors
/// When it is missing, or something in it that every call to the cloud needs.
pub(super) fn check_credentials(context: &WorkerContext<'_>) -> Result<(), WorkerError> {
    let reference = &context.worker.spec.secret_ref;
    let (namespace, name) =
        (reference.namespace.as_deref().unwrap_or_default(), reference.name.as_deref().unwrap_or_default());
    let secret = format!("{namespace}/{name}");
    match context.secrets.get(namespace, name) {
        None => Err(WorkerError::CredentialsMissing { secret }),
        Some(content) if is_workload_identity(content) => check_workload_identity(secret, content),
        Some(content) => check_client_secret(secret, content),
    }
}

fn is_workload_identity(content: &SecretContent) -> bool {
    content.labels.get(WORKLOAD_IDENTITY.0).is_some_and(|purpose| purpose == WORKLOAD_IDENTITY.1)
}

fn check_client_secret(secret: String, content: &SecretContent) -> Result<(), WorkerError> {
    if let Some(key) = IDS.into_iter().find(|key| !content.has_key(key)) {
        return Err(WorkerError::CredentialsIncomplete { secret, key });
    }
    if content.non_empty(CLIENT_SECRET).is_none() {
        return Err(WorkerError::CredentialsIncomplete { secret, key: CLIENT_SECRET });
    }
    check_tenant(secret, content.non_empty("tenantID").unwrap_or_default())
}

fn check_workload_identity(secret: String, content: &SecretContent) -> Result<(), WorkerError> {
    if IDS.iter().all(|key| content.non_empty(key).is_some()) {
        return check_tenant(secret, content.non_empty("tenantID").unwrap_or_default());
    }
    let Some(config) = content.non_empty(CONFIG) else {
        return Err(WorkerError::CredentialsIncomplete { secret, key: CONFIG });
    };
    let config = workload_identity_config(&secret, config)?;
    let tenant = content.non_empty("tenantID").map(<[u8]>::to_vec);
    check_tenant(secret, &tenant.unwrap_or_else(|| config.tenant_id.unwrap_or_default().into_bytes()))
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
fn check_tenant(secret: String, tenant: &[u8]) -> Result<(), WorkerError> {
    let is_tenant =
        !tenant.is_empty() && tenant.iter().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(byte));
    if is_tenant { Ok(()) } else { Err(WorkerError::CredentialsUnreadable { secret, key: "tenantID" }) }
}
