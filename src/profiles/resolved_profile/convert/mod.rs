//! Converts both halves of a profile from the old format to capabilities and back, and proves that the result is
//! equivalent.
//!
//! * `type_decision`: what only a person can say;
//! * `to_capabilities`, `to_old_format`: the two ways;
//! * `draft`: from the names that drafts of GEP-33 had; `origins`: where these stand in the file.

use std::collections::{HashMap, HashSet};

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::Value;

use super::document::without_status;
use super::equivalence::{Difference, EquivalenceCheck, Lost, compare};
use super::lint::{Finding, Rule, Settings, Severity, lint};
use super::profile::{Profile, ProfileError};
use super::{Resolution, ResolvedProfile};
use crate::cloud_profile::validation::FeatureGates;
use decisions::provider::Providers;

mod draft;
mod origins;
mod to_capabilities;
mod to_old_format;
mod type_decision;

pub use super::suffix::{DecisionError, SuffixMeaning};
pub use draft::{convert_draft, draft_member};
pub use type_decision::TypeDecision;

/// The target format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Capabilities (GEP-33).
    Capabilities,
    /// The format before capabilities.
    Old,
}

/// Facts that only the operator knows, because a profile does not have them.
#[derive(Clone, Debug, Default)]
pub struct Knowledge {
    /// The meaning of version suffixes, in addition to the commonly used ones.
    pub suffixes: Vec<SuffixMeaning>,
    /// Capabilities of machine types.
    pub machine_types: Vec<TypeDecision>,
}

/// A converted profile.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Conversion {
    /// The converted profile.
    pub profile: Value,
    /// Decisions that the profile leaves open.
    pub undecided: Vec<Undecided>,
    /// Differences that the user's decisions or the new format's extra information cause.
    pub intended: Vec<Difference>,
    /// Images that machine types lose because the user decided that they can't run them.
    pub given_up: Vec<Lost>,
    /// The comparison that proves that everything else is equal.
    pub proof: EquivalenceCheck,
}

/// A decision that the user has to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Undecided {
    /// The subject: an image, a version or machine types.
    pub subject: String,
    /// The open question, and the assumption until it is answered.
    pub open: String,
    /// How to answer it.
    pub advice: String,
}

/// Why a profile can't be converted.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// It can't be read.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// It is written with the names of a draft.
    #[error("{0}: only drafts of GEP-33 have this member; convert the profile with --from draft")]
    Draft(String),
    /// A draft says two things about one image.
    #[error("{path}: {reason}")]
    Contradiction {
        /// The member.
        path: String,
        /// What contradicts what.
        reason: String,
    },
    /// A decision is about a capability that the converted profile does not define.
    #[error("--decide: the profile would not define {0:?}; define it with --suffix")]
    UnknownCapability(String),
    /// The result would not be equivalent, so none is returned.
    #[error("the result would not be equivalent; nothing is printed")]
    NotEquivalent(Box<EquivalenceCheck>),
    /// The result has errors that the profile does not have, so none is returned.
    #[error("the result would be refused; nothing is printed: {}", texts(.0))]
    Refused(Vec<Finding>),
}

fn texts(findings: &[Finding]) -> String {
    let text = |finding: &Finding| format!("{} {}: {}", finding.path, finding.rule, finding.reason);
    findings.iter().take(NAMED).map(text).collect::<Vec<_>>().join(" ")
}

/// Converts the document of a CloudProfile.
///
/// # Errors
/// If the document can't be read or has the names of a draft, or if machine types would lose an image and `knowledge`
/// does not state that they can't run it.
pub fn convert(
    document: &Value,
    format: Format,
    knowledge: &Knowledge,
    providers: Providers,
) -> Result<Conversion, ConvertError> {
    match draft_member(document) {
        Some(path) => Err(ConvertError::Draft(path)),
        None => convert_today(document, format, knowledge, providers),
    }
}

/// Converts a document that has today's names.
fn convert_today(
    document: &Value,
    format: Format,
    knowledge: &Knowledge,
    providers: Providers,
) -> Result<Conversion, ConvertError> {
    let before = Before::read(document, providers)?;
    match format {
        Format::Capabilities => to_capabilities::convert(&before, knowledge, providers),
        Format::Old => to_old_format::convert(&before, providers),
    }
}

/// A time before every expiration, because expired versions are converted like all others.
const SETTINGS: Settings = Settings {
    now: Timestamp::UNIX_EPOCH,
    soon: SignedDuration::ZERO,
    gates: FeatureGates { capabilities: true, lifecycle: true },
};
/// Maximum number of errors in a message.
const NAMED: usize = 5;

/// The profile to convert.
struct Before {
    profile: Profile,
    resolved_profile: ResolvedProfile,
}

impl Before {
    fn read(document: &Value, providers: Providers) -> Result<Self, ProfileError> {
        let profile = Profile::read_completed(without_status(document), providers)?;
        // Any time will do, because the choice of images does not depend on it.
        let resolved_profile = profile.resolved_profile(Timestamp::UNIX_EPOCH);
        Ok(Self { profile, resolved_profile })
    }

    /// Compares the result with the original profile.
    fn check(&self, converted: &Value, providers: Providers) -> Result<EquivalenceCheck, ProfileError> {
        let after = Profile::read_completed(converted.clone(), providers)?.resolved_profile(Timestamp::UNIX_EPOCH);
        Ok(compare(&Resolution::of(&self.resolved_profile), &Resolution::of(&after)))
    }

    /// Checks that `lint` finds no new errors in the result.
    fn check_refusals(&self, converted: &Value, providers: Providers) -> Result<(), ConvertError> {
        let lint = |document: &Value| lint(document, SETTINGS, providers).map(|report| report.findings);
        let known = lint(&self.profile.document)?;
        let found = lint(converted)?;
        let before = errors_by_rule(&known);
        let after = errors_by_rule(&found);
        let known = KnownFindings::of(&known);
        let is_new = |error: &&Finding| {
            error.severity == Severity::Error && after.get(&error.rule) > before.get(&error.rule) && !known.has(error)
        };
        let new: Vec<Finding> = found.iter().filter(is_new).cloned().collect();
        if new.is_empty() { Ok(()) } else { Err(ConvertError::Refused(new)) }
    }
}

/// The number of errors of each rule.
fn errors_by_rule(findings: &[Finding]) -> HashMap<Rule, usize> {
    let mut numbers = HashMap::new();
    for finding in findings {
        if finding.severity == Severity::Error {
            *numbers.entry(finding.rule).or_default() += 1;
        }
    }
    numbers
}

/// The findings of the profile before the conversion.
#[derive(Default)]
struct KnownFindings<'a> {
    /// Subjects of errors.
    subjects: HashSet<&'a str>,
    /// Rules and reasons of errors.
    reasons: HashSet<(Rule, &'a str)>,
    /// Rules and subjects of all others.
    warnings: HashSet<(Rule, &'a str)>,
}

impl<'a> KnownFindings<'a> {
    fn of(findings: &'a [Finding]) -> Self {
        let mut known = Self::default();
        for finding in findings {
            if finding.severity == Severity::Error {
                known.subjects.insert(&finding.subject);
                known.reasons.insert((finding.rule, &finding.reason));
            } else {
                known.warnings.insert((finding.rule, &finding.subject));
            }
        }
        known
    }

    /// Whether an error of the result is the same as a finding of the profile.
    fn has(&self, error: &Finding) -> bool {
        let Finding { rule, subject, reason, .. } = error;
        // A problem with a version may be reported by another rule in the other format.
        let is_error = (!subject.is_empty() && self.subjects.contains(subject.as_str()))
            || self.reasons.contains(&(*rule, reason.as_str()));
        if is_error || error.refusal.is_some() {
            // Errors that Gardener would reject never match a warning.
            return is_error;
        }
        // If some machine type lacks a flavor, that is a warning. It becomes an error if an old-format version has only
        // that flavor. Its name may be that of the version with a suffix.
        let versions = subject.match_indices('-').filter_map(|(end, _)| subject.get(..end)).chain([subject.as_str()]);
        versions.filter(|version| !version.is_empty()).any(|version| self.warnings.contains(&(*rule, version)))
    }
}
