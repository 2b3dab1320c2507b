//! SARIF 2.1.0 for code scanning: rules, and findings at lines of files.

use serde_json::{Value, json};

use super::terminal;

pub(super) struct SarifRule<'a> {
    pub(super) id: &'a str,
    /// Short description.
    pub(super) title: &'a str,
    /// Where to read more.
    pub(super) help: String,
    /// Absolute URL of the help; SARIF allows no relative links here.
    pub(super) url: Option<String>,
}

pub(super) struct SarifResult<'a> {
    /// Index of the rule.
    pub(super) rule: usize,
    /// `error`, `warning` or `note`.
    pub(super) level: &'a str,
    pub(super) message: String,
    pub(super) file: &'a str,
    pub(super) line: Option<usize>,
    /// Path of the member in the document.
    pub(super) path: &'a str,
}

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

/// Encodes a path as a relative reference (RFC 3986).
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
