//! Gardener's own handling of CloudProfiles, which is independent of providers.
//!
//! * [`members`]: known members and their types; [`validation`]: validation of the API server;
//! * [`creation`]: rules for new profiles; [`change`]: rules for changed profiles;
//! * [`architecture_fields`]: defaults, and synchronisation of the older architecture fields with the capability;
//! * [`namespaced`]: merges a NamespacedCloudProfile with its parent;
//! * [`namespaced_rules`]: rules for NamespacedCloudProfiles and their changes.
//!
//! Pure: the current time is an argument. The rules are those of docs/contract.md#cloudprofiles.

#[cfg(test)]
use wire::api::gotext::field::FieldErrors;

pub mod architecture_fields;
pub mod change;
pub mod creation;
pub mod members;
pub mod namespaced;
pub mod namespaced_rules;
pub mod validation;

/// Compares errors with the expected ones of a test table: one text for each in order, contained in its message.
#[cfg(test)]
fn difference(errors: &FieldErrors, required: &[String]) -> Option<String> {
    let found: Vec<String> = errors.0.iter().map(ToString::to_string).collect();
    let same = found.len() == required.len()
        && found.iter().zip(required).all(|(found, required)| found.contains(required.as_str()));
    (!same).then(|| format!("{found:#?} instead of {required:#?}"))
}
