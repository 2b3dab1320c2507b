//! Failure statuses with the API server's texts.

use serde_json::{Value, json};

use super::kinds::Kind;

/// Why a request failed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) code: u16,
    reason: &'static str,
    message: String,
    details: Value,
}

impl Refusal {
    fn new(code: u16, reason: &'static str, message: String) -> Self {
        Self { code, reason, message, details: json!({}) }
    }

    fn of(self, kind: &Kind, name: &str) -> Self {
        Self { details: json!({"name": name, "group": kind.group, "kind": kind.plural}), ..self }
    }

    pub(crate) fn not_found(kind: &Kind, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} {name:?} not found", kind.resource())).of(kind, name)
    }

    /// The path does not exist.
    pub(crate) fn no_such_path() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource".to_owned())
    }

    pub(crate) fn already_exists(kind: &Kind, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{} {name:?} already exists", kind.resource())).of(kind, name)
    }

    pub(crate) fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", kind.resource());
        Self::new(409, "Conflict", message).of(kind, name)
    }

    pub(crate) fn outdated(kind: &Kind, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(kind, name, why)
    }

    pub(crate) fn invalid(kind: &Kind, name: &str, why: &str) -> Self {
        Self::new(422, "Invalid", format!("{}.{} {name:?} is invalid: {why}", kind.kind, kind.group)).of(kind, name)
    }

    pub(crate) fn bad_request(why: &str) -> Self {
        Self::new(400, "BadRequest", why.to_owned())
    }

    pub(crate) fn unsupported(why: &str) -> Self {
        Self::new(415, "UnsupportedMediaType", why.to_owned())
    }

    pub(crate) fn not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource".to_owned();
        Self::new(405, "MethodNotAllowed", message)
    }

    pub(crate) fn internal(why: &str) -> Self {
        Self::new(500, "", why.to_owned())
    }

    pub(crate) fn expired(requested: u64, compacted: u64) -> Self {
        Self::new(410, "Expired", format!("too old resource version: {requested} ({compacted})"))
    }

    pub(crate) fn expired_list() -> Self {
        let message = "The provided continue parameter is too old to display a consistent list result.";
        Self::new(410, "Expired", message.to_owned())
    }

    pub(crate) fn initializing() -> Self {
        Self::new(429, "TooManyRequests", "storage is (re)initializing".to_owned())
    }

    pub(crate) fn ahead(requested: u64, now: u64) -> Self {
        Self::new(504, "Timeout", format!("Too large resource version: {requested}, current: {now}"))
    }

    /// As a response body.
    pub(crate) fn status(&self) -> Value {
        let reason = if self.reason.is_empty() { Value::Null } else { json!(self.reason) };
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message,
            "reason": reason, "details": self.details, "code": self.code,
        })
    }
}

/// The response for an object that was deleted and had no finalizers.
pub(crate) fn deleted(kind: &Kind, name: &str, uid: &Value) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": {"name": name, "group": kind.group, "kind": kind.plural, "uid": uid},
    })
}
