//! Gardener's texts about a run: status, events, log lines.

use super::run::{Cause, LastMaintenance, Run, Update, UpdatedImage};
use super::target::NoTarget;

/// For a SecretBinding that was migrated to a CredentialsBinding.
pub(super) const MIGRATED: &str = ".spec.secretBindingName was migrated to .spec.credentialsBindingName. Reason: SecretBinding is \
                            deprecated and can no longer be used for Shoot clusters using Kubernetes version 1.34+";

impl Update {
    /// Why the version is updated.
    #[must_use]
    pub fn reason(&self) -> String {
        match (self.cause, &self.image) {
            (Cause::Missing, _) => "Version does not exist in CloudProfile".to_owned(),
            (Cause::Expired, None) => "Kubernetes version expired - force update required".to_owned(),
            (Cause::Automatic, None) => "Automatic update of Kubernetes version configured".to_owned(),
            (Cause::Expired, Some(image)) => format!(
                "Machine image version expired - force update required (image update strategy: {})",
                image.strategy
            ),
            (Cause::Automatic, Some(image)) => format!(
                "Automatic update of the machine image version is configured (image update strategy: {})",
                image.strategy
            ),
        }
    }

    /// The outcome of the update.
    #[must_use]
    pub fn description(&self) -> String {
        let Self { image, from, to, .. } = self;
        match (to, image) {
            (Ok(to), None) => format!("Updated Kubernetes version from \"{from}\" to \"{to}\""),
            (Ok(to), Some(image)) => format!("Updated machine image \"{}\" from \"{from}\" to \"{to}\"", image.name),
            (Err(error), None) => format!("could not determine higher suitable version than \"{from}\": {error}"),
            (Err(error), Some(image)) => {
                format!("failed to update machine image \"{}\": {}", image.name, image_error(image, error))
            }
        }
    }
}

/// Here Gardener writes the name as the CloudProfile does.
fn image_error(UpdatedImage { listed_name, strategy, .. }: &UpdatedImage, error: &NoTarget) -> String {
    format!(
        "failed to determine the target version for maintenance of machine image \"{listed_name}\" with strategy \
         \"{strategy}\": {error}"
    )
}

/// The log line about an image that can't be updated.
pub(super) fn image_failed(update: &Update, error: &NoTarget, pool: &str) -> String {
    let error = update.image.as_ref().map_or_else(|| error.to_string(), |image| image_error(image, error));
    format!("Maintenance of machine image failed ({pool}): {error}")
}

/// The status after a run whose Shoot the API server accepts.
pub(super) fn last_maintenance(run: &Run) -> LastMaintenance {
    let mut parts = Vec::new();
    let mut failure_reasons = Vec::new();
    let reported = || run.updates().filter(|(_, update)| !(run.is_silent && update.image.is_some()));
    for (pool, update) in reported() {
        let whose = pool.map_or("Control Plane".to_owned(), |pool| format!("Worker pool \"{pool}\""));
        let description = update.description();
        let reason = update.reason();
        if update.to.is_ok() {
            parts.push(format!("{whose}: {description}. Reason: {reason}"));
            continue;
        }
        let (failed, failure) = match (pool, &update.image) {
            (None, _) => ("Kubernetes version update failed", "Kubernetes maintenance failure due to: "),
            (_, None) => ("Kubernetes version maintenance failed", "Kubernetes maintenance failure due to: "),
            _ => ("machine image version maintenance failed", ""),
        };
        parts.push(format!("{whose}: {failed}. Reason for update: {reason}"));
        failure_reasons.push(format!("{whose}: {failure}{description}"));
    }
    parts.extend(run.operations.iter().cloned());
    let all = reported().count();
    let summary = match failure_reasons.len() {
        0 => "All maintenance operations successful.".to_owned(),
        failed => format!("({}/{all}) maintenance operations successful.", all - failed),
    };
    let state = if failure_reasons.is_empty() { "Succeeded" } else { "Failed" };
    LastMaintenance { state, summary, parts, failure_reasons }
}

/// The status after a run whose Shoot the API server rejects.
pub(super) fn failed_maintenance(rejected: &str) -> LastMaintenance {
    LastMaintenance {
        state: "Failed",
        summary: "Maintenance failed".to_owned(),
        parts: Vec::new(),
        failure_reasons: vec![format!("Updates to the Shoot failed to be applied: {rejected}")],
    }
}

/// The status after a run without changes that follows a failed one.
pub(super) fn recovered() -> LastMaintenance {
    let summary = "Maintenance succeeded".to_owned();
    LastMaintenance { state: "Succeeded", summary, parts: Vec::new(), failure_reasons: Vec::new() }
}

/// The API server's error for a Shoot with invalid fields.
pub(super) fn invalid(name: &str, errors: &[String]) -> String {
    format!("Shoot.core.gardener.cloud \"{name}\" is invalid: {}", listed(errors))
}

/// The error of admission plugins that reject a Shoot.
pub(super) fn forbidden(name: &str, errors: &[String]) -> String {
    format!("shoots.core.gardener.cloud \"{name}\" is forbidden: {}", listed(errors))
}

fn listed(errors: &[String]) -> String {
    match errors {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

impl Run {
    /// The events that Gardener publishes: type, reason and text, sorted.
    #[must_use]
    pub fn events(&self) -> Vec<String> {
        let reported = self.updates().filter(|(_, update)| !(self.is_silent && update.image.is_some()));
        let mut events: Vec<String> = reported
            .map(|(pool, update)| {
                let whose = pool.map_or("Control Plane".to_owned(), |pool| format!("Worker pool \"{pool}\""));
                let (event, what) = match update.image {
                    None => ("KubernetesVersionMaintenance", "Kubernetes"),
                    Some(_) => ("MachineImageVersionMaintenance", "Machine image"),
                };
                let description = update.description();
                let reason = update.reason();
                match update.to {
                    Ok(_) => format!("Normal {event} {whose}: {description}. Reason: {reason}."),
                    Err(_) => format!(
                        "Warning {event} {whose}: {what} version maintenance failed. Reason for update: {reason}. Error: \
                         {description}"
                    ),
                }
            })
            .collect();
        events.sort();
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_name_the_image_of_the_profile() {
        let image = |name: &str| UpdatedImage {
            name: name.to_owned(),
            listed_name: "meadowos".to_owned(),
            strategy: "major".to_owned(),
        };
        let error = NoTarget::Nothing { version: "1.0.0".to_owned() };
        let update = |name: &str| Update {
            image: Some(image(name)),
            from: "1.0.0".to_owned(),
            to: Err(error.clone()),
            cause: Cause::Missing,
        };
        let start = "failed to update machine image \"MeadowOS\": failed to determine the target version for maintenance of \
                     machine image \"meadowos\" with strategy \"major\": ";
        assert!(update("MeadowOS").description().starts_with(start), "{}", update("MeadowOS").description());
        let logged = image_failed(&update("MeadowOS"), &error, "a");
        assert!(logged.contains("machine image \"meadowos\" with strategy"), "{logged}");
    }
}
