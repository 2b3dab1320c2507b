//! Prints YAML for people: values that fit on a line are on one line.

use gardener_extension_worker::api::gotext::yaml;
use serde_json::Value;

use super::convert::sorted;

const WIDTH: usize = 120;
/// Up to this depth, a member has its own lines even if it would fit on one.
const SPREAD: usize = 2;

#[must_use]
pub fn print(value: &Value) -> String {
    let mut text = String::new();
    block(value, 0, &mut text);
    text
}

/// Prints a value on indented lines.
fn block(value: &Value, indent: usize, text: &mut String) {
    match value {
        Value::Object(members) => {
            for (key, member) in sorted(members) {
                let key = scalar_text(key, false);
                text.push_str(&" ".repeat(indent));
                text.push_str(&format!("{key}:"));
                after(member, indent, indent + key.chars().count() + 2, text);
            }
        }
        Value::Array(items) => {
            for item in items {
                text.push_str(&" ".repeat(indent));
                text.push('-');
                let start = text.len();
                after(item, indent, indent + 2, text);
                // The first line of a collection follows the dash.
                if text[start..].starts_with('\n') {
                    text.replace_range(start..start + 1 + indent + 2, " ");
                }
            }
        }
        other => text.push_str(&flow(other)),
    }
}

/// Prints a value after a key or a dash.
fn after(value: &Value, indent: usize, column: usize, text: &mut String) {
    let line = flow(value);
    let is_empty = line == "{}" || line == "[]";
    let spreads = indent < SPREAD * 2 && value.is_object() && !is_empty;
    match value {
        Value::Object(_) | Value::Array(_) if spreads || (column + line.chars().count() > WIDTH && !is_empty) => {
            text.push('\n');
            block(value, indent + 2, text);
        }
        Value::String(lines) if is_literal(lines) => {
            text.push_str(if lines.ends_with('\n') { " |\n" } else { " |-\n" });
            for line in lines.lines() {
                text.push_str(&format!("{}{line}\n", " ".repeat(indent + 2)));
            }
        }
        _ => text.push_str(&format!(" {line}\n")),
    }
}

/// Whether a text can be printed as a literal block.
fn is_literal(text: &str) -> bool {
    let is_plain =
        |line: &str| !line.is_empty() && !line.starts_with(' ') && line.chars().all(|next| (' '..='~').contains(&next));
    text.lines().count() > 1 && !text.ends_with("\n\n") && text.lines().all(is_plain)
}

/// A value on one line.
fn flow(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members = sorted(members)
                .into_iter()
                .map(|(key, member)| format!("{}: {}", scalar_text(key, true), flow(member)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::String(text) => scalar_text(text, true),
        other => other.to_string(),
    }
}

/// A text without quotes if YAML reads it as the same text.
fn scalar_text(text: &str, within: bool) -> String {
    let is_safe = |next: char| next.is_ascii_alphanumeric() || "-_./$~".contains(next) || (!within && next == ' ');
    let quoted = Value::from(text).to_string();
    let is_same = || yaml::documents(&format!("k: {text}")).is_ok_and(|read| read == [serde_json::json!({"k": text})]);
    if !text.is_empty() && text.chars().all(is_safe) && !text.starts_with('-') && is_same() {
        text.to_owned()
    } else {
        quoted
    }
}
