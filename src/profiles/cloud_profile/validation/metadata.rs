//! Validates names, labels and selectors like Kubernetes does for all objects.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use wire::api::gotext::field::{FieldErrors, FieldPath};
use wire::capabilities::not_a_name;

/// Maximum length of the name of an object and of the prefix of a label, in bytes.
const LONGEST_NAME: usize = 253;

pub(super) fn validate_metadata(metadata: &ObjectMeta, errors: &mut FieldErrors) {
    let path = FieldPath::new("metadata");
    let generated = metadata.generate_name.as_deref().unwrap_or_default();
    match metadata.name.as_deref().unwrap_or_default() {
        "" if generated.is_empty() => errors.required(path.child("name"), "name or generateName is required"),
        // The API server appends letters and digits.
        "" if not_a_subdomain(generated.trim_end_matches('-')).is_some() => {
            errors.invalid(path.child("generateName"), generated, SUBDOMAIN);
        }
        "" => {}
        name => {
            if let Some(problem) = not_a_subdomain(name) {
                errors.invalid(path.child("name"), name, problem);
            }
        }
    }
    if let Some(labels) = &metadata.labels {
        validate_labels(labels, path.child("labels"), errors);
    }
    for key in metadata.annotations.iter().flat_map(BTreeMap::keys) {
        validate_key(&key.to_lowercase(), path.child("annotations"), errors);
    }
}

/// Validates labels; paths refer to the field instead of the label, as in Kubernetes.
pub(super) fn validate_labels(labels: &BTreeMap<String, String>, path: FieldPath<'_>, errors: &mut FieldErrors) {
    for (key, value) in labels {
        validate_key(key, path, errors);
        validate_value(value, path, errors);
    }
}

pub(super) fn validate_selector(selector: &Value, path: FieldPath<'_>, errors: &mut FieldErrors) {
    validate_labels(&texts_by_name(selector.get("matchLabels")), path.child("matchLabels"), errors);
    let path = path.child("matchExpressions");
    let expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
    for (index, expression) in expressions.enumerate() {
        let path = path.index(index);
        let text = |member: &str| expression.get(member).and_then(Value::as_str).unwrap_or_default();
        let values = expression.get("values").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        match text("operator") {
            "In" | "NotIn" if values.is_empty() => {
                errors.required(path.child("values"), "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.forbidden(path.child("values"), detail);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => errors.invalid(path.child("operator"), other, "not a valid selector operator"),
        }
        validate_key(text("key"), path.child("key"), errors);
        for (index, value) in values.iter().filter_map(Value::as_str).enumerate() {
            validate_value(value, path.child("values").index(index), errors);
        }
    }
}

/// Decodes labels; values other than text become empty.
pub(super) fn texts_by_name(labels: Option<&Value>) -> BTreeMap<String, String> {
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    labels.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
}

/// Requires a qualified name, optionally with a domain and slash as prefix.
fn validate_key(key: &str, path: FieldPath<'_>, errors: &mut FieldErrors) {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    if let Some(problem) = prefix.and_then(not_a_subdomain) {
        errors.invalid(path, key, format!("prefix part {problem}"));
    }
    if let Some(problem) = not_a_name(name) {
        errors.invalid(path, key, problem);
    }
}

fn validate_value(value: &str, path: FieldPath<'_>, errors: &mut FieldErrors) {
    if !value.is_empty()
        && let Some(problem) = not_a_name(value)
    {
        errors.invalid(path, value, format!("a valid label value is empty or a name: {problem}"));
    }
}

const SUBDOMAIN: &str = "must consist of lower case alphanumeric characters, '-' or '.', and each part between dots must \
                         start and end with an alphanumeric character";

/// The reason why a text is not a lower-case domain name such as `example.com`; `None` if it is valid.
fn not_a_subdomain(text: &str) -> Option<String> {
    if text.len() > LONGEST_NAME {
        return Some(format!("must be no more than {LONGEST_NAME} bytes"));
    }
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        bytes.first().is_some_and(|byte| is_plain(*byte))
            && bytes.last().is_some_and(|byte| is_plain(*byte))
            && bytes.iter().all(|byte| is_plain(*byte) || *byte == b'-')
    };
    (!text.split('.').all(is_label)).then(|| SUBDOMAIN.to_owned())
}
