//! What Gardener's API server and the provider's admission refuse.

use super::Lint;
use super::finding::{Finding, Rule, Severity};
use crate::api::gardener::{ProfileImage, ProfileMachineType};
use crate::api::gotext::field::{FieldError, FieldErrorType};
use crate::cloud_profile::validation::validate_profile;
use crate::provider::profile::ProfileConfig;

impl Lint<'_> {
    pub(super) fn refusals(&mut self) {
        let core = validate_profile(&self.profile.spec, self.settings.gates, self.settings.now);
        let provider = self.profile.config.validate(&self.profile.spec);
        let named = self.named();
        // A flavor that Gardener refuses has no counterpart in the provider's half; it need not be said.
        let is_of_refused = |error: &&FieldError| {
            let flavor = format!("{}.", error.field);
            let is_flavor = error.field.ends_with(']') && error.field.contains(".capabilityFlavors[");
            is_flavor && core.0.iter().any(|core| core.field == error.field || core.field.starts_with(&flavor))
        };
        let provider = provider.0.iter().filter(|error| !is_of_refused(error));
        let refusals = core.0.iter().map(|error| refused_by_gardener(error, &named));
        let refusals = refusals.chain(provider.map(|error| refused_by_provider(error, &named)));
        let refusals: Vec<Finding> = refusals.collect();
        self.findings.extend(refusals);
    }

    fn named(&self) -> Named<'_> {
        let spec = &self.profile.spec;
        Named { machine_types: &spec.machine_types, images: &spec.machine_images, config: &*self.profile.config }
    }
}

/// What has names that people use for it.
pub(super) struct Named<'a> {
    pub(super) machine_types: &'a [ProfileMachineType],
    pub(super) images: &'a [ProfileImage],
    pub(super) config: &'a dyn ProfileConfig,
}

/// An error of core's half.
pub(super) fn refused_by_gardener(error: &FieldError, named: &Named<'_>) -> Finding {
    let rule = match error.field.as_str() {
        path if path.starts_with("spec.machineCapabilities") => Rule::DefinitionRefused,
        path if path.starts_with("spec.machineTypes") => Rule::MachineTypeRefused,
        path if path.starts_with("spec.machineImages") => Rule::ImageRefused,
        _ => Rule::ProfileRefused,
    };
    refused(rule, "Gardener", error, named)
}

/// An error of the provider's half, or between both.
pub(super) fn refused_by_provider(error: &FieldError, named: &Named<'_>) -> Finding {
    let in_config = error.field.starts_with("spec.providerConfig");
    let rule = if in_config { Rule::ProviderConfigRefused } else { Rule::MappingMissing };
    refused(rule, "the provider's admission", error, named)
}

fn refused(rule: Rule, by: &str, error: &FieldError, named: &Named<'_>) -> Finding {
    let text = error.to_string();
    let reason = text.strip_prefix(&error.field).unwrap_or(&text).trim_start_matches(": ");
    Finding {
        severity: Severity::Error,
        rule,
        path: error.field.clone(),
        subject: named.subject(&error.field),
        reason: format!("Refused by {by}: {reason}."),
        advice: advice(rule, error),
        refusal: Some(error.error_type),
    }
}

impl Named<'_> {
    fn subject(&self, path: &str) -> String {
        if let Some(machine_type) = index(path, "spec.machineTypes").and_then(|index| self.machine_types.get(index)) {
            return machine_type.name.clone();
        }
        if let Some(image) = index(path, "spec.machineImages").and_then(|index| self.images.get(index)) {
            let version = index(path, ".versions").and_then(|index| image.versions.get(index));
            return match version {
                Some(version) => format!("{} {}", image.name, version.version),
                None => image.name.clone(),
            };
        }
        let place = (index(path, "spec.providerConfig.machineImages"), index(path, ".versions"));
        let (Some(image), version) = place else { return String::new() };
        let listed = self.config.images();
        let mut of_image = listed.iter().filter(|listed| listed.place.image == image);
        match version {
            Some(version) => of_image
                .find(|listed| listed.place.version == version)
                .map(|listed| format!("{} {}", listed.image, listed.version)),
            None => of_image.next().map(|listed| listed.image.to_owned()),
        }
        .unwrap_or_default()
    }
}

/// The index that a path has behind a member.
fn index(path: &str, member: &str) -> Option<usize> {
    let (_, rest) = path.split_once(member)?;
    rest.strip_prefix('[')?.split_once(']')?.0.parse().ok()
}

fn advice(rule: Rule, error: &FieldError) -> String {
    match (rule, error.error_type) {
        (Rule::MappingMissing, _) => {
            "Add the image to spec.providerConfig.machineImages, or take the version (or flavor) out of spec.machineImages."
        }
        (Rule::ImageRefused | Rule::MachineTypeRefused, FieldErrorType::NotSupported) => {
            "Use one of the supported values, or add it to spec.machineCapabilities."
        }
        (_, FieldErrorType::Required) => "Set the field.",
        (_, FieldErrorType::NotSupported) => "Use one of the supported values.",
        (_, FieldErrorType::Forbidden) => "Remove the field, or what forbids it.",
        (_, FieldErrorType::Duplicate) => "Keep one of the two.",
        (_, FieldErrorType::Invalid | FieldErrorType::TooMany | FieldErrorType::TooLong) => "Correct the value.",
    }
    .to_owned()
}
