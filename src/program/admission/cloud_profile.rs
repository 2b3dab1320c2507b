//! Reviews CloudProfiles: whether provider and generic part are consistent, and which flavors the generic part must
//! list (docs/contract.md#provider-half).

use jiff::Timestamp;

use super::expirations::warn_of_profile;
use super::flavors::flavor_patch;
use super::refusal::{listed_errors, verdict};
use super::subject::Subject;
use decisions::provider::Providers;
use decisions::provider::document::DocumentError;
use decisions::provider::profile::{ProfileConfig, ProfileFormat};
use runtime::webhook::Verdict;
use wire::api::gardener::{ProfileObject, ProfileSpec};
use wire::api::gotext::field::{FieldErrors, FieldPath};

/// Maximum number of warnings; an API server truncates long lists.
const MOST_WARNINGS: usize = 10;

/// Checks a CloudProfile. `what` is its kind and name.
pub(crate) fn validate(
    subject: Subject<'_>,
    what: &str,
    providers: Providers,
    now: Timestamp,
) -> Result<Verdict, Verdict> {
    let ProfileObject { spec, .. } = subject.to_validate()?;
    // Profiles of other providers have this label only by mistake. Their own extension reviews them.
    let Some(format) = providers.profile_format(&spec.provider_type) else { return Ok(Verdict::ALLOWED) };
    if spec.provider_config.is_none() {
        let mut errors = FieldErrors::default();
        let detail = format!(
            "providerConfig must be set for {} cloud profiles; it names the images of spec.machineImages",
            spec.provider_type
        );
        errors.required(FieldPath::new("spec.providerConfig"), detail);
        return Ok(verdict(what, &errors, Vec::new()));
    }
    let config = format.open(spec.provider_config.as_deref()).map_err(|error| undecodable(what, &error))?;
    let mut errors = listed_errors(subject.stop);
    config.validate_into(&spec, &mut errors);
    let verdict = verdict(what, &errors, warnings(&*config, format, &spec));
    Ok(warn_of_profile(verdict, subject, &spec, now))
}

/// Updates the flavors in the generic part to match those in the provider config.
pub(crate) fn mutate(subject: Subject<'_>, what: &str, providers: Providers) -> Result<Verdict, Verdict> {
    let ProfileObject { spec, .. } = subject.to_mutate()?;
    let Some(format) = providers.profile_format(&spec.provider_type) else { return Ok(Verdict::ALLOWED) };
    if spec.machine_capabilities.is_empty() || spec.provider_config.is_none() {
        return Ok(Verdict::ALLOWED);
    }
    let config = format.open(spec.provider_config.as_deref()).map_err(|error| undecodable(what, &error))?;
    Ok(flavor_patch(&spec.machine_images, config.core_flavors(&spec.machine_images)))
}

/// A provider config that cannot be decoded. The error names the member but not its value.
pub(super) fn undecodable(what: &str, error: &DocumentError) -> Verdict {
    let mut errors = FieldErrors::default();
    let detail = format!("can't be read: {error}");
    errors.invalid(FieldPath::new("spec.providerConfig"), (), detail);
    verdict(what, &errors, Vec::new())
}

/// Warnings about values that Gardener accepts although machines will fail.
fn warnings(config: &dyn ProfileConfig, format: &dyn ProfileFormat, spec: &ProfileSpec) -> Vec<String> {
    let repeated = config.repeated_flavors(&format.definitions(&spec.machine_capabilities));
    let warning = repeated.iter().take(MOST_WARNINGS).map(|repeated| {
        format!(
            "spec.providerConfig.{} lists the same capabilities as {}: machines that fit both flavors of {}@{} can't be \
             made. Remove one, or distinguish them by a capability",
            repeated.second, repeated.first, repeated.image, repeated.version
        )
    });
    let mut warnings: Vec<String> = warning.collect();
    if repeated.len() > warnings.len() {
        warnings.push(format!("and {} more indistinguishable flavors", repeated.len() - warnings.len()));
    }
    warnings
}
