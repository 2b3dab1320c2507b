//! Edits of a CloudProfile, and the API server's responses.

use std::collections::BTreeMap;

use gardener_extension_worker::api::gardener::{NamespacedCloudProfile, ProfileSpec, VersionedShoot};
use gardener_extension_worker::cloud_profile::architecture_fields::apply_defaults;
use gardener_extension_worker::cloud_profile::change::{Users, still_used, validate_change};
use gardener_extension_worker::cloud_profile::creation::leave_out_inactive;
use gardener_extension_worker::cloud_profile::validation::{FeatureGates, validate_profile};
use serde_json::{Value, json};

use crate::history::{decoded, plain, time};

pub(crate) fn result(input: &Value) -> Result<Value, String> {
    let now = time(&input["now"])?;
    let gates = FeatureGates { lifecycle: input["versionClassificationLifecycle"] == true, ..FeatureGates::default() };
    let mut new: ProfileSpec = decoded(&input["newCloudProfile"]["spec"])?;
    apply_defaults(&mut new);
    let old: Option<ProfileSpec> = decoded(&input["oldCloudProfile"]["spec"])?;
    let shoots: Option<Vec<VersionedShoot>> = decoded(&input["shoots"])?;
    let namespaced: Option<Vec<NamespacedCloudProfile>> = decoded(&input["namespacedCloudProfiles"])?;
    let (shoots, namespaced) = (shoots.unwrap_or_default(), namespaced.unwrap_or_default());
    let name = input["newCloudProfile"]["metadata"]["name"].as_str().unwrap_or_default();
    let (errors, used) = match &old {
        None => {
            leave_out_inactive(&mut new, now);
            (validate_profile(&new, gates, now), Vec::new())
        }
        Some(old) => {
            let users = Users { shoots: &shoots, namespaced: &namespaced };
            (validate_change(&new, old, gates, now), still_used(name, &new, old, users))
        }
    };
    let validation: Vec<Value> = errors
        .0
        .iter()
        .map(|error| {
            let detail = Some(&error.detail).filter(|detail| !detail.is_empty());
            plain(json!({"type": error.error_type, "field": error.field, "detail": detail}))
        })
        .collect();
    let images = new.machine_images.iter().map(|image| {
        let versions: Vec<&str> = image.versions.iter().map(|version| version.version.as_str()).collect();
        (image.name.clone(), versions)
    });
    Ok(json!({
        "operation": if old.is_some() { "update" } else { "create" },
        "accepted": validation.is_empty() && used.is_empty(),
        "validation": validation,
        "admission": used,
        "storedKubernetesVersions": new.kubernetes.versions.iter().map(|version| &version.version).collect::<Vec<_>>(),
        "storedMachineImageVersions": images.collect::<BTreeMap<_, _>>(),
    }))
}
