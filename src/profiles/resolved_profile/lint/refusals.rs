//! Errors for which Gardener's API server and the provider's admission reject a profile.

use std::collections::HashSet;

use super::finding::{Finding, Rule, Severity};
use super::{Lint, Settings};
use crate::cloud_profile::creation::validate_creation;
use crate::cloud_profile::validation::{validate_metadata, validate_profile};
use decisions::provider::profile::ProfileConfig;
use wire::api::gardener::{ProfileImage, ProfileMachineType, ProfileSpec};
use wire::api::gotext::field::{FieldError, FieldErrorType, FieldErrors, FieldPath};
use wire::api::gotext::json::{decode_lenient, to_go_json};
use wire::api::gotext::version::Version;

/// API version of Gardener's CloudProfiles.
const API_VERSION: &str = "core.gardener.cloud/v1beta1";

impl Lint<'_> {
    pub(super) fn refusals(&mut self) {
        let provider = self.profile.config.validate(&self.profile.spec);
        let core = self.refused_by_core();
        // If Gardener rejects a flavor, the provider's error about its missing counterpart is redundant.
        let is_of_refused = |error: &&FieldError| {
            let flavor = format!("{}.", error.field);
            let is_flavor = error.field.ends_with(']') && error.field.contains(".capabilityFlavors[");
            is_flavor && core.iter().any(|core| core.path == error.field || core.path.starts_with(&flavor))
        };
        let named = self.named();
        let provider = provider.0.iter().filter(|error| !is_of_refused(error));
        let provider: Vec<Finding> = provider.map(|error| refused_by_provider(error, &named)).collect();
        self.findings.extend(core);
        self.findings.extend(provider);
    }

    /// Errors for which Gardener rejects the creation or the update of the profile.
    fn refused_by_core(&self) -> Vec<Finding> {
        let (spec, Settings { gates, now, .. }) = (&self.profile.spec, self.settings);
        let by_webhook = self.profile.spec_by_webhook();
        let named = self.named();
        let changed = validate_profile(spec, gates, now).0;
        let created = validate_creation(spec, gates, now).0;
        let kept = [validate_profile(&by_webhook, gates, now).0, validate_creation(&by_webhook, gates, now).0].concat();
        let kept: HashSet<&FieldError> = kept.iter().collect();
        let of_change: HashSet<&FieldError> = changed.iter().collect();
        let of_creation: HashSet<&FieldError> = created.iter().collect();
        let of_object = self.refused_object();
        let mut findings: Vec<Finding> = of_object.iter().map(|error| refused_by_gardener(error, &named)).collect();
        let found =
            |error, when: fn(Finding) -> Finding| match (kept.contains(error), refused_by_gardener(error, &named)) {
                (true, refused) => when(refused),
                (false, refused) => replaced(refused),
            };
        findings.extend(created.iter().map(|error| match of_change.contains(error) {
            true => found(error, |refused| refused),
            false => found(error, only_when_created),
        }));
        let only_changed = changed.iter().filter(|error| !of_creation.contains(error));
        findings.extend(only_changed.map(|error| found(error, only_when_changed)));
        for finding in &mut findings {
            finding.path = in_document(&finding.path, spec);
        }
        findings
    }

    /// Reports errors for which Gardener would reject the profile if the provider's webhook did not set flavors.
    pub(super) fn filled_in(&mut self, as_written: &ProfileSpec) {
        let Settings { gates, now, .. } = self.settings;
        let stored = validate_creation(&self.profile.spec, gates, now).0;
        let written = validate_creation(as_written, gates, now).0;
        let stored: HashSet<&FieldError> = stored.iter().collect();
        let named = self.named();
        let only_written = written.iter().filter(|error| !stored.contains(error));
        let findings: Vec<Finding> = only_written.map(|error| filled_in(refused_by_gardener(error, &named))).collect();
        self.findings.extend(findings);
    }

    /// Errors outside of `spec`.
    fn refused_object(&self) -> Vec<FieldError> {
        let document = &self.profile.document;
        let mut errors = FieldErrors::default();
        if document["apiVersion"] != API_VERSION {
            errors.not_supported(FieldPath::new("apiVersion"), &document["apiVersion"], [API_VERSION]);
        }
        match decode_lenient(&to_go_json(&document["metadata"])) {
            Ok(metadata) => errors.extend(validate_metadata(&metadata)),
            Err(error) => errors.invalid(FieldPath::new("metadata"), (), error.to_string()),
        }
        errors.0
    }

    fn named(&self) -> Named<'_> {
        let spec = &self.profile.spec;
        Named { machine_types: &spec.machine_types, images: &spec.machine_images, config: &*self.profile.config }
    }
}

/// Objects whose names are used as subjects of findings.
pub(super) struct Named<'a> {
    pub(super) machine_types: &'a [ProfileMachineType],
    pub(super) images: &'a [ProfileImage],
    pub(super) config: &'a dyn ProfileConfig,
}

/// An error in core's half.
pub(super) fn refused_by_gardener(error: &FieldError, named: &Named<'_>) -> Finding {
    let rule = match error.field.as_str() {
        path if path.starts_with("spec.machineCapabilities") => Rule::DefinitionRefused,
        path if path.starts_with("spec.machineTypes") => Rule::MachineTypeRefused,
        path if path.starts_with("spec.machineImages") => Rule::ImageRefused,
        _ => Rule::ProfileRefused,
    };
    refused(rule, "Gardener", error, named)
}

/// An error in the provider's half, or in the relation of both halves.
pub(super) fn refused_by_provider(error: &FieldError, named: &Named<'_>) -> Finding {
    let in_config = error.field.starts_with("spec.providerConfig");
    let rule = if in_config { Rule::ProviderConfigRefused } else { Rule::MappingMissing };
    refused(rule, "the provider's admission", error, named)
}

fn refused(rule: Rule, by: &str, error: &FieldError, named: &Named<'_>) -> Finding {
    let text = error.to_string();
    let reason = text.strip_prefix(&error.field).unwrap_or(&text).trim_start_matches(": ").trim_end_matches('.');
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

fn only_when_created(refused: Finding) -> Finding {
    Finding {
        reason: format!(
            "{} That is so when it is created: then Gardener leaves expired versions out first.",
            refused.reason
        ),
        advice: "Set a later expirationDate, or remove what needs the versions.".to_owned(),
        ..refused
    }
}

fn only_when_changed(refused: Finding) -> Finding {
    Finding {
        severity: Severity::Warning,
        reason: format!(
            "{} That is so when it is changed; when it is created, Gardener leaves expired versions out first.",
            refused.reason
        ),
        ..refused
    }
}

fn filled_in(refused: Finding) -> Finding {
    Finding {
        severity: Rule::FilledIn.severity(),
        rule: Rule::FilledIn,
        reason: format!(
            "{} The provider's webhook fills it in from spec.providerConfig before; where it is not installed, the profile is \
             refused.",
            refused.reason
        ),
        advice: "List in spec.machineImages what spec.providerConfig has.".to_owned(),
        ..refused
    }
}

/// An error that is only in the flavors that the author wrote. They are not stored, because the webhook replaces them.
fn replaced(refused: Finding) -> Finding {
    Finding {
        severity: Severity::Warning,
        rule: Rule::FilledIn,
        reason: format!(
            "{} The provider's webhook replaces the flavors by those of spec.providerConfig before; where it is not installed, \
             the profile is refused.",
            refused.reason
        ),
        ..refused
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
        let location = (index(path, "spec.providerConfig.machineImages"), index(path, ".versions"));
        let (Some(image), version) = location else { return String::new() };
        let listed = self.config.images();
        let mut of_image = listed.iter().filter(|listed| listed.location.image == image);
        match version {
            Some(version) => of_image
                .find(|listed| listed.location.version == version)
                .map(|listed| format!("{} {}", listed.image, listed.version)),
            None => of_image.next().map(|listed| listed.image.to_owned()),
        }
        .unwrap_or_default()
    }
}

/// The real path of a field. Some paths in Gardener's errors do not exist in the document.
fn in_document(path: &str, spec: &ProfileSpec) -> String {
    if let Some(rest) = path.strip_prefix("spec.kubernetes.versions[].") {
        let versions = spec.kubernetes.versions.iter().enumerate();
        let latest = versions.max_by_key(|(_, version)| Version::parse(&version.version).ok());
        return latest
            .map_or_else(|| path.to_owned(), |(index, _)| format!("spec.kubernetes.versions[{index}].{rest}"));
    }
    if let Some(version) = path.strip_suffix(".minVersionForInPlaceUpdate") {
        return format!("{version}.inPlaceUpdates.minVersionForUpdate");
    }
    let of_definition = path.strip_prefix("spec.machineCapabilities.").and_then(|rest| {
        let (name, value) =
            rest.split_once('[').map_or((rest, String::new()), |(name, value)| (name, format!("[{value}")));
        let position = spec.machine_capabilities.iter().rposition(|definition| definition.name == name)?;
        Some(format!("spec.machineCapabilities[{position}].values{value}"))
    });
    of_definition.unwrap_or_else(|| path.to_owned())
}

/// The list index that follows `member` in a path.
fn index(path: &str, member: &str) -> Option<usize> {
    let (_, rest) = path.split_once(member)?;
    rest.strip_prefix('[')?.split_once(']')?.0.parse().ok()
}

fn advice(rule: Rule, error: &FieldError) -> String {
    match (rule, error.error_type) {
        (Rule::MappingMissing, _) => {
            "Add the image to spec.providerConfig.machineImages, or take the version (or flavor) out of spec.machineImages."
        }
        (Rule::ImageRefused | Rule::MachineTypeRefused, FieldErrorType::NotSupported)
            if error.field.contains(".capabilit") =>
        {
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
