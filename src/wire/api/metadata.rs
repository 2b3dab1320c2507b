//! Object metadata without unused members. `managedFields` are often larger than the rest of the object, and would be
//! stored for each Worker and machine set of a seed.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::{Deserialize, Deserializer};

/// Decodes metadata except `managedFields`, `selfLink` and `generateName`.
///
/// # Errors
/// If a member has the wrong type.
pub fn without_managers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        name: Option<String>,
        namespace: Option<String>,
        uid: Option<String>,
        resource_version: Option<String>,
        generation: Option<i64>,
        creation_timestamp: Option<Time>,
        deletion_timestamp: Option<Time>,
        deletion_grace_period_seconds: Option<i64>,
        labels: Option<BTreeMap<String, String>>,
        annotations: Option<BTreeMap<String, String>>,
        finalizers: Option<Vec<String>>,
        owner_references: Option<Vec<OwnerReference>>,
    }
    let metadata = Option::<Metadata>::deserialize(deserializer)?;
    Ok(metadata.map_or_else(ObjectMeta::default, |metadata| ObjectMeta {
        name: metadata.name,
        namespace: metadata.namespace,
        uid: metadata.uid,
        resource_version: metadata.resource_version,
        generation: metadata.generation,
        creation_timestamp: metadata.creation_timestamp,
        deletion_timestamp: metadata.deletion_timestamp,
        deletion_grace_period_seconds: metadata.deletion_grace_period_seconds,
        labels: metadata.labels,
        annotations: metadata.annotations,
        finalizers: metadata.finalizers,
        owner_references: metadata.owner_references,
        ..ObjectMeta::default()
    }))
}

#[cfg(test)]
mod tests {
    use crate::api::gardener::Worker;

    #[test]
    fn all_but_the_managers_is_kept() {
        let metadata = r#"{"name": "w", "namespace": "n", "uid": "u", "resourceVersion": "3", "generation": 2,
            "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2026-01-02T00:00:00Z",
            "deletionGracePeriodSeconds": 0, "labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["f"],
            "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "p"}]}"#;
        let with = metadata
            .replace(r#""name": "w","#, r#""name": "w", "managedFields": [{"manager": "m"}], "selfLink": "s","#);
        let decode = |metadata: &str| {
            serde_json::from_str::<Worker>(&format!(r#"{{"metadata": {metadata}, "spec": {{"type": "azure"}}}}"#))
                .unwrap()
                .metadata
        };
        assert_eq!(decode(&with), serde_json::from_str(metadata).unwrap());
        assert_eq!(decode("null"), decode("{}"));
    }
}
