//! Findings in SARIF 2.1.0, which code scanning reads.

use serde_json::{Value, json};

use super::{Linted, documentation};
use crate::cli::terminal;
use crate::offer::lint::{Finding, Rule};

/// `docs_url` is where `docs/cloudprofiles.md` is published: links in SARIF are absolute or absent.
pub(super) fn text(linted: &[Linted], docs_url: Option<&str>) -> anyhow::Result<String> {
    let rules = Rule::ALL.iter().map(|rule| {
        let help = format!("{} explains the rule with an example.", documentation(*rule));
        let mut descriptor =
            json!({"id": rule.id(), "shortDescription": {"text": rule.title()}, "help": {"text": help}});
        if let Some(url) = docs_url {
            descriptor["helpUri"] = format!("{}#{rule}", url.trim_end_matches('#')).into();
        }
        descriptor
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
