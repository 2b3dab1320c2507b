//! Lints a NamespacedCloudProfile together with its parent CloudProfile: what Gardener's and the provider's admission
//! reject, what Gardener silently ignores, and findings about the merged profile.

use serde_json::Value;

use super::finding::{Finding, Rule, Severity};
use super::reading::{is_below_one_of, of_misfit, opened};
use super::refusals::{Named, refused_by_gardener, refused_by_provider};
use super::{Report, Settings, lint, unreadable};
use crate::cloud_profile::architecture_fields::apply_defaults;
use crate::cloud_profile::members::remove_invalid_fields;
use crate::cloud_profile::namespaced::merge;
use crate::cloud_profile::namespaced_rules::{Refusals, leave_out_inactive, validate_namespaced};
use crate::resolved_profile::merged::merged_document;
use crate::resolved_profile::profile::{ProfileError, spec_of};
use decisions::provider::Providers;
use decisions::provider::profile::ProfileConfig;
use wire::api::gardener::{NamespacedProfileSpec, ProfileSpec};
use wire::api::gotext::json::{decode_lenient, to_go_json};
use wire::capabilities::Life;

/// Path of the merged profile.
const MERGED: &str = "status.cloudProfileSpec";

/// Lints the document of a NamespacedCloudProfile before its creation, together with its parent. Findings that the
/// parent has by itself are not repeated.
///
/// # Errors
/// If the parent can't be read. Unreadable fields of the NamespacedCloudProfile are findings.
pub fn lint_namespaced(
    document: &Value,
    parent_document: &Value,
    settings: Settings,
    providers: Providers,
) -> Result<Report, ProfileError> {
    let mut parent = spec_of(parent_document)?;
    apply_defaults(&mut parent);
    let format = providers
        .profile_format(&parent.provider_type)
        .ok_or_else(|| ProfileError::Type { provider_type: parent.provider_type.clone() })?;
    let mut readable = document.clone();
    let mut unreadable_members: Vec<Finding> =
        remove_invalid_fields(&mut readable).into_iter().map(of_misfit).collect();
    let Some(config) = opened(format, &mut readable, &mut unreadable_members) else {
        return Ok(Report::of(document, unreadable_members));
    };
    let written: NamespacedProfileSpec = match decode_lenient(&to_go_json(&readable["spec"])) {
        Ok(spec) => spec,
        Err(error) => return Ok(unreadable(document, &error.into())),
    };
    let mut findings = left_out(&written, settings);
    let named = Named { machine_types: &written.machine_types, images: &written.machine_images, config: &*config };
    // Errors in the merged profile are reported below, together with its other findings.
    let Refusals { own, .. } = validate_namespaced(written.clone(), parent.clone(), None, settings.gates, settings.now);
    findings.extend(own.0.iter().map(|error| refused_by_gardener(error, &named)));
    let of_provider = config.validate_namespaced(&written, &parent);
    findings.extend(of_provider.0.iter().map(|error| refused_by_provider(error, &named)));
    let mut spec = written;
    leave_out_inactive(&mut spec, None, settings.now);
    let without_strategy = without_strategy(&spec, &parent, &*config, settings);
    let is_refused = |findings: &[Finding]| findings.iter().any(|finding| finding.severity == Severity::Error);
    if !is_refused(&findings) && !is_refused(&unreadable_members) {
        match merged_document(document, spec, parent, format) {
            Ok(merged) => {
                let known = lint(parent_document, settings, providers)?.findings;
                let found = lint(&merged, settings, providers)?.findings.into_iter();
                findings.extend(found.filter(|found| !is_known(found, &known)).map(of_merged));
            }
            Err(error) => return Ok(unreadable(document, &error.into())),
        }
    }
    findings.extend(without_strategy.into_iter().map(of_merged));
    findings.retain(|finding| !is_below_one_of(&unreadable_members, &finding.path));
    findings.extend(unreadable_members);
    Ok(Report::of(document, findings))
}

/// New images without an update strategy. Gardener sets a default in CloudProfiles, but not in merged profiles.
fn without_strategy(
    spec: &NamespacedProfileSpec,
    parent: &ProfileSpec,
    config: &dyn ProfileConfig,
    Settings { gates, now, .. }: Settings,
) -> Vec<Finding> {
    let refused = validate_namespaced(spec.clone(), parent.clone(), None, gates, now).merged;
    let merged = merge(parent.clone(), spec.clone());
    let named = Named { machine_types: &merged.machine_types, images: &merged.machine_images, config };
    let of_strategy = refused.0.iter().filter(|error| error.field.ends_with("].updateStrategy"));
    of_strategy.map(|error| refused_by_gardener(error, &named)).collect()
}

/// Reports new versions that have expired, or whose first stage has not begun.
fn left_out(spec: &NamespacedProfileSpec, settings: Settings) -> Vec<Finding> {
    let finding = |path: String, subject: String| Finding {
        severity: Severity::Warning,
        rule: Rule::Expired,
        path,
        subject,
        reason: "It has expired, or its first stage has not begun: Gardener leaves it out without a word.".to_owned(),
        advice: "Set a later expirationDate, or remove the version.".to_owned(),
        refusal: None,
    };
    let is_active = |life: Life| life.at(settings.now).is_active();
    let mut findings = Vec::new();
    let kubernetes = spec.kubernetes.iter().flat_map(|kubernetes| kubernetes.versions.iter().enumerate());
    for (index, version) in kubernetes.filter(|(_, version)| !is_active(Life::from(*version))) {
        let path = format!("spec.kubernetes.versions[{index}]");
        findings.push(finding(path, format!("Kubernetes {}", version.version)));
    }
    for (position, image) in spec.machine_images.iter().enumerate() {
        let versions = image.versions.iter().enumerate();
        for (index, version) in versions.filter(|(_, version)| !is_active(Life::from(*version))) {
            let path = format!("spec.machineImages[{position}].versions[{index}]");
            findings.push(finding(path, format!("{} {}", image.name, version.version)));
        }
    }
    findings
}

/// Whether the parent has the same finding. Paths are ignored, because positions may differ.
fn is_known(finding: &Finding, known: &[Finding]) -> bool {
    known
        .iter()
        .any(|known| (known.rule, &known.subject, &known.reason) == (finding.rule, &finding.subject, &finding.reason))
}

fn of_merged(finding: Finding) -> Finding {
    let path = match finding.path.strip_prefix("spec") {
        Some(rest) => format!("{MERGED}{rest}"),
        None => finding.path,
    };
    Finding { path, ..finding }
}
