//! Label selectors, as kubectl's `-l` has them: the API server applies them to lists, and this module to files.

use std::str::FromStr;

use serde_json::Value;

/// A label selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct Selector {
    /// As typed.
    text: String,
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

impl FromStr for Selector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = separate(text)?;
        let requirements = parts.iter().map(|part| requirement(part.trim()).ok_or_else(|| wrong(part)));
        Ok(Self { text: text.to_owned(), requirements: requirements.collect::<Result<_, _>>()? })
    }
}

fn wrong(part: &str) -> String {
    format!("{part:?} selects no labels; write KEY=VALUE, KEY!=VALUE, KEY, !KEY, or KEY in (A,B)")
}

/// The parts between commas, except for commas within parentheses.
fn separate(text: &str) -> Result<Vec<String>, String> {
    let mut parts = vec![String::new()];
    let mut is_inside = false;
    for character in text.chars() {
        match character {
            '(' | ')' if is_inside == (character == '(') => return Err(wrong(text)),
            '(' | ')' => is_inside = !is_inside,
            _ => {}
        }
        if character == ',' && !is_inside {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(character);
        }
    }
    if is_inside { Err(wrong(text)) } else { Ok(parts) }
}

fn requirement(text: &str) -> Option<Requirement> {
    if let Some((left, values)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        let values = values.split(',').map(|value| value.trim().to_owned()).collect();
        let (key, operator) = left.trim().rsplit_once(char::is_whitespace)?;
        return match operator {
            "in" => Some(Requirement::In(name(key)?, values)),
            "notin" => Some(Requirement::NotIn(name(key)?, values)),
            _ => None,
        };
    }
    if let Some((key, value)) = text.split_once("!=") {
        return Some(Requirement::NotIn(name(key)?, vec![value.trim().to_owned()]));
    }
    if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return Some(Requirement::In(name(key)?, vec![value.trim().to_owned()]));
    }
    match text.strip_prefix('!') {
        Some(key) => Some(Requirement::Absent(name(key)?)),
        None => Some(Requirement::Exists(name(text)?)),
    }
}

/// The key of a label, which has no blanks.
fn name(text: &str) -> Option<String> {
    let text = text.trim();
    let is_key = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/".contains(&byte);
    (!text.is_empty() && text.bytes().all(is_key)).then(|| text.to_owned())
}

impl Selector {
    /// The selector in a request.
    pub(in crate::cli) fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether an object has the labels.
    pub(in crate::cli) fn selects(&self, object: &Value) -> bool {
        self.selects_by(|key| object["metadata"]["labels"][key].as_str())
    }

    /// Whether labels, of which `value` returns those of the object, are selected.
    pub(in crate::cli) fn selects_by<'a>(&self, value: impl Fn(&str) -> Option<&'a str>) -> bool {
        let has =
            |key: &str, values: &[String]| value(key).is_some_and(|value| values.iter().any(|other| other == value));
        self.requirements.iter().all(|requirement| match requirement {
            Requirement::In(key, values) => has(key, values),
            Requirement::NotIn(key, values) => !has(key, values),
            Requirement::Exists(key) => value(key).is_some(),
            Requirement::Absent(key) => value(key).is_none(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selects_as_the_api_server_does() {
        let object = json!({"metadata": {"labels": {"a": "1", "b.example/c": ""}}});
        for (text, selects) in [
            ("a=1", true),
            ("a==1,b.example/c", true),
            ("a=2", false),
            ("a!=2", true),
            ("z!=2", true),
            ("a in (1, 2)", true),
            ("a notin (1,2),a", false),
            ("z notin (1)", true),
            ("!z", true),
            ("!a", false),
            ("b.example/c=", true),
        ] {
            let selector: Selector = text.parse().unwrap();
            assert_eq!(selector.selects(&object), selects, "{text}");
        }
        for text in ["", "a b", "a in (1", "a within (1)", "a=1,", ")", "=1"] {
            assert!(text.parse::<Selector>().is_err(), "{text}");
        }
    }
}
