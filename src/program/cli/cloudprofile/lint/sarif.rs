//! Findings as SARIF for code scanning.

use super::{Linted, documentation};
use crate::cli::documentation::url;
use crate::cli::sarif::{self, SarifResult, SarifRule};
use profiles::resolved_profile::lint::{Finding, Rule};

/// `docs_url` is the published address of `docs/cloudprofiles.md`, unless that is set for the program.
pub(super) fn text(linted: &[Linted], docs_url: Option<&str>) -> anyhow::Result<String> {
    let page = docs_url.map(str::to_owned).or_else(|| url("cloudprofiles"));
    let rule = |rule: &Rule| SarifRule {
        id: rule.id(),
        title: rule.title(),
        help: format!("{} explains the rule with an example.", documentation(*rule)),
        url: page.as_deref().map(|url| format!("{}#{rule}", url.trim_end_matches('#'))),
    };
    let rules: Vec<SarifRule<'_>> = Rule::ALL.iter().map(rule).collect();
    let results = linted.iter().flat_map(|linted| linted.report.findings.iter().map(|finding| result(linted, finding)));
    sarif::text(&rules, &results.collect::<Vec<_>>())
}

fn result<'a>(linted: &'a Linted, finding: &'a Finding) -> SarifResult<'a> {
    let subject = if finding.subject.is_empty() { String::new() } else { format!("{}: ", finding.subject) };
    SarifResult {
        rule: finding.rule as usize,
        level: finding.severity.word(),
        message: format!("{subject}{} {}", finding.reason, finding.advice),
        file: &linted.found.source,
        line: linted.line(&finding.path),
        path: &finding.path,
    }
}
