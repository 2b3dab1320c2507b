//! Findings as JSON.

use serde_json::{Value, json};

use super::{Linted, documentation};
use crate::cli::evidence::Evidence;
use crate::cli::terminal;

/// Schema name and version. Adding a member keeps the version; changing a member's meaning raises it.
const SCHEMA: &str = "cloudprofile-lint/v1";

pub(super) fn text(linted: &[Linted], evidence: &Evidence) -> anyhow::Result<String> {
    let profiles: Vec<Value> = linted.iter().map(profile).collect();
    terminal::json(&json!({"schema": SCHEMA, "evidence": evidence.document(), "profiles": profiles}))
}

fn profile(linted: &Linted) -> Value {
    let findings = linted.report.findings.iter().map(|finding| {
        let mut document = json!(finding);
        document["documentation"] = documentation(finding.rule).into();
        if let Some(line) = linted.line(&finding.path) {
            document["line"] = line.into();
        }
        document
    });
    let source = &linted.found.source;
    let findings = findings.collect::<Vec<_>>();
    json!({"source": source, "profile": linted.report.profile, "findings": findings, "size": linted.report.size})
}
