//! SARIF 2.1.0, which code scanning reads: rules, and findings at lines of files.

use serde_json::{Value, json};

use super::terminal;

/// A rule.
pub(super) struct SarifRule<'a> {
    pub(super) id: &'a str,
    /// What it is about, in a few words.
    pub(super) title: &'a str,
    /// Where it is explained.
    pub(super) help: String,
    /// The address of that; links in SARIF are absolute or absent.
    pub(super) url: Option<String>,
}

/// A finding.
pub(super) struct SarifResult<'a> {
    /// Position of the rule.
    pub(super) rule: usize,
    /// `error`, `warning` or `note`.
    pub(super) level: &'a str,
    pub(super) message: String,
    pub(super) file: &'a str,
    pub(super) line: Option<usize>,
    /// The member of the document.
    pub(super) path: &'a str,
}

/// The document.
pub(super) fn text(rules: &[SarifRule<'_>], results: &[SarifResult<'_>]) -> anyhow::Result<String> {
    let descriptors = rules.iter().map(|rule| {
        let mut descriptor =
            json!({"id": rule.id, "shortDescription": {"text": rule.title}, "help": {"text": rule.help}});
        if let Some(url) = &rule.url {
            descriptor["helpUri"] = url.as_str().into();
        }
        descriptor
    });
    let document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": env!("CARGO_PKG_NAME"),
                "version": env!("CARGO_PKG_VERSION"),
                "rules": descriptors.collect::<Vec<_>>(),
            }},
            "results": results.iter().map(|result| of_result(rules, result)).collect::<Vec<_>>(),
        }],
    });
    terminal::json(&document)
}

fn of_result(rules: &[SarifRule<'_>], result: &SarifResult<'_>) -> Value {
    let mut physical = json!({"artifactLocation": {"uri": uri(result.file)}});
    if let Some(line) = result.line {
        physical["region"] = json!({"startLine": line});
    }
    json!({
        "ruleId": rules.get(result.rule).map(|rule| rule.id),
        "ruleIndex": result.rule,
        "level": result.level,
        "message": {"text": result.message},
        "locations": [{
            "physicalLocation": physical,
            "logicalLocations": [{"fullyQualifiedName": result.path, "kind": "member"}],
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
