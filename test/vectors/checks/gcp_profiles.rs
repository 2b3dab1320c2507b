//! Refusals and changes by admission for GCP: CloudProfiles, NamespacedCloudProfiles, and the document merged from
//! both.

use gardener_extension_worker::api::gardener::{Capabilities, NamespacedProfileSpec, ProfileImage, ProfileSpec};
use gardener_extension_worker::api::gotext::field::{FieldErrors, FieldPath};
use gardener_extension_worker::provider::gcp::Gcp;
use gardener_extension_worker::provider::profile::{ProfileConfig, ProfileFormat};
use serde_json::{Value, json};

use super::azure_profiles::{raw, sorted};
use super::{Check, from_text, same_errors};

pub(super) fn for_table(name: &str) -> Option<Check> {
    (name == "admission-cloudprofile").then_some(Check::Compare(row))
}

type Outcome = Result<(), (Value, String)>;

fn row(case: &Value) -> Outcome {
    let reference = &case["out"]["value"];
    let object = ["profile", "namespaced"].into_iter().find_map(|role| case["in"].get(role)).unwrap_or(&Value::Null);
    let texts = reference["errors"].as_array().cloned().unwrap_or_default();
    // The library does not look up the parent; test/admission covers the lookup.
    let is_about_parent = |text: &Value| {
        let text = text.as_str().unwrap_or_default();
        text.starts_with("parent reference") || text.ends_with("not found")
    };
    if texts.iter().any(is_about_parent) {
        return Ok(());
    }
    let config = Gcp.open(raw(&object["spec"]["providerConfig"]).as_deref());
    let is_undecodable = texts.iter().any(|text| text.as_str().is_some_and(|text| text.contains("decod")));
    let config = match (config, is_undecodable) {
        (Err(_), true) => return Ok(()),
        (Ok(config), false) => config,
        (config, _) => return Err((reference.clone(), format!("decoded: {:?}", config.err()))),
    };
    let failed = |error: String| (reference.clone(), error);
    let read = |of: &str| from_text::<ProfileSpec>(&case["in"][of], "spec").map_err(failed);
    // As in a garden, the webhook fills in members before the rest is checked.
    let (errors, definitions, images) = if case["in"]["profile"].is_object() {
        let mut spec = read("profile")?;
        if !spec.machine_capabilities.is_empty() {
            fill_in(&*config, &mut spec.machine_images);
        }
        // Without a document there is nothing to open, because the webhook requires it first.
        let errors = if spec.provider_config.is_none() { required() } else { config.validate(&spec) };
        (errors, spec.machine_capabilities, spec.machine_images)
    } else {
        let parent = read("parent")?;
        let mut changes: NamespacedProfileSpec = from_text(object, "spec").map_err(failed)?;
        if !parent.machine_capabilities.is_empty() {
            fill_in(&*config, &mut changes.machine_images);
        }
        let errors = config.validate_namespaced(&changes, &parent);
        merged(reference, object)?;
        (errors, parent.machine_capabilities, changes.machine_images)
    };
    let texts = texts.iter().filter(|text| !repeats_another(text, &texts));
    same_errors(&texts.map(error).collect(), &errors)?;
    if definitions.is_empty() { Ok(()) } else { flavors(reference, &images) }
}

/// Whether an error reports the same problem as another one for the other half: an unlisted version has no architecture
/// there.
fn repeats_another(text: &Value, all: &[Value]) -> bool {
    let has = |text: &Value, words: &str| text.as_str().is_some_and(|text| text.contains(words));
    let is_unlisted = |text: &Value| has(text, "machine image version is not defined in the NamespacedCloudProfile");
    has(text, "has an excess entry") && all.iter().any(is_unlisted)
}

fn required() -> FieldErrors {
    let mut errors = FieldErrors::default();
    errors.required(FieldPath::new("spec.providerConfig"), "");
    errors
}

/// `spec.x: Required value: …` as field and type.
fn error(text: &Value) -> Value {
    let mut parts = text.as_str().unwrap_or_default().splitn(3, ": ");
    let (field, kind) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let kind = match kind {
        "Required value" => "FieldValueRequired",
        "Invalid value" => "FieldValueInvalid",
        "Unsupported value" => "FieldValueNotSupported",
        "Forbidden" => "FieldValueForbidden",
        other => other,
    };
    json!({"field": field, "type": kind})
}

fn fill_in(config: &dyn ProfileConfig, images: &mut [ProfileImage]) {
    let before = images.to_vec();
    for listed in config.core_flavors(&before) {
        images[listed.image].versions[listed.version].capability_flavors =
            listed.flavors.into_iter().map(std::borrow::Cow::into_owned).collect();
    }
}

fn flavors(reference: &Value, images: &[ProfileImage]) -> Outcome {
    let expected: Vec<ProfileImage> =
        from_text(reference, "machineImages").map_err(|error| (reference.clone(), error))?;
    let of = |images: &[ProfileImage]| -> Vec<Vec<Capabilities>> {
        let versions = images.iter().flat_map(|image| &image.versions);
        versions.map(|version| version.capability_flavors.clone()).collect()
    };
    if of(&expected) == of(images) { Ok(()) } else { Err((reference.clone(), json!(images).to_string())) }
}

/// The document in the status, in which Gardener has merged the rest.
fn merged(reference: &Value, object: &Value) -> Outcome {
    let Some(expected) = reference.get("statusProviderConfig") else { return Ok(()) };
    let is_observed = object["status"]["observedGeneration"] == object["metadata"]["generation"];
    let documents =
        (raw(&object["status"]["cloudProfileSpec"]["providerConfig"]), raw(&object["spec"]["providerConfig"]));
    let (Some(before), Some(changes)) = documents else { return Ok(()) };
    let merged = Gcp.merge(&before, &changes);
    match merged {
        Err(_) if reference.get("mutationError").is_some() => Ok(()),
        Ok(merged) if !is_observed || sorted(expected) == sorted(&merged) => Ok(()),
        other => Err((expected.clone(), format!("{other:?}"))),
    }
}
