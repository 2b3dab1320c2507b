//! Finds problems of a CloudProfile: errors for which Gardener and the provider reject it, and problems that they do
//! not detect.
//!
//! * `reading`: values that can't be decoded; `refusals`: values that are rejected; `mapping`: core's half compared
//!   with the provider's;
//! * `namespaced`: the same for a NamespacedCloudProfile and the CloudProfile that it extends;
//! * `capabilities`: definitions that have no effect, or another one than they seem to have;
//! * `flavors`, `machine_types`, `order`, `regions`: the image that each machine type gets;
//! * `same_image`, `suffixes`: versions with the image of another version, or with a variant in their name;
//! * `lifetime`, `expiry`, `ways`, `size`: problems to come, and the versions that pools are then moved to;
//! * `finding`: the result type of all rules.

use std::collections::HashMap;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::profile::{Profile, ProfileError};
use super::resolution::{Ranking, TypeGroup};
use super::{Resolution, ResolvedProfile};
use crate::cloud_profile::validation::FeatureGates;
use decisions::provider::Providers;

mod capabilities;
mod expiry;
mod finding;
mod flavors;
mod lifetime;
mod machine_types;
mod mapping;
mod namespaced;
mod order;
mod reading;
mod refusals;
mod regions;
mod same_image;
mod size;
mod suffixes;
mod ways;

pub(super) use finding::some_of;
pub use finding::{Finding, Rule, Severity};
pub use namespaced::lint_namespaced;
use reading::{Reading, is_below_one_of};
pub(super) use size::stored_bytes;
pub use size::{ImageCost, Prunable, Size};

/// Settings of a lint.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The time for which versions are classified.
    pub now: Timestamp,
    /// A version that expires within this time expires soon.
    pub soon: SignedDuration,
    /// Feature gates of Gardener's API server.
    pub gates: FeatureGates,
}

/// The findings about a profile.
#[derive(Clone, Debug)]
pub struct Report {
    /// Name of the profile.
    pub profile: String,
    /// Findings, the most severe first.
    pub findings: Vec<Finding>,
    /// The size of the stored object.
    pub size: Size,
}

impl Report {
    fn of(document: &Value, mut findings: Vec<Finding>) -> Self {
        findings.sort_by_cached_key(Finding::location);
        findings.dedup();
        let name = document["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        Self { profile: name, findings, size: Size::of_document(document) }
    }
}

/// The input of all rules, and their findings.
struct Lint<'a> {
    settings: Settings,
    profile: &'a Profile,
    resolution: &'a Resolution<'a>,
    findings: Vec<Finding>,
    /// By ranking and position of the flavor, because profiles have hundreds of versions with equal flavors.
    preferences: HashMap<(Ranking, usize), Option<Preference>>,
}

/// The flavor that a group of machine types gets instead of another one that fits.
#[derive(Clone)]
struct Preference {
    /// Number of the group.
    group: usize,
    /// Position of the flavor in the version.
    winner: usize,
    /// Text such as `, because it lists c0=a`; empty if the order decided.
    because: String,
}

/// Lints the document of a CloudProfile. Fields that can't be decoded and an unknown provider are reported as findings.
///
/// # Errors
/// If core's half can't be decoded.
pub fn lint(document: &Value, settings: Settings, providers: Providers) -> Result<Report, ProfileError> {
    let Reading { profile, as_written, knows_images, findings: unreadable } = Reading::of(document, providers)?;
    let resolved_profile: ResolvedProfile = profile.resolved_profile(settings.now);
    let resolution = Resolution::of(&resolved_profile);
    let mut lint = Lint {
        settings,
        profile: &profile,
        resolution: &resolution,
        findings: Vec::new(),
        preferences: HashMap::new(),
    };
    lint.refusals();
    lint.filled_in(&as_written);
    if knows_images {
        lint.mapping();
        lint.flavors();
        lint.machine_types();
        lint.order();
        lint.regions();
        lint.same_images();
        lint.capabilities();
    }
    lint.lifetime();
    let size = lint.size();
    let mut findings = lint.findings;
    findings.retain(|finding| !is_below_one_of(&unreadable, &finding.path));
    findings.extend(unreadable);
    findings.sort_by_cached_key(Finding::location);
    findings.dedup();
    Ok(Report { profile: profile.name().to_owned(), findings, size })
}

fn unreadable(document: &Value, error: &ProfileError) -> Report {
    let text = error.to_string();
    let (path, reason) = match text.split_once(": ") {
        Some((path, reason)) if path.starts_with("spec") => (path.to_owned(), reason.to_owned()),
        _ => ("spec".to_owned(), text),
    };
    let finding = Finding {
        severity: Severity::Error,
        rule: Rule::Unreadable,
        path,
        subject: String::new(),
        reason: format!("It can't be decoded: {reason}."),
        advice: "Correct the member; until then nothing else can be judged.".to_owned(),
        refusal: None,
    };
    Report::of(document, vec![finding])
}

impl<'a> Lint<'a> {
    fn find(
        &mut self,
        rule: Rule,
        path: impl Into<String>,
        subject: impl Into<String>,
        reason: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.find_as(rule.severity(), rule, path, subject, reason, advice);
    }

    /// Adds a finding with another severity than its rule's.
    fn find_as(
        &mut self,
        severity: Severity,
        rule: Rule,
        path: impl Into<String>,
        subject: impl Into<String>,
        reason: impl Into<String>,
        advice: impl Into<String>,
    ) {
        let path = path.into();
        let subject = subject.into();
        let reason = reason.into();
        let advice = advice.into();
        self.findings.push(Finding { severity, rule, path, subject, reason, advice, refusal: None });
    }

    fn resolved_profile(&self) -> &'a ResolvedProfile {
        self.resolution.resolved_profile()
    }

    /// Names of the machine types in some groups.
    fn names<'n>(&self, groups: impl IntoIterator<Item = &'n usize>) -> Vec<&'a str> {
        let groups = groups.into_iter().filter_map(|group| self.resolution.groups().get(*group));
        groups.flat_map(TypeGroup::names).collect()
    }
}
