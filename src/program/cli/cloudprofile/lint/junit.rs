//! Findings as JUnit results: one suite per profile, one failed test per finding, one passing test if there are none.

use super::{Linted, documentation};
use profiles::resolved_profile::lint::Finding;
use runtime::process::workflow_commands::escaped_in_xml;
use wire::api::bounded_text::escaped;

pub(super) fn text(linted: &[Linted]) -> String {
    let suites: String = linted.iter().map(suite).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"cloudprofile lint\">\n{suites}</testsuites>\n"
    )
}

fn suite(linted: &Linted) -> String {
    let findings = &linted.report.findings;
    let source = attribute(&linted.found.source);
    let profile = attribute(&linted.report.profile);
    let cases: String = if findings.is_empty() {
        format!("    <testcase classname=\"{profile}\" name=\"nothing found\"/>\n")
    } else {
        findings.iter().map(|finding| case(linted, finding)).collect()
    };
    let tests = findings.len().max(1);
    let failures = findings.len();
    format!("  <testsuite name=\"{source}\" tests=\"{tests}\" failures=\"{failures}\">\n{cases}  </testsuite>\n")
}

fn case(linted: &Linted, finding: &Finding) -> String {
    let line = linted.line(&finding.path).map(|line| format!(" (line {line})")).unwrap_or_default();
    let profile = attribute(&linted.report.profile);
    let name = attribute(&format!("{} {}", finding.rule, finding.path));
    let kind = finding.severity.word();
    let message = attribute(&format!("{}: {}", finding.subject, finding.reason));
    let body = attribute(&format!("{}{line}\n{}\n{}", finding.path, finding.advice, documentation(finding.rule)));
    format!(
        "    <testcase classname=\"{profile}\" name=\"{name}\">\n      <failure type=\"{kind}\" message=\"{message}\">{body}</failure>\n    </testcase>\n"
    )
}

/// Escapes an XML attribute. XML cannot represent most control characters.
fn attribute(text: &str) -> String {
    let text = escaped(text);
    let text = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\n', "&#10;");
    escaped_in_xml(&text).into_owned()
}
