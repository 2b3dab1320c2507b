//! CloudProfiles: whether the provider's half fits core's half, and what core's half has to list
//! (docs/contract.md#provider-half).

use super::flavors::flavor_patch;
use super::refusal::verdict;
use super::subject::Subject;
use crate::api::gardener::ProfileObject;
use crate::api::gotext::field::{FieldErrors, FieldPath};
use crate::provider::Providers;
use crate::provider::document::DocumentError;
use crate::provider::profile::{ProfileConfig, ProfileFormat};
use crate::webhook::Verdict;

/// Warnings that are sent; an API server cuts long lists.
const MOST_WARNINGS: usize = 10;

/// Judges a CloudProfile.
pub(crate) fn validate(subject: Subject<'_>, providers: Providers) -> Verdict {
    let profile: ProfileObject = match subject.to_judge() {
        Ok(profile) => profile,
        Err(verdict) => return verdict,
    };
    let spec = &profile.spec;
    // Profiles of other providers carry our label only by mistake; they are judged by their own extension.
    let Some(format) = providers.profile_format(&spec.provider_type) else { return Verdict::ALLOWED };
    let what = format!("CloudProfile {}", profile.metadata.name.as_deref().unwrap_or_default());
    let mut errors = FieldErrors::default();
    if spec.provider_config.is_none() {
        let detail = format!(
            "providerConfig must be set for {} cloud profiles; it names the images of spec.machineImages",
            spec.provider_type
        );
        errors.required(FieldPath::new("spec.providerConfig"), detail);
        return verdict(&what, &errors, Vec::new());
    }
    match format.open(spec.provider_config.as_deref()) {
        Err(error) => verdict(&what, &undecodable(&error), Vec::new()),
        Ok(config) => {
            let errors = config.validate(spec);
            verdict(&what, &errors, warnings(&*config, format, spec))
        }
    }
}

/// Brings the flavors of core's half up to those of the provider's half.
pub(crate) fn mutate(subject: Subject<'_>, providers: Providers) -> Verdict {
    let profile: ProfileObject = match subject.to_change() {
        Ok(profile) => profile,
        Err(verdict) => return verdict,
    };
    let spec = &profile.spec;
    let Some(format) = providers.profile_format(&spec.provider_type) else { return Verdict::ALLOWED };
    if spec.machine_capabilities.is_empty() || spec.provider_config.is_none() {
        return Verdict::ALLOWED;
    }
    match format.open(spec.provider_config.as_deref()) {
        Err(error) => {
            let what = format!("CloudProfile {}", profile.metadata.name.as_deref().unwrap_or_default());
            verdict(&what, &undecodable(&error), Vec::new())
        }
        Ok(config) => {
            let patch = flavor_patch(&spec.machine_images, config.core_flavors(&spec.machine_images));
            Verdict::Allowed { patch, warnings: Vec::new() }
        }
    }
}

/// A provider's document that can't be read. Its error names the member, not its value.
pub(super) fn undecodable(error: &DocumentError) -> FieldErrors {
    let mut errors = FieldErrors::default();
    let detail = format!("can't be read: {error}");
    errors.invalid(FieldPath::new("spec.providerConfig"), (), detail);
    errors
}

/// What Gardener accepts and machines will miss.
fn warnings(
    config: &dyn ProfileConfig,
    format: &dyn ProfileFormat,
    spec: &crate::api::gardener::ProfileSpec,
) -> Vec<String> {
    let repeated = config.repeated_flavors(&format.definitions(&spec.machine_capabilities));
    let warning = repeated.iter().take(MOST_WARNINGS).map(|repeated| {
        format!(
            "spec.providerConfig.{} lists the same capabilities as {}: machines that fit both flavors of {}@{} can't be \
             made. Remove one, or tell them apart by a capability",
            repeated.second, repeated.first, repeated.image, repeated.version
        )
    });
    let mut warnings: Vec<String> = warning.collect();
    if repeated.len() > warnings.len() {
        warnings.push(format!("and {} more indistinguishable flavors", repeated.len() - warnings.len()));
    }
    warnings
}
