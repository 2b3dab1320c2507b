//! Tables about refusals and changes by admission for Azure: CloudProfiles, pools of Shoots.

use gardener_extension_worker::api::gardener::{
    Capabilities, NamespacedProfileSpec, ProfileImage, ProfileSpec, ShootPools,
};
use gardener_extension_worker::provider::Provider;
use gardener_extension_worker::provider::azure::Azure;
use gardener_extension_worker::provider::profile::{ProfileConfig, ProfileFormat};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Check, from_text, same_errors, without_nulls};

pub(super) fn for_table(name: &str) -> Option<Check> {
    Some(Check::Compare(match name {
        "azure-cloudprofileconfig-validation" => profile,
        "azure-mutator" => mutated,
        "azure-namespacedcloudprofile-validation" => namespaced,
        "azure-worker-validation" => pools,
        _ => return None,
    }))
}

type Outcome = Result<(), (Value, String)>;

pub(super) fn raw(document: &Value) -> Option<Box<RawValue>> {
    (!document.is_null()).then(|| serde_json::value::to_raw_value(document).ok()).flatten()
}

fn open(case: &Value) -> Result<Box<dyn ProfileConfig>, String> {
    Azure.open(raw(&case["providerConfig"]).as_deref()).map_err(|error| error.to_string())
}

fn profile(case: &Value) -> Outcome {
    let expected = &case["expected"];
    let opened = open(case);
    match (opened, expected.get("decodeError")) {
        (Err(_), Some(_)) => Ok(()),
        (Ok(config), None) => {
            let spec: ProfileSpec = from_text(case, "spec").map_err(|error| (expected.clone(), error))?;
            same_errors(&expected["errors"], &config.validate(&spec))
        }
        (opened, _) => Err((expected.clone(), format!("{:?}", opened.err()))),
    }
}

fn namespaced(case: &Value) -> Outcome {
    let expected = &case["expected"];
    let decoded = || Ok::<_, String>((open(case)?, from_text(case, "namespacedSpec")?, from_text(case, "parentSpec")?));
    let (config, changes, parent): (_, NamespacedProfileSpec, ProfileSpec) =
        decoded().map_err(|error| (expected.clone(), error))?;
    same_errors(&expected["errors"], &config.validate_namespaced(&changes, &parent))
}

/// Rows about the flavors of a profile, and rows about the merged document of a NamespacedCloudProfile.
fn mutated(case: &Value) -> Outcome {
    if case.get("statusProviderConfigAfter").is_some() {
        return merged(case);
    }
    let expected = &case["machineImages"];
    let decoded = || Ok::<_, String>((open(case)?, from_text(case, "spec")?));
    let (config, mut spec): (_, ProfileSpec) = decoded().map_err(|error| (expected.clone(), error))?;
    if !spec.machine_capabilities.is_empty() {
        for listed in config.core_flavors(&spec.machine_images) {
            spec.machine_images[listed.image].versions[listed.version].capability_flavors =
                listed.flavors.into_iter().map(std::borrow::Cow::into_owned).collect();
        }
    }
    let reference: Vec<ProfileImage> = from_text(case, "machineImages").map_err(|error| (expected.clone(), error))?;
    let flavors = |images: &[ProfileImage]| -> Vec<Vec<Capabilities>> {
        images
            .iter()
            .flat_map(|image| image.versions.iter().map(|version| version.capability_flavors.clone()))
            .collect()
    };
    if flavors(&reference) == flavors(&spec.machine_images) {
        return Ok(());
    }
    Err((expected.clone(), json!(spec.machine_images).to_string()))
}

/// Compares lists without their order, which Go does not define.
fn merged(case: &Value) -> Outcome {
    let expected = &case["statusProviderConfigAfter"];
    let (before, changes) = (raw(&case["statusProviderConfigBefore"]), raw(&case["specProviderConfig"]));
    let merged = before
        .zip(changes)
        .ok_or("a document is missing".to_owned())
        .and_then(|(before, changes)| Azure.merge(&before, &changes).map_err(|error| error.to_string()))
        .map_err(|error| (expected.clone(), error))?;
    if sorted(expected) == sorted(&merged) { Ok(()) } else { Err((expected.clone(), merged.to_string())) }
}

/// Sorts the lists of a document.
pub(super) fn sorted(document: &Value) -> Value {
    let mut document = without_nulls(document);
    for list in ["machineImages", "machineTypes"] {
        if let Some(items) = document[list].as_array_mut() {
            items.sort_by_key(|item| item["name"].to_string());
        }
    }
    without_nulls(&document)
}

/// Rows about pools with their infrastructure, and rows about the provider config of one pool.
fn pools(case: &Value) -> Outcome {
    let decoded = |workers: &Value| -> Result<ShootPools, (Value, String)> {
        let pools = json!({"pools": {"infrastructureConfig": case["infrastructureConfig"], "workers": workers}});
        from_text(&pools, "pools").map_err(|error| (case.clone(), error))
    };
    let Some(config) = case.get("workerConfig") else {
        let old = case.get("oldWorkers").map(decoded).transpose()?;
        let errors = Azure.validate_shoot_pools(&decoded(&case["workers"])?, old.as_ref());
        return same_errors(&case["errors"], &errors);
    };
    let volume = json!({"type": "t", "size": "1Gi"});
    let pool = json!([{"volume": volume, "dataVolumes": case["dataVolumes"], "providerConfig": config}]);
    let errors = Azure.validate_shoot_pools(&decoded(&pool)?, None);
    let undecodable = json!([{"field": "spec.provider.workers[0].providerConfig", "type": "FieldValueInvalid"}]);
    same_errors(if case.get("decodeError").is_some() { &undecodable } else { &case["errors"] }, &errors)
}
