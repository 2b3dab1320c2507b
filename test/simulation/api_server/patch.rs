//! Applies patches by content type.

use serde_json::Value;

use super::kinds::Kind;
use super::refusal::Refusal;

/// The object after applying a patch.
pub(crate) fn patched(kind: &Kind, content_type: &str, patch: &[u8], object: &Value) -> Result<Value, Refusal> {
    let mut patched = object.clone();
    let unreadable = |error: serde_json::Error| Refusal::bad_request(&error.to_string());
    match content_type.split(';').next().unwrap_or_default() {
        "application/merge-patch+json" => {
            let patch: Value = serde_json::from_slice(patch).map_err(unreadable)?;
            json_patch::merge(&mut patched, &patch);
        }
        "application/json-patch+json" => {
            let patch: json_patch::Patch = serde_json::from_slice(patch).map_err(unreadable)?;
            json_patch::patch(&mut patched, &patch).map_err(|error| {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                Refusal::invalid(kind, name, &error.to_string())
            })?;
        }
        other => return Err(Refusal::unsupported(&format!("no patch of type {other:?}"))),
    }
    Ok(patched)
}
