//! Reads as much of a profile as possible. Fields that can't be decoded are reported and removed, so that all others
//! can be checked.

use serde_json::Value;
use serde_json::value::RawValue;

use super::finding::{Finding, Rule};
use crate::cloud_profile::architecture_fields::apply_defaults;
use crate::cloud_profile::members::{InvalidField, Problem, remove_invalid_fields};
use crate::resolved_profile::profile::{Profile, ProfileError, spec_of};
use decisions::provider::Providers;
use decisions::provider::document::DocumentError;
use decisions::provider::profile::{ProfileConfig, ProfileFormat, UnknownConfig, UnknownFormat};
use wire::api::bounded_text::enumerated;
use wire::api::gardener::ProfileSpec;
use wire::api::gotext::json::{DecodeError, to_go_json};

/// Maximum number of repairs in the provider's half. A document with more errors probably belongs to another provider.
const MAX_REPAIRS: usize = 200;
const CONFIG: &str = "spec.providerConfig";

/// The readable part of a profile, and findings about the rest.
pub(super) struct Reading {
    pub(super) profile: Profile,
    /// Core's half before the provider's webhook sets flavors.
    pub(super) as_written: ProfileSpec,
    /// Whether the provider's half could be read, so that images and machine types can be checked.
    pub(super) knows_images: bool,
    pub(super) findings: Vec<Finding>,
}

impl Reading {
    /// Reads the document without the fields that can't be decoded.
    ///
    /// # Errors
    /// If core's half can't be decoded, although every field has the right type.
    pub(super) fn of(document: &Value, providers: Providers) -> Result<Self, ProfileError> {
        let mut readable = document.clone();
        let mut findings: Vec<Finding> = remove_invalid_fields(&mut readable).into_iter().map(of_misfit).collect();
        let format = match readable.pointer("/spec/type").and_then(Value::as_str) {
            None | Some("") => None,
            Some(provider_type) => {
                let known = providers.profile_format(provider_type);
                if known.is_none() {
                    findings.push(unknown_provider(provider_type));
                }
                known
            }
        };
        let config = format.and_then(|format| opened(format, &mut readable, &mut findings));
        let knows_images = config.is_some();
        let profile = Profile {
            spec: spec_of(&readable)?,
            document: readable,
            format: format.unwrap_or(&UnknownFormat),
            config: config.unwrap_or_else(|| Box::new(UnknownConfig)),
        };
        let mut as_written = profile.spec.clone();
        apply_defaults(&mut as_written);
        Ok(Self { profile: profile.completed(), as_written, knows_images, findings })
    }
}

/// The provider's half without invalid fields; `None` if it can't be repaired.
pub(super) fn opened(
    format: &dyn ProfileFormat,
    document: &mut Value,
    findings: &mut Vec<Finding>,
) -> Option<Box<dyn ProfileConfig>> {
    let Some(config) = document.pointer_mut("/spec/providerConfig").filter(|config| !config.is_null()) else {
        return format.open(None).ok();
    };
    let mut reported: Vec<String> = Vec::new();
    for _ in 0..MAX_REPAIRS {
        let raw = RawValue::from_string(to_go_json(config)).ok()?;
        let error = match format.open(Some(&raw)) {
            Ok(config) => return Some(config),
            Err(DocumentError::Decode(error)) if !error.path.is_empty() => error,
            Err(error) => {
                findings.push(refused_document(CONFIG, &error.to_string()));
                return None;
            }
        };
        // A value that is still wrong after its replacement is reported only once.
        let is_reported = reported.contains(&error.path);
        if !repair(config, &error.path, is_reported) {
            findings.push(refused_member(&error));
            return None;
        }
        if !is_reported {
            findings.push(refused_member(&error));
            reported.push(error.path);
        }
    }
    None
}

/// Removes a field, or converts a number or boolean to text. A list item becomes null; if that does not help, the list
/// is removed.
fn repair(document: &mut Value, path: &str, again: bool) -> bool {
    let Some((around, last)) = split_last(path) else { return false };
    let pointer = format!("/{}", around.replace(['.', '['], "/").replace(']', ""));
    let around_value = if around.is_empty() { Some(&mut *document) } else { document.pointer_mut(&pointer) };
    match around_value {
        Some(Value::Object(members)) => match members.get_mut(last) {
            Some(value @ (Value::Number(_) | Value::Bool(_))) if !again => {
                *value = value.to_string().into();
                true
            }
            _ => members.remove(last).is_some(),
        },
        Some(Value::Array(items)) => {
            let item = last.parse().ok().and_then(|index: usize| items.get_mut(index));
            match item {
                Some(item) if !item.is_null() => {
                    *item = Value::Null;
                    true
                }
                _ => repair(document, around, true),
            }
        }
        _ => false,
    }
}

/// Splits a path into the part before the last step, and the last step.
fn split_last(path: &str) -> Option<(&str, &str)> {
    let (around, last) = path.split_at_checked(path.rfind(['.', '[']).unwrap_or_default())?;
    (!path.is_empty()).then_some((around, last.trim_start_matches(['.', '[']).trim_end_matches(']')))
}

pub(super) fn of_misfit(misfit: InvalidField) -> Finding {
    let InvalidField { path, problem } = misfit;
    let (rule, reason, advice) = match problem {
        Problem::Unknown { nearest, known } => {
            let reason = "Gardener has no such member here. kubectl and other clients that ask for strict validation get an \
                          error; for others the API server drops it without a word.";
            let advice = match (draft_name(&path, &known), nearest) {
                (Some(today), _) => {
                    format!(
                        "A draft of GEP-33 had it; write {today}, a list, or convert the profile with cloudprofile convert \
                         --from draft."
                    )
                }
                (None, Some(nearest)) => format!("Write {nearest}, or remove it."),
                (None, None) => format!("Remove it. There are {}.", enumerated(&known)),
            };
            (Rule::UnknownMember, reason.to_owned(), advice)
        }
        Problem::Type { required, found } => {
            let reason =
                format!("Gardener can't decode it and refuses the whole object: {required} is expected, not {found}.");
            (Rule::Unreadable, reason, format!("Write {required}."))
        }
    };
    finding(rule, path, reason, advice)
}

/// The current name of a field that had another name in drafts of GEP-33.
fn draft_name(path: &str, known: &[&'static str]) -> Option<&'static str> {
    let (_, name) = split_last(path)?;
    let today = match name {
        "capabilities" | "capabilityDefinitions" if known.contains(&"machineCapabilities") => "machineCapabilities",
        "capabilities" | "capabilitySets" => "capabilityFlavors",
        _ => return None,
    };
    known.contains(&today).then_some(today)
}

fn refused_member(error: &DecodeError) -> Finding {
    let path = format!("{CONFIG}.{}", error.path);
    if error.message.starts_with("unknown field") {
        let reason = "The provider has no such member here: it refuses its half as a whole.";
        let advice = match split_last(&path) {
            Some((_, "capabilities" | "capabilitySets")) => {
                "A draft of GEP-33 had it; convert the profile with cloudprofile convert --from draft."
            }
            _ => "Remove it, or correct its name.",
        };
        return finding(Rule::UnknownMember, path, reason.to_owned(), advice.to_owned());
    }
    refused_document(&path, &error.message)
}

fn refused_document(path: &str, why: &str) -> Finding {
    let reason = format!("The provider can't decode its half: {}.", why);
    finding(Rule::Unreadable, path.to_owned(), reason, "Correct the member.".to_owned())
}

fn unknown_provider(provider_type: &str) -> Finding {
    let reason = format!(
        "No provider of type {provider_type:?} is known here: spec.providerConfig is not checked, nor which machine type gets \
         which image."
    );
    finding(
        Rule::UnknownProvider,
        "spec.type".to_owned(),
        reason,
        "Check that half with the provider's own tools.".to_owned(),
    )
}

fn finding(rule: Rule, path: String, reason: String, advice: String) -> Finding {
    let severity = rule.severity();
    Finding { severity, rule, path, subject: String::new(), reason, advice, refusal: None }
}

/// Whether a finding is about a field that was removed, or about a field in it.
pub(super) fn is_below_one_of(findings: &[Finding], path: &str) -> bool {
    findings.iter().filter(|known| matches!(known.rule, Rule::Unreadable)).any(|known| {
        path.strip_prefix(known.path.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    })
}
