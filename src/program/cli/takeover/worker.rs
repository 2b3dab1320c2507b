//! Facts about one Worker that matter for a takeover, in addition to its pool changes.

use serde::Serialize;
use serde_json::Value;

use crate::cli::preview::pairs::Loaded;
use wire::api::bounded_text::shortened;

/// Supported Gardener versions: first and last minor version of 1.x whose Worker API this program implements.
const GARDENER: (u64, u64) = (144, 150);

/// Maximum length of a printed status error.
const LONGEST_DESCRIPTION: usize = 300;

/// Facts about one Worker.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WorkerFacts {
    #[serde(rename = "type")]
    pub(super) worker_type: String,
    /// The Gardener version that last reconciled the Shoot, if known.
    pub(super) gardener: Option<String>,
    /// Whether that version is supported; `None` if unknown.
    pub(super) is_supported: Option<bool>,
    /// The operation in progress, if any.
    pub(super) under_way: Option<String>,
    /// The failure of the last operation, if any. It does not resolve by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) failed: Option<String>,
}

impl WorkerFacts {
    pub(super) fn of_loaded(loaded: &Loaded) -> Self {
        let shoot = loaded.inputs.shoot.as_ref().map(|shoot| &shoot.value);
        Self::of(&loaded.inputs.worker.value, shoot)
    }

    /// Reads the facts from documents. `shoot` is `None` if the Worker cannot be decoded.
    pub(super) fn of(worker: &Value, shoot: Option<&Value>) -> Self {
        let gardener = shoot.and_then(|shoot| shoot.pointer("/status/gardener/version")?.as_str()).map(str::to_owned);
        Self {
            worker_type: worker["spec"]["type"].as_str().unwrap_or_default().to_owned(),
            is_supported: gardener.as_deref().and_then(is_supported),
            gardener,
            under_way: under_way(worker),
            failed: failed(worker),
        }
    }
}

/// Whether this program supports the Gardener version; `None` if it cannot be parsed.
fn is_supported(version: &str) -> Option<bool> {
    let mut parts = version.trim_start_matches('v').split(['.', '-', '+']);
    let (major, minor): (u64, u64) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some(major == 1 && (GARDENER.0..=GARDENER.1).contains(&minor))
}

pub(super) fn supported_versions() -> String {
    format!("1.{} to 1.{}", GARDENER.0, GARDENER.1)
}

fn under_way(worker: &Value) -> Option<String> {
    let metadata = &worker["metadata"];
    if !metadata["deletionTimestamp"].is_null() {
        return Some("it is being deleted".to_owned());
    }
    if let Some(request) = metadata.pointer("/annotations/gardener.cloud~1operation").and_then(Value::as_str) {
        return Some(format!("{request} is requested"));
    }
    let (operation, state) = last_operation(worker)?;
    (state != "Succeeded" && !FAILED.contains(&state)).then(|| format!("{operation} is {state}"))
}

/// States of an operation that ended without success.
const FAILED: [&str; 3] = ["Error", "Failed", "Aborted"];

fn failed(worker: &Value) -> Option<String> {
    let (operation, state) = last_operation(worker).filter(|(_, state)| FAILED.contains(state))?;
    let description = worker.pointer("/status/lastError/description").and_then(Value::as_str);
    let why = description.map(|description| format!(": {}", shortened(description, LONGEST_DESCRIPTION)));
    Some(format!("{operation} is {state}{}", why.unwrap_or_default()))
}

fn last_operation(worker: &Value) -> Option<(&str, &str)> {
    let last = &worker["status"]["lastOperation"];
    Some((last["type"].as_str()?, last["state"].as_str()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn versions_of_gardener() {
        for (version, required) in [
            ("1.143.9", Some(false)),
            ("1.144.0", Some(true)),
            ("v1.150.0-dev-abc", Some(true)),
            ("1.151.0", Some(false)),
            ("2.144.0", Some(false)),
            ("", None),
            ("1", None),
            ("latest", None),
        ] {
            assert_eq!(is_supported(version), required, "{version}");
        }
    }

    #[test]
    fn what_is_under_way() {
        let last = |state: &str| json!({"status": {"lastOperation": {"type": "Reconcile", "state": state}}});
        assert_eq!(under_way(&last("Succeeded")), None);
        assert_eq!(under_way(&last("Processing")).as_deref(), Some("Reconcile is Processing"));
        assert_eq!((under_way(&last("Error")), failed(&last("Error")).as_deref()), (None, Some("Reconcile is Error")));
        assert_eq!(failed(&last("Succeeded")), None);
        assert_eq!(under_way(&json!({})), None);
        let requested = json!({"metadata": {"annotations": {"gardener.cloud/operation": "migrate"}}});
        assert_eq!(under_way(&requested).as_deref(), Some("migrate is requested"));
        let deleted = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert_eq!(under_way(&deleted).as_deref(), Some("it is being deleted"));
    }
}
