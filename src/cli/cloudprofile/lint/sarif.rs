//! Findings in SARIF 2.1.0, which code scanning reads.

use serde_json::{Value, json};

use super::{Linted, documentation};
use crate::cli::terminal;
use crate::offer::lint::{Finding, Rule};

pub(super) fn text(linted: &[Linted]) -> anyhow::Result<String> {
    let rules = Rule::ALL.iter().map(|rule| {
        json!({
            "id": rule.id(),
            "shortDescription": {"text": rule.title()},
            "helpUri": documentation(*rule),
        })
    });
    let rules: Vec<Value> = rules.collect();
    let results = linted.iter().flat_map(|linted| linted.report.findings.iter().map(|finding| result(linted, finding)));
    let document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": env!("CARGO_PKG_NAME"),
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "results": results.collect::<Vec<_>>(),
        }],
    });
    terminal::json(&document)
}

fn result(linted: &Linted, finding: &Finding) -> Value {
    let subject = if finding.subject.is_empty() { String::new() } else { format!("{}: ", finding.subject) };
    let mut physical = json!({"artifactLocation": {"uri": uri(&linted.found.source)}});
    if let Some(line) = linted.line(&finding.path) {
        physical["region"] = json!({"startLine": line});
    }
    json!({
        "ruleId": finding.rule.id(),
        "ruleIndex": finding.rule as usize,
        "level": finding.severity.word(),
        "message": {"text": format!("{subject}{} {}", finding.reason, finding.advice)},
        "locations": [{
            "physicalLocation": physical,
            "logicalLocations": [{"fullyQualifiedName": finding.path, "kind": "member"}],
        }],
    })
}

/// A path as a relative reference (RFC 3986).
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    #[test]
    fn paths_become_references() {
        assert_eq!(super::uri("profiles/a b#1.yaml"), "profiles/a%20b%231.yaml");
    }
}
