//! JSON in the format of Go, and decoding with the path of errors.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::{self, Write as _};

use serde::Deserialize;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

/// Formats a value like the Kubernetes API server does for a stored custom resource.
///
/// The format is compact, with object members sorted by bytes. `<`, `>`, `&` and the two Unicode line separators are
/// escaped. Numbers have Go's format: `2.0` becomes `2`, `1e21` becomes `1e+21`, and integers beyond 64 signed bits
/// lose precision as doubles. The format must match exactly, because the raw bytes of a provider config are hashed
/// (docs/contract.md#worker).
pub fn to_go_json(value: &Value) -> String {
    let mut text = String::new();
    write_value(&mut text, value);
    text
}

fn write_value(text: &mut String, value: &Value) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(true) => text.push_str("true"),
        Value::Bool(false) => text.push_str("false"),
        Value::Number(number) => text.push_str(&number_text(number)),
        Value::String(string) => write_string(text, string),
        Value::Array(items) => {
            text.push('[');
            write_separated(text, items, write_value);
            text.push(']');
        }
        Value::Object(members) => {
            // Whether serde_json sorts members depends on a feature that any crate may enable.
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by(|left, right| left.0.cmp(right.0));
            text.push('{');
            write_separated(text, members, |text, (name, member)| {
                write_string(text, name);
                text.push(':');
                write_value(text, member);
            });
            text.push('}');
        }
    }
}

fn write_separated<T>(text: &mut String, items: impl IntoIterator<Item = T>, write: impl Fn(&mut String, T)) {
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        write(text, item);
    }
}

fn write_string(text: &mut String, string: &str) {
    text.push('"');
    for character in string.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                // Writing to a string can't fail.
                let _ = write!(text, "\\u{:04x}", u32::from(character));
            }
            other => text.push(other),
        }
    }
    text.push('"');
}

fn number_text(number: &Number) -> String {
    match number.as_i64() {
        Some(integer) => integer.to_string(),
        None => float_text(number.as_f64().unwrap_or_default()),
    }
}

/// Formats a double like Go's `encoding/json`: shortest digits, with an exponent below 1e-6 and from 1e21.
pub(super) fn float_text(number: f64) -> String {
    let magnitude = number.abs();
    if magnitude == 0.0 {
        // Go prints `-0` once and parses it back as the integer 0.
        return "0".to_owned();
    }
    if (1e-6..1e21).contains(&magnitude) {
        return format!("{number}");
    }
    let text = format!("{number:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
        _ => text,
    }
}

/// The number that results from printing a double in Go and parsing it again: `2.0` becomes the integer 2.
pub(super) fn number_as_printed(number: f64) -> Option<Number> {
    match float_text(number).parse::<i64>() {
        Ok(integer) => Some(integer.into()),
        Err(_) => Number::from_f64(number),
    }
}

/// A document that does not have the expected format.
///
/// The message contains names and types, never values, because a document may contain secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}{}{message}", if .path.is_empty() { "" } else { ": " })]
pub struct DecodeError {
    /// Path of the error, for example `machineImages[0].versions[1].urn`; empty for the document itself.
    pub path: String,
    /// Description of the error.
    pub message: String,
}

impl DecodeError {
    /// Prepends the name of the member that contains the decoded document.
    #[must_use]
    pub fn within(self, member: &str) -> Self {
        let separator = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        Self { path: format!("{member}{separator}{}", self.path), ..self }
    }
}

/// Decodes JSON. A duplicate member is an error only if `T` is a struct with that member.
///
/// # Errors
/// If a member is invalid, with the path of the first one.
pub fn decode_lenient<'a, T: Deserialize<'a>>(raw: &'a str) -> Result<T, DecodeError> {
    serde_json::from_str(raw)
        .map_err(|error| DecodeError { path: path_of(&error, raw), message: without_values(&error) })
}

/// Decodes a JSON value.
///
/// # Errors
/// If a member is invalid, with the path of the first one.
pub fn decode_value<T: DeserializeOwned>(document: &Value) -> Result<T, DecodeError> {
    // Only decoding from text reports positions.
    T::deserialize(document).or_else(|_| decode_lenient(&document.to_string()))
}

/// The path of an error: that of the last value read before its position. It is computed only after an error.
fn path_of(error: &serde_json::Error, raw: &str) -> String {
    let line_start = match error.line().checked_sub(2) {
        Some(before) => raw.match_indices('\n').nth(before).map_or(0, |(position, _)| position + 1),
        None => 0,
    };
    let mut end = line_start + error.column();
    // serde_json reports scalars after reading them, but objects and lists before their bracket.
    let opens = match error.to_string() {
        text if text.starts_with("invalid type: map") => Some(b'{'),
        text if text.starts_with("invalid type: sequence") => Some(b'['),
        _ => None,
    };
    if opens.is_some() && raw.as_bytes().get(end) == opens.as_ref() {
        end += 1;
    }
    let mut walk = Walk { allows_duplicates: true, ..Walk::default() };
    let mut deserializer = serde_json::Deserializer::from_str(raw.get(..end).unwrap_or(raw));
    // The text is truncated at the error, so the walk stops there.
    match (Members { walk: &mut walk }).deserialize(&mut deserializer) {
        Ok(()) => String::new(),
        Err(_) => walk.path(),
    }
}

/// Serde helper for `deserialize_with`: JSON null decodes to the default, as in Go.
///
/// Combine it with `#[serde(default)]` for absent members.
///
/// # Errors
/// Those of `T`.
pub fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Rewrites a serde message in plain words and without values: `invalid type: string "secret", expected i32` becomes `a
/// whole number is expected, not text`.
fn without_values(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    let text = text.strip_suffix(&position).unwrap_or(&text);
    // The value may contain anything, including the word "expected". The expectation is our own text and comes last.
    let expected = text.rsplit_once(", expected ").map_or("something else", |(_, expected)| expected);
    if text.starts_with("invalid value: integer ") {
        return "the number is out of range".to_owned();
    }
    if let Some(found) = ["invalid type: ", "invalid value: "].into_iter().find_map(|start| text.strip_prefix(start)) {
        let found = found.split([' ', ',']).next().unwrap_or_default();
        return format!("{} is expected, not {}", required_words(expected), words_of_found(found));
    }
    if text.starts_with("unknown variant ") {
        return format!("unknown value, expected {expected}");
    }
    match text {
        // This message occurs only for texts with a few supported values.
        "expected value" => "text is expected".to_owned(),
        "invalid duration" => "a duration such as 1h30m is expected".to_owned(),
        text if text.starts_with("Invalid symbol ") || text.starts_with("Invalid last symbol ") => {
            "not base64".to_owned()
        }
        text => text.to_owned(),
    }
}

fn required_words(expected: &str) -> &str {
    match expected {
        "i32" | "i64" | "u16" | "u32" | "u64" | "usize" => "a whole number",
        "a boolean" => "true or false",
        "a string" => "text",
        "a sequence" => "a list",
        "a map" => "an object",
        "IntOrString" => "a number or text",
        // A type of another library, by its name.
        other if other.starts_with("struct ") || other.starts_with(char::is_uppercase) => "an object",
        other => other,
    }
}

fn words_of_found(found: &str) -> &str {
    match found {
        "string" => "text",
        "integer" | "number" => "a number",
        "floating" => "a fraction",
        "boolean" => "true or false",
        "map" => "an object",
        "sequence" => "a list",
        "null" | "unit" => "nothing",
        other => other,
    }
}

/// Rejects duplicate members in all objects of a document, as Go does for provider configs
/// (docs/contract.md#provider-documents). Names are case-sensitive.
///
/// # Errors
/// With the path of the first duplicate, or of the first syntax error.
pub fn refuse_duplicates(raw: &str) -> Result<(), DecodeError> {
    let mut walk = Walk::default();
    let mut deserializer = serde_json::Deserializer::from_str(raw);
    let walked = Members { walk: &mut walk }.deserialize(&mut deserializer).and_then(|()| deserializer.end());
    walked.map_err(|error| DecodeError { path: walk.path(), message: without_values(&error) })
}

/// Position of a walk through a document. Objects share one list of names, so that they need no allocation of their
/// own.
#[derive(Default)]
struct Walk<'de> {
    /// Names of members visited in all open objects, innermost last.
    names: Vec<Cow<'de, str>>,
    /// Steps from the outermost to the innermost value. The last step in an object or list stays until the next begins.
    steps: Vec<Step>,
    /// Whether duplicate members are allowed.
    allows_duplicates: bool,
}

enum Step {
    /// Index into the names.
    Member(usize),
    Item(usize),
}

impl Walk<'_> {
    fn path(&self) -> String {
        let mut path = String::new();
        for step in &self.steps {
            match step {
                Step::Member(position) => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(self.names.get(*position).map_or("", |name| name));
                }
                Step::Item(index) => {
                    let _ = write!(path, "[{index}]");
                }
            }
        }
        path
    }
}

/// Up to this number of members, duplicates are found by comparing all names; beyond, with a hash set.
const FEW_MEMBERS: usize = 32;

/// Visits a value and discards it. On failure, the walk keeps the position of the error.
struct Members<'walk, 'de> {
    walk: &'walk mut Walk<'de>,
}

impl<'de> DeserializeSeed<'de> for Members<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// Visits an item of a list at a depth.
struct Item<'walk, 'de> {
    walk: &'walk mut Walk<'de>,
    depth: usize,
    index: usize,
}

impl<'de> DeserializeSeed<'de> for Item<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.walk.steps.truncate(self.depth);
        self.walk.steps.push(Step::Item(self.index));
        deserializer.deserialize_any(Members { walk: self.walk })
    }
}

impl<'de> Visitor<'de> for Members<'_, 'de> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<(), A::Error> {
        let Self { walk } = self;
        let depth = walk.steps.len();
        for index in 0.. {
            if sequence.next_element_seed(Item { walk, depth, index })?.is_none() {
                break;
            }
        }
        walk.steps.truncate(depth);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { walk } = self;
        let first = walk.names.len();
        let depth = walk.steps.len();
        let mut many: HashSet<Cow<'de, str>> = HashSet::new();
        while let Some(Name(name)) = map.next_key()? {
            let met = walk.names.get(first..).unwrap_or_default();
            let is_duplicate = if walk.allows_duplicates {
                false
            } else if met.len() < FEW_MEMBERS {
                met.contains(&name)
            } else {
                if many.is_empty() {
                    many.extend(met.iter().cloned());
                }
                !many.insert(name.clone())
            };
            walk.steps.truncate(depth);
            walk.steps.push(Step::Member(walk.names.len()));
            walk.names.push(name);
            if is_duplicate {
                return Err(A::Error::custom("duplicate field"));
            }
            map.next_value_seed(Members { walk })?;
        }
        walk.steps.truncate(depth);
        walk.names.truncate(first);
        Ok(())
    }
}

/// The name of a member, borrowed if possible.
struct Name<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;

        impl<'de> Visitor<'de> for NameVisitor {
            type Value = Name<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(name)))
            }

            fn visit_str<E>(self, name: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }

        deserializer.deserialize_str(NameVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use serde_json::value::RawValue;
    use std::collections::BTreeMap;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    struct Profile {
        #[serde(default, deserialize_with = "null_as_default")]
        machine_images: Vec<Image>,
        #[serde(default)]
        labels: BTreeMap<String, String>,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Image {
        name: String,
        #[serde(default)]
        count: i32,
    }

    fn decode_strict<T: DeserializeOwned>(raw: &str) -> Result<T, DecodeError> {
        refuse_duplicates(raw)?;
        decode_lenient(raw)
    }

    fn refusal(raw: &str) -> String {
        decode_strict::<Profile>(raw).unwrap_err().to_string()
    }

    #[test]
    fn names_the_path_of_an_unknown_field() {
        let message = refusal(r#"{"machineImages":[{"name":"a"},{"name":"b","urn":"x"}]}"#);
        assert!(message.starts_with("machineImages[1].urn: unknown field `urn`"), "{message}");
    }

    #[test]
    fn refuses_what_appears_twice_also_in_maps() {
        assert_eq!(refusal(r#"{"labels":{"a":"1","a":"1"}}"#), "labels.a: duplicate field");
        assert_eq!(refusal(r#"{"machineImages":[{"name":"a","name":"a"}]}"#), "machineImages[0].name: duplicate field");
        let lenient: Profile = decode_lenient(r#"{"labels":{"a":"1","a":"2"}}"#).unwrap();
        assert_eq!(lenient.labels["a"], "2");
    }

    #[test]
    fn the_same_name_in_different_objects_is_no_duplicate() {
        let labels = |names: &[String]| {
            let members: Vec<String> =
                names.iter().map(|name| format!(r#""{name}":{{"a":1,"b":[{{"a":2}}]}}"#)).collect();
            refuse_duplicates(&format!(r#"{{"a":{{{}}},"b":{{"a":0}}}}"#, members.join(","))).err()
        };
        // Also with more members than are compared one by one.
        let mut names: Vec<String> = (0..100).map(|index| format!("name-{index}")).collect();
        assert_eq!(labels(&names[..5]), None);
        assert_eq!(labels(&names), None);
        names.push("n\\u0061me-7".to_owned());
        assert_eq!(labels(&names).unwrap().to_string(), "a.name-7: duplicate field");
    }

    #[test]
    fn never_reports_values() {
        for raw in [
            r#"{"machineImages":[{"name":"a","count":"hunter2, expected i32"}]}"#,
            r#"{"machineImages":"hunter2"}"#,
            r#"{"labels":{"a":"hunter2"},"machineImages":[{"name":"a","count":12345678901234}]}"#,
            r#"{"machineImages":[{"name":true}]}"#,
            "\"hunter2\"",
        ] {
            let message = refusal(raw);
            assert!(!message.contains("hunter2"), "{message}");
            assert!(!message.contains("12345678901234"), "{message}");
        }
        assert_eq!(
            refusal(r#"{"machineImages":[{"name":"a","count":"hunter2"}]}"#),
            "machineImages[0].count: a whole number is expected, not text"
        );
    }

    #[test]
    fn null_is_the_zero_value() {
        assert_eq!(decode_strict::<Profile>(r#"{"machineImages":null}"#), Ok(Profile::default()));
    }

    #[test]
    fn refuses_text_behind_the_document_and_broken_text() {
        assert_eq!(refusal("{} {}"), "trailing characters");
        assert!(decode_lenient::<Profile>("{} x").is_err());
        assert!(decode_strict::<Profile>("").is_err());
        assert!(decode_strict::<Value>(&"[".repeat(100_000)).is_err());
    }

    #[test]
    fn keeps_raw_bytes() {
        #[derive(Deserialize)]
        struct Pool {
            config: Box<RawValue>,
        }
        let pool: Pool = decode_strict(r#"{"config":{"b": 1,  "a":"\u0026"}}"#).unwrap();
        assert_eq!(pool.config.get(), r#"{"b": 1,  "a":"\u0026"}"#);
    }

    /// Calls `check` with each place of a document, and with the document in which the value there is replaced.
    fn with_each_location(document: &Value, wrong: &Value, check: &mut impl FnMut(&str, &Value)) {
        fn visit(
            document: &mut Value,
            location: &str,
            path: &str,
            wrong: &Value,
            check: &mut impl FnMut(&str, &Value),
        ) {
            let children: Vec<(String, String)> = match document.pointer(location).unwrap() {
                Value::Object(members) => {
                    let dot = if path.is_empty() { "" } else { "." };
                    let of = |name: &String| {
                        let escaped = name.replace('~', "~0").replace('/', "~1");
                        (format!("{location}/{escaped}"), format!("{path}{dot}{name}"))
                    };
                    members.keys().map(of).collect()
                }
                Value::Array(items) => {
                    (0..items.len()).map(|index| (format!("{location}/{index}"), format!("{path}[{index}]"))).collect()
                }
                _ => Vec::new(),
            };
            let before = std::mem::replace(document.pointer_mut(location).unwrap(), wrong.clone());
            check(path, document);
            *document.pointer_mut(location).unwrap() = before;
            for (location, path) in children {
                visit(document, &location, &path, wrong, check);
            }
        }
        visit(&mut document.clone(), "", "", wrong, check);
    }

    #[test]
    fn errors_name_the_wrong_path() {
        let worker = include_str!("../../../../test/cli/azure.yaml");
        let worker: Value = crate::api::gotext::yaml::documents(worker).unwrap().remove(0);
        let mut found = 0;
        for wrong in [
            json!(null),
            json!(true),
            json!(7),
            json!(-1.5),
            json!("\u{e9} x"),
            json!([]),
            json!([{"a": "\n"}, 1]),
            json!({}),
            json!({"a": {"b": []}}),
        ] {
            with_each_location(&worker, &wrong, &mut |path, document| {
                for text in [document.to_string(), serde_json::to_string_pretty(document).unwrap()] {
                    let Err(error) = decode_lenient::<crate::api::gardener::Worker>(&text) else { continue };
                    found += 1;
                    let inside = error.path.strip_prefix(path);
                    assert!(
                        inside.is_some_and(|rest| rest.is_empty() || path.is_empty() || rest.starts_with(['.', '['])),
                        "{error} is at {path}: {wrong}"
                    );
                }
            });
        }
        assert!(found > 500, "{found}");
    }
}
