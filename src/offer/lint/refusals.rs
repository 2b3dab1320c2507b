//! What Gardener's API server and the provider's admission refuse.

use super::Lint;
use super::finding::{Rule, Severity};
use crate::api::gotext::field::{FieldError, FieldErrorType};
use crate::cloud_profile::validation::validate_profile;

impl Lint<'_> {
    pub(super) fn refusals(&mut self) {
        let core = validate_profile(&self.profile.spec, self.settings.gates, self.settings.now);
        for error in core.0 {
            let rule = match error.field.as_str() {
                path if path.starts_with("spec.machineCapabilities") => Rule::DefinitionRefused,
                path if path.starts_with("spec.machineTypes") => Rule::MachineTypeRefused,
                path if path.starts_with("spec.machineImages") => Rule::ImageRefused,
                _ => Rule::ProfileRefused,
            };
            self.refused(rule, "Gardener", &error);
        }
        for error in self.profile.config.validate(&self.profile.spec).0 {
            let in_config = error.field.starts_with("spec.providerConfig");
            let rule = if in_config { Rule::ProviderConfigRefused } else { Rule::MappingMissing };
            self.refused(rule, "the provider's admission", &error);
        }
    }

    fn refused(&mut self, rule: Rule, by: &str, error: &FieldError) {
        let text = error.to_string();
        let reason = text.strip_prefix(&error.field).unwrap_or(&text).trim_start_matches(": ");
        let subject = self.subject(&error.field);
        let reason = format!("Refused by {by}: {reason}.");
        self.find(Severity::Error, rule, error.field.clone(), subject, reason, advice(rule, error));
    }

    /// What people call the thing that a path leads to.
    pub(super) fn subject(&self, path: &str) -> String {
        let spec = &self.profile.spec;
        if let Some(machine_type) = index(path, "spec.machineTypes").and_then(|index| spec.machine_types.get(index)) {
            return machine_type.name.clone();
        }
        if let Some(image) = index(path, "spec.machineImages").and_then(|index| spec.machine_images.get(index)) {
            let version = index(path, ".versions").and_then(|index| image.versions.get(index));
            return match version {
                Some(version) => format!("{} {}", image.name, version.version),
                None => image.name.clone(),
            };
        }
        let place = (index(path, "spec.providerConfig.machineImages"), index(path, ".versions"));
        let (Some(image), version) = place else { return String::new() };
        let listed = self.profile.config.images();
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
