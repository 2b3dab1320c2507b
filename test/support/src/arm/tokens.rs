//! The token endpoint: `POST /{tenant}/oauth2/v2.0/token`, client credentials grant.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::server::Reply;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRequest {
    pub tenant: String,
    pub client: String,
    pub scope: String,
    pub proof: Proof,
}

impl TokenRequest {
    /// Whether the client authenticated with that secret.
    pub fn reports(&self, secret: &str) -> bool {
        matches!(&self.proof, Proof::Secret(output) if output == secret)
    }
}

/// How a client authenticates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    Secret(String),
    Assertion(String),
}

/// Issued tokens and rejected clients.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    pub(super) requests: Vec<TokenRequest>,
    given: BTreeSet<String>,
    pub(super) refused: BTreeMap<String, (u32, String)>,
    /// Statuses of the next responses.
    pub(super) failures: Vec<u16>,
}

impl Tokens {
    pub(super) fn accepts(&self, authorization: Option<&str>) -> bool {
        authorization.and_then(|value| value.strip_prefix("Bearer ")).is_some_and(|token| self.given.contains(token))
    }

    pub(super) fn revoke_all(&mut self) {
        self.given.clear();
    }

    pub(super) fn response(&mut self, tenant: &str, form: &BTreeMap<String, String>) -> Reply {
        let field = |name: &str| form.get(name).cloned().unwrap_or_default();
        if field("grant_type") != "client_credentials" {
            return refusal(400, "unsupported_grant_type", 70003, "The app requested an unsupported grant type.");
        }
        let proof = match (form.get("client_secret"), form.get("client_assertion")) {
            (Some(secret), None) => Proof::Secret(secret.clone()),
            (None, Some(assertion)) if field("client_assertion_type").ends_with(":jwt-bearer") => {
                Proof::Assertion(assertion.clone())
            }
            _ => return refusal(401, "invalid_client", 7000216, "'client_assertion', 'client_secret' is required."),
        };
        let client = field("client_id");
        let request = TokenRequest { tenant: tenant.to_owned(), client: client.clone(), scope: field("scope"), proof };
        self.requests.push(request);
        if !self.failures.is_empty() {
            return Reply::empty(self.failures.remove(0));
        }
        if let Some((code, text)) = self.refused.get(&client) {
            return refusal(401, "invalid_client", *code, text);
        }
        let token = format!("token-{}-of-{client}", self.requests.len());
        self.given.insert(token.clone());
        Reply::json(200, json!({"token_type": "Bearer", "expires_in": 3599, "access_token": token}))
    }
}

fn refusal(status: u16, error: &str, code: u32, text: &str) -> Reply {
    let description = format!("AADSTS{code}: {text} Trace ID: 0 Correlation ID: 0");
    Reply::json(status, json!({"error": error, "error_description": description, "error_codes": [code]}))
}
