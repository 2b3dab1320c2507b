//! Findings as JSON.

use serde::Serialize;

use super::{Linted, documentation};
use crate::cli::terminal;
use crate::offer::lint::{Finding, Size};

/// Name and version of the schema. A new member does not change it; another meaning does.
const SCHEMA: &str = "cloudprofile-lint/v1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    profiles: Vec<ProfileDocument<'a>>,
}

#[derive(Serialize)]
struct ProfileDocument<'a> {
    source: &'a str,
    profile: &'a str,
    findings: Vec<FindingDocument<'a>>,
    size: &'a Size,
}

#[derive(Serialize)]
struct FindingDocument<'a> {
    #[serde(flatten)]
    finding: &'a Finding,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    documentation: String,
}

pub(super) fn text(linted: &[Linted]) -> anyhow::Result<String> {
    let profiles = linted.iter().map(|linted| {
        let findings = linted.report.findings.iter().map(|finding| FindingDocument {
            finding,
            line: linted.line(&finding.path),
            documentation: documentation(finding.rule),
        });
        ProfileDocument {
            source: &linted.found.source,
            profile: &linted.report.profile,
            findings: findings.collect(),
            size: &linted.report.size,
        }
    });
    let document = Document { schema: SCHEMA, profiles: profiles.collect() };
    terminal::json(&document)
}
