//! Tables about Gardener's own handling of CloudProfiles.

use gardener_extension_worker::api::gardener::{
    CapabilityDefinition, ExpirableVersion, MachineImage, NamespacedProfileSpec, ProfileImage, ProfileMachineType,
    ProfileSpec,
};
use gardener_extension_worker::cloud_profile::architecture_fields::{apply_defaults, sync_architectures};
use gardener_extension_worker::cloud_profile::namespaced::merge;
use gardener_extension_worker::cloud_profile::validation::{FeatureGates, validate_profile};
use gardener_extension_worker::versions::shoot_defaults::{
    PoolWithoutImage, default_architecture, default_image, default_kubernetes_version,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Check, from_text, member, same_errors, without_nulls};

pub(super) fn for_table(name: &str) -> Option<Check> {
    Some(Check::Compare(match name {
        "cloudprofile-arch-sync" => synced,
        "cloudprofile-core-validation" => validated,
        "namespacedcloudprofile-merge" => merged,
        "shoot-default-architecture" => architecture,
        "shoot-default-kubernetes" => kubernetes_version,
        "shoot-default-machineimage" => machine_image,
        _ => return None,
    }))
}

type Outcome = Result<(), (Value, String)>;

/// Any time between the past dates (2001) and the future dates (2999) of the tables.
fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH + jiff::Span::new().hours(24 * 365 * 56)
}

fn same(reference: &Value, got: &Value) -> Outcome {
    let (plain, found) = (without_nulls(reference), without_nulls(got));
    if plain == found { Ok(()) } else { Err((reference.clone(), found.to_string())) }
}

fn decoded<T>(case: &Value, decode: impl FnOnce() -> Result<T, String>) -> Result<T, (Value, String)> {
    decode().map_err(|error| (case.clone(), error))
}

fn validated(case: &Value) -> Outcome {
    let spec: ProfileSpec = decoded(case, || from_text(case, "spec"))?;
    let gate = |name: &str| case["featureGates"][name] == true;
    let gates = FeatureGates {
        capabilities: gate("CloudProfileCapabilities"),
        lifecycle: gate("VersionClassificationLifecycle"),
    };
    same_errors(&case["errors"], &validate_profile(&spec, gates, now()))
}

fn synced(case: &Value) -> Outcome {
    let mut spec: ProfileSpec = decoded(case, || from_text(case, "in"))?;
    apply_defaults(&mut spec);
    sync_architectures(&mut spec, case["oldExists"] == true && case["oldHasCapabilities"] == true);
    let got = json!({
        "machineCapabilities": (!spec.machine_capabilities.is_empty()).then_some(&spec.machine_capabilities),
        "machineImages": spec.machine_images,
        "machineTypes": spec.machine_types,
    });
    same(&case["out"], &got)
}

fn merged(case: &Value) -> Outcome {
    let parent: ProfileSpec = decoded(case, || from_text(case, "parentSpec"))?;
    let namespaced: NamespacedProfileSpec = decoded(case, || from_text(case, "namespacedSpec"))?;
    let merged = merge(parent, namespaced);
    same(&case["statusCloudProfileSpec"], &serde_json::to_value(merged).unwrap_or_default())
}

fn architecture(case: &Value) -> Outcome {
    let machine_type: ProfileMachineType = decoded(case, || member(case, "machineType"))?;
    let definitions: Vec<CapabilityDefinition> = decoded(case, || member(case, "machineCapabilities"))?;
    let known = case["workerMachineType"].as_str() == Some(&machine_type.name);
    let reference = case["workerArchitecture"].as_str();
    let got = default_architecture(reference, known.then_some(&machine_type), &definitions);
    same(&case["expected"], &got.into())
}

fn kubernetes_version(case: &Value) -> Outcome {
    let versions: Vec<ExpirableVersion> = decoded(case, || member(case, "versions"))?;
    let expected = &case["expected"];
    match default_kubernetes_version(&versions, case["input"].as_str().unwrap_or_default(), now()) {
        Ok(version) if expected["error"].is_null() => same(&expected["version"], &version.into()),
        Err(error)
            if expected["error"].as_str().is_some_and(|text| text.ends_with(&without_value(&error.to_string()))) =>
        {
            Ok(())
        }
        other => Err((expected.clone(), format!("{other:?}"))),
    }
}

/// Removes the value, which upstream does not include in the text.
fn without_value(text: &str) -> String {
    text.trim_start_matches('"').split_once("\" ").map_or(text, |(_, rest)| rest).to_owned()
}

fn machine_image(case: &Value) -> Outcome {
    let images: Vec<ProfileImage> = decoded(case, || member(case, "machineImages"))?;
    let definitions: Vec<CapabilityDefinition> = decoded(case, || member(case, "machineCapabilities"))?;
    let machine_type: Option<ProfileMachineType> = decoded(case, || member(case, "machineType"))?;
    let reference = case["image"].as_object().map(|image| MachineImage {
        name: image["name"].as_str().unwrap_or_default().to_owned(),
        version: image["version"].as_str().unwrap_or_default().to_owned(),
    });
    let pool = PoolWithoutImage {
        requested: reference.as_ref(),
        architecture: case["architecture"].as_str().unwrap_or_default(),
        machine_type: machine_type.as_ref(),
        in_place: case["inPlace"] == true,
    };
    let expected = &case["expected"];
    match default_image(&images, &definitions, pool, now()) {
        Ok(image) => same(expected, &json!({"name": image.name, "version": image.version})),
        // Go's parser reports more details about an unreadable part.
        Err(error)
            if expected["error"]["detail"]
                .as_str()
                .is_some_and(|text| text.contains(&without_value(&error.to_string()))) =>
        {
            Ok(())
        }
        other => Err((expected.clone(), format!("{other:?}"))),
    }
}
