//! The matrix from text to text, for programs without files, such as a page in a browser: this crate also builds for
//! `wasm32-unknown-unknown` (docs/cloudprofiles.md#in-a-browser).

use k8s_openapi::jiff::{self, Timestamp};

use super::matrix::matrix;
use super::selection::Selection;
use super::{Profile, ProfileError, Resolution};
use decisions::provider::Providers;

/// Why there is no matrix.
#[derive(Debug, thiserror::Error)]
pub enum MatrixTextError {
    /// The CloudProfile is no JSON, or the matrix can't be written as JSON.
    #[error("JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The time is no RFC 3339 time.
    #[error("time: {0}")]
    Time(#[from] jiff::Error),
    /// The CloudProfile can't be read.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

/// The matrix of a CloudProfile, both as JSON, with versions classified for the time `now`. It is the document of
/// `cloudprofile matrix -o json` without its evidence.
///
/// # Errors
/// If the CloudProfile or the time can't be read.
pub fn matrix_text(cloud_profile: &str, now: &str, providers: Providers) -> Result<String, MatrixTextError> {
    let now: Timestamp = now.parse()?;
    let profile = Profile::read(serde_json::from_str(cloud_profile)?, providers)?;
    let resolved_profile = profile.resolved_profile(now);
    let resolution = Resolution::of(&resolved_profile);
    Ok(serde_json::to_string(&matrix(&resolution, &Selection::default()))?)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn selects_images_by_capability() {
        let flavors = json!([{"architecture": ["amd64"], "hyper": ["gen2"]}]);
        let images = json!([{"name": "os", "versions": [{"version": "1.0.0", "capabilityFlavors": flavors}]}]);
        let machine_type = |name: &str, hyper: &str| {
            json!({"name": name, "cpu": "2", "gpu": "0", "memory": "8Gi",
            "capabilities": {"architecture": ["amd64"], "hyper": [hyper]}})
        };
        let config = json!({"apiVersion": "gcp.provider.extensions.gardener.cloud/v1alpha1", "kind": "CloudProfileConfig",
            "machineImages": [{"name": "os", "versions": [{"version": "1.0.0", "capabilityFlavors": [
                {"capabilities": flavors[0], "image": "projects/p/global/images/os"}]}]}]});
        let profile = json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "CloudProfile", "metadata": {"name": "p"},
            "spec": {"type": "gcp", "kubernetes": {"versions": []}, "machineImages": images, "providerConfig": config,
                "machineCapabilities": [{"name": "architecture", "values": ["amd64"]},
                    {"name": "hyper", "values": ["gen2", "gen1"]}],
                "machineTypes": [machine_type("new", "gen2"), machine_type("old", "gen1")]}});
        let text = matrix_text(&profile.to_string(), "2026-11-29T00:00:00Z", Providers::SHIPPED).unwrap();
        let matrix: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(matrix["schema"], "cloudprofile-matrix/v1");
        let outcomes: Vec<(&Value, &Value)> = matrix["images"][0]["choices"]
            .as_array()
            .unwrap()
            .iter()
            .map(|choice| {
                let group = &matrix["groups"][choice["group"].as_u64().unwrap() as usize];
                (&group["machineTypes"][0]["name"], &choice["outcome"])
            })
            .collect();
        assert_eq!(outcomes, [(&json!("new"), &json!("chosen")), (&json!("old"), &json!("noneFits"))]);
        assert!(
            matrix_text("{", "2026-11-29T00:00:00Z", Providers::SHIPPED).unwrap_err().to_string().starts_with("JSON")
        );
        assert!(matrix_text("{}", "today", Providers::SHIPPED).unwrap_err().to_string().starts_with("time"));
    }
}
