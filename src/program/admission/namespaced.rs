//! Reviews NamespacedCloudProfiles: additions must fit the parent, the generic part must list the flavors, and the
//! status must contain the merged provider config (docs/contract.md#namespacedcloudprofiles).

use jiff::Timestamp;
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::cloud_profile::undecodable;
use super::expirations::warn_of_namespaced;
use super::flavors::flavor_patch;
use super::profile_reference::{ProfileReference, is_object_name};
use super::refusal::{listed_errors, verdict};
use super::subject::Subject;
use decisions::provider::Providers;
use runtime::webhook::Verdict;
use wire::api::gardener::{NamespacedCloudProfile, ParentReference, ProfileSpec};
use wire::api::gotext::field::{FieldErrors, FieldPath};
use wire::api::gotext::json::null_as_default;

/// The reference to the parent, which must be read before a review.
#[derive(Debug, Default, Deserialize)]
struct WithParent {
    #[serde(default, deserialize_with = "null_as_default")]
    spec: SpecWithParent,
}

#[derive(Debug, Default, Deserialize)]
struct SpecWithParent {
    #[serde(default, deserialize_with = "null_as_default")]
    parent: ParentReference,
}

/// The parent to read from the garden, or a verdict if none is needed.
pub(crate) fn parent(subject: Subject<'_>, what: &str, changes: bool) -> Result<ProfileReference, Verdict> {
    let WithParent { spec } = if changes { subject.to_mutate()? } else { subject.to_validate()? };
    let ParentReference { kind, name } = spec.parent;
    let mut errors = FieldErrors::default();
    let path = FieldPath::new("spec.parent");
    if kind != "CloudProfile" {
        errors.not_supported(path.child("kind"), kind, ["CloudProfile"]);
    }
    if name.is_empty() {
        errors.required(path.child("name"), "must name the CloudProfile to extend");
    } else if !is_object_name(&name) {
        // The name becomes part of a URL path.
        errors.invalid(path.child("name"), &name, "must be the name of a CloudProfile");
    }
    if errors.is_empty() { Ok(ProfileReference::CloudProfile(name)) } else { Err(verdict(what, &errors, Vec::new())) }
}

/// Checks a NamespacedCloudProfile. `what` is its kind and name.
pub(crate) fn validate(
    subject: Subject<'_>,
    parent: &ProfileSpec,
    what: &str,
    providers: Providers,
    now: Timestamp,
) -> Result<Verdict, Verdict> {
    let NamespacedCloudProfile { spec, .. } = subject.to_validate()?;
    let Some(format) = providers.profile_format(&parent.provider_type) else { return Ok(Verdict::ALLOWED) };
    let config = format.open(spec.provider_config.as_deref()).map_err(|error| undecodable(what, &error))?;
    let mut errors = listed_errors(subject.stop);
    config.validate_namespaced_into(&spec, parent, &mut errors);
    let verdict = verdict(what, &errors, Vec::new());
    Ok(warn_of_namespaced(verdict, subject, spec, parent, now))
}

/// Updates the flavors of the project's images to match its provider config.
pub(crate) fn mutate(
    subject: Subject<'_>,
    parent: &ProfileSpec,
    what: &str,
    providers: Providers,
) -> Result<Verdict, Verdict> {
    let NamespacedCloudProfile { spec, .. } = subject.to_mutate()?;
    let format = providers.profile_format(&parent.provider_type);
    if parent.machine_capabilities.is_empty() {
        return Ok(Verdict::ALLOWED);
    }
    let Some(format) = format else { return Ok(Verdict::ALLOWED) };
    let config = format.open(spec.provider_config.as_deref()).map_err(|error| undecodable(what, &error))?;
    Ok(flavor_patch(&spec.machine_images, config.core_flavors(&spec.machine_images)))
}

/// Whether the profile has images with flavors to update. Otherwise the parent need not be read.
pub(crate) fn has_images(subject: Subject<'_>) -> bool {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec<'a> {
        #[serde(borrow)]
        machine_images: Option<&'a RawValue>,
        #[serde(borrow)]
        provider_config: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Object<'a> {
        #[serde(borrow)]
        spec: Option<Spec<'a>>,
    }
    let object: Option<Object<'_>> = serde_json::from_str(subject.object).ok();
    let spec = object.and_then(|object| object.spec).unwrap_or_default();
    spec.provider_config.is_some() && spec.machine_images.is_some_and(|images| images.get() != "[]")
}

/// Merges the project's provider config into the parent's, which Gardener has written to the status. Only applies if
/// the status reflects the current spec. Merging is idempotent.
pub(crate) fn merge_status(subject: Subject<'_>, what: &str, providers: Providers) -> Result<Verdict, Verdict> {
    let profile: NamespacedCloudProfile = subject.to_mutate()?;
    let merged = &profile.status.cloud_profile_spec;
    let is_current = profile.metadata.generation == profile.status.observed_generation;
    let (Some(of_parent), Some(added)) = (&merged.provider_config, &profile.spec.provider_config) else {
        return Ok(Verdict::ALLOWED);
    };
    let format = providers.profile_format(&merged.provider_type);
    if !is_current {
        return Ok(Verdict::ALLOWED);
    }
    let Some(format) = format else { return Ok(Verdict::ALLOWED) };
    let value = format.merge(of_parent, added).map_err(|error| undecodable(what, &error))?;
    if serde_json::from_str::<Value>(of_parent.get()).ok().as_ref() == Some(&value) {
        return Ok(Verdict::ALLOWED);
    }
    let path = PointerBuf::from_tokens(["status", "cloudProfileSpec", "providerConfig"]);
    let patch = Patch(vec![PatchOperation::Add(AddOperation { path, value })]);
    Ok(Verdict::Allowed { patch, warnings: Vec::new() })
}
