//! Deliberate differences. Each rule in `deliberate.yaml` defines where it applies and how values may differ. Rules
//! name no cases, so they also cover unknown ones.

use std::collections::BTreeSet;
use std::path::PathBuf;

use base64::Engine as _;
use gardener_extension_worker::api::gotext::yaml;
use serde::Deserialize;
use serde_json::Value;

use super::compare::Difference;
use super::images::is_same_reference;

/// The rules of all tables.
pub struct Rules(Vec<Rule>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    /// Name in `docs/compatibility.md`.
    rule: String,
    /// Path pattern; `*` matches one step, a final `**` any number.
    at: String,
    /// How the values may differ.
    accept: Accept,
    /// Text that upstream's error contains; only for `success`.
    #[serde(default)]
    error_contains: String,
    /// For readers only.
    #[serde(rename = "reason")]
    _reason: String,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Accept {
    /// Ours is a text that a YAML template without quotes turns into the measured value.
    TextReadAsPlainYaml,
    /// Ours has capabilities where the measured image has neither capabilities nor an architecture.
    CapabilitiesAdded,
    /// Ours has `_` where the measured label has a `+`, which no API server accepts.
    PlusReplaced,
    /// Ours keeps the architecture of an image where the measured one has the default.
    ArchitectureKept,
    /// Ours rejects an image with neither name nor id.
    NoImage,
    /// Ours keeps the name of an image where the measured one has neither name nor id.
    NameKept,
    /// Ours keeps the bytes of user data where the measured data contain U+FFFD for invalid UTF-8.
    BytesKept,
    /// Ours keeps the setting that an image's marketplace agreement needs no check.
    AgreementKept,
    /// Upstream fails and ours succeeds.
    Success,
    /// A real API server rejects the object name, but the fake server of the measurement did not.
    NameRefused,
    /// A real API server rejects the change of a field, but the fake server of the measurement did not.
    ChangeRefused,
    /// Ours has one code, that of the cause.
    OneCode,
    /// Ours has additional annotations.
    OwnAnnotationsAdded,
    /// Only ours has a value.
    Added,
    /// Only upstream has a value.
    LeftOut,
}

impl Rules {
    pub fn read(tables: &[PathBuf]) -> Result<Self, String> {
        let mut rules = Vec::new();
        for table in tables {
            let problem = |text: String| format!("{}: {text}", table.display());
            let text = std::fs::read_to_string(table).map_err(|error| problem(error.to_string()))?;
            let documents = yaml::documents(&text).map_err(|error| problem(error.to_string()))?;
            let of_table: Vec<Rule> = serde_json::from_value(documents.into_iter().next().unwrap_or_default())
                .map_err(|error| problem(error.to_string()))?;
            rules.extend(of_table);
        }
        Ok(Self(rules))
    }

    /// The rules that explain differences, and the unexplained differences.
    pub fn apply(&self, differences: Vec<Difference>) -> (BTreeSet<String>, Vec<Difference>) {
        let mut applied = BTreeSet::new();
        let remaining = differences
            .into_iter()
            .filter(|difference| match self.0.iter().find(|rule| rule.explains(difference)) {
                Some(rule) => {
                    applied.insert(rule.rule.clone());
                    false
                }
                None => true,
            })
            .collect();
        (applied, remaining)
    }
}

impl Rule {
    fn explains(&self, difference: &Difference) -> bool {
        let (expected, got) = (&difference.reference, &difference.got);
        is_at(&self.at, &difference.path)
            && match self.accept {
                Accept::TextReadAsPlainYaml => {
                    // Null is the empty text for a member that is declared as text.
                    let is_read = |read: Value| read == *expected || (read.is_null() && expected == "");
                    got.as_str().and_then(plain_yaml).is_some_and(is_read)
                }
                Accept::CapabilitiesAdded => are_capabilities_added(expected, got),
                Accept::PlusReplaced => expected
                    .as_str()
                    .is_some_and(|expected| expected.contains('+') && *got == expected.replace('+', "_")),
                Accept::ArchitectureKept => is_architecture_kept(expected, got),
                Accept::NoImage => expected.is_null() && are_without_image(got),
                Accept::NameKept => is_name_kept(expected, got),
                Accept::BytesKept => are_bytes_kept(expected, got),
                Accept::NameRefused => is_refused(expected, got, "is invalid: metadata.name"),
                Accept::ChangeRefused => is_refused(expected, got, "field is immutable"),
                Accept::OneCode => got.is_string() || got.as_array().is_some_and(|codes| codes.len() == 1),
                Accept::AgreementKept => is_agreement_kept(expected, got),
                Accept::OwnAnnotationsAdded => are_own_annotations_added(difference),
                Accept::Added => expected.is_null(),
                Accept::LeftOut => got.is_null(),
                Accept::Success => {
                    got.is_null() && expected.as_str().is_some_and(|error| error.contains(&self.error_contains))
                }
            }
    }
}

fn is_at(pattern: &str, path: &[String]) -> bool {
    let mut steps = path.iter();
    for expected in pattern.split('/') {
        match (expected, steps.next()) {
            ("**", _) => return true,
            ("*", Some(_)) => {}
            (expected, Some(step)) if expected == step => {}
            _ => return false,
        }
    }
    steps.next().is_none()
}

/// The value that YAML reads from an unquoted text after `key: `.
fn plain_yaml(text: &str) -> Option<Value> {
    let documents = yaml::documents(&format!("key: {text}\n")).ok()?;
    documents.first().map(|document| document["key"].clone())
}

fn is_refused(expected: &Value, got: &Value, why: &str) -> bool {
    expected.is_null() && got["error"].as_str().is_some_and(|error| error.contains(why))
}

fn are_capabilities_added(expected: &Value, got: &Value) -> bool {
    let (Some(expected), Some(got)) = (expected.as_array(), got.as_array()) else { return false };
    let is_bare = |image: &Value| image["architecture"].is_null() && is_empty(&image["capabilities"]);
    !expected.is_empty()
        && expected.iter().all(|expected| is_bare(expected) && got.iter().any(|got| is_same_reference(expected, got)))
        && got.iter().all(|got| expected.iter().any(|expected| is_same_reference(expected, got)))
}

fn is_architecture_kept(expected: &Value, got: &Value) -> bool {
    let (Some(expected), Some(got)) = (expected.as_array(), got.as_array()) else { return false };
    let is_kept = |expected: &Value, got: &Value| {
        let capabilities = |image: &Value| image["capabilities"]["architecture"].clone();
        let is_default = capabilities(expected) == serde_json::json!(["amd64"]);
        expected == got || (is_default && is_same_reference(expected, got) && capabilities(got) != Value::Null)
    };
    expected.len() == got.len() && expected.iter().all(|expected| got.iter().any(|got| is_kept(expected, got)))
}

fn are_without_image(errors: &Value) -> bool {
    let is_one = |error: &Value| error["message"].as_str().is_some_and(|text| text.contains("has no image reference"));
    errors.as_array().is_some_and(|errors| !errors.is_empty() && errors.iter().all(is_one))
}

fn is_name_kept(expected: &Value, got: &Value) -> bool {
    let (Some(expected), Some(got)) = (expected.as_array(), got.as_array()) else { return false };
    // A nameless image gets the architecture that applies to images without one.
    let is_kept = |expected: &Value| {
        let (name, version) = (&expected["name"], &expected["version"]);
        let is_nameless = expected["id"].is_null() && expected["image"].is_null();
        is_nameless
            && got.iter().any(|got| got["name"] == *name && got["version"] == *version && got["image"].is_string())
    };
    expected.len() == got.len() && expected.iter().all(is_kept)
}

fn are_bytes_kept(expected: &Value, got: &Value) -> bool {
    let bytes =
        |value: &Value| value.as_str().and_then(|text| base64::engine::general_purpose::STANDARD.decode(text).ok());
    let (Some(expected), Some(got)) = (bytes(expected), bytes(got)) else { return false };
    // Replace each invalid byte with one character, as Go does.
    let replaced = got
        .utf8_chunks()
        .fold(String::new(), |text, chunk| text + chunk.valid() + &"\u{FFFD}".repeat(chunk.invalid().len()));
    replaced.as_bytes() == expected
}

fn is_agreement_kept(expected: &Value, got: &Value) -> bool {
    let (Some(expected), Some(got)) = (expected.as_array(), got.as_array()) else { return false };
    let without = |image: &Value| {
        let mut image = image.clone();
        image.as_object_mut().and_then(|members| members.remove("skipMarketplaceAgreement"));
        image
    };
    expected.len() == got.len() && expected.iter().zip(got).all(|(expected, got)| *expected == without(got))
}

fn are_own_annotations_added(difference: &Difference) -> bool {
    const OWN: &str = "gardener-extension-worker/";
    let is_own = |name: &String| name.starts_with(OWN);
    difference.reference.is_null()
        && (difference.path.last().is_some_and(is_own)
            || difference.got.as_object().is_some_and(|annotations| annotations.keys().all(is_own)))
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_none_or(serde_json::Map::is_empty)
}
