//! YAML files, parsed like Go's `sigs.k8s.io/yaml`.

use std::collections::{HashMap, HashSet};

use granit_parser::{Event, Marker, Parser, ScalarStyle, Span, Tag};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

use super::json;

/// Maximum nesting of collections; JSON has the same limit.
const DEEPEST: usize = 128;

/// Maximum expansion of one file by anchors and aliases, in bytes.
const MOST_COPIED: usize = 4 << 20;
/// What a value counts in addition to its text.
const BYTES_OF_VALUE: usize = 16;

/// A text that is not valid YAML, or can't be converted to JSON.
///
/// The problem never quotes the text, which may contain secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct YamlError {
    /// Line of the problem, starting at 1.
    pub line: usize,
    /// Column of the problem in characters, starting at 1.
    pub column: usize,
    /// Description of the problem.
    pub problem: Problem,
}

/// Problems of a YAML text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The text has a syntax error, described by the message.
    #[error("not valid YAML: {0}")]
    Syntax(String),
    /// A mapping has a duplicate key, possibly after conversion to text (`1` and `'1'`).
    #[error("the key is already set in this mapping")]
    DuplicateKey,
    /// A key is null, a collection, or a number beyond 63 bits.
    #[error("a key must be text, a number or a boolean")]
    UnsupportedKey,
    /// The value of `<<` is neither a mapping nor a list of mappings.
    #[error("a merge needs a mapping or a list of mappings")]
    UnsupportedMerge,
    /// JSON has no infinity and no "not a number".
    #[error("the number has no counterpart in JSON")]
    NotFinite,
    /// The value does not match its tag, such as `!!int`.
    #[error("the value does not have the type that its tag names")]
    WrongTag,
    /// An alias refers to an anchor that contains the alias.
    #[error("the anchor contains itself")]
    Recursion,
    /// Aliases expand the text beyond the limit.
    #[error("aliases expand to more than is allowed")]
    TooMuchCopied,
    /// Collections are nested more than 128 levels deep.
    #[error("collections are nested too deeply")]
    TooDeep,
}

/// Parses every document of a YAML or JSON text to the same JSON value as Go.
///
/// Scalars follow YAML 1.1 like `sigs.k8s.io/yaml` 1.6 (measured): plain `yes`, `on`, `y` and their opposites are
/// booleans, also as keys; `010` and `0o10` are 8; underscores in numbers are dropped; dates stay text. Quoted scalars
/// are text. Duplicate keys are errors, and `<<` merges. Empty and null documents are skipped.
///
/// # Errors
/// With the position of the first problem. A text with a problem returns no documents.
pub fn documents(text: &str) -> Result<Vec<Value>, YamlError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let texts = json_texts(text);
    if let Some(mut documents) =
        texts.and_then(|texts| texts.into_iter().map(json_document).collect::<Option<Vec<_>>>())
    {
        documents.retain(|document| !document.is_null());
        return Ok(documents);
    }
    let mut documents = Vec::new();
    parse(text, Builder::default(), &mut |part| match part {
        Part::Item(value) | Part::Document(value) => documents.push(value),
    })?;
    Ok(documents)
}

/// A part of a text.
#[derive(Debug, PartialEq)]
pub enum Part {
    /// An item of the list `items` in the next [`Part::Document`].
    Item(Value),
    /// A document. Its list `items` is empty if the items were separate parts.
    Document(Value),
}

/// Parses like [`documents`], and passes on each document and each item of a list as soon as it is parsed, because
/// the tree of a large text needs ten times the memory of the text.
///
/// # Errors
/// With the position of the first problem. Discard all parts of such a text.
pub fn for_each_part(text: &str, take: &mut dyn FnMut(Part)) -> Result<(), YamlError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some(documents) = json_texts(text) else {
        return parse(text, Builder { separates_items: true, ..Builder::default() }, take);
    };
    for document in documents {
        take_json(document, take)?;
    }
    Ok(())
}

fn parse(text: &str, mut builder: Builder, take: &mut dyn FnMut(Part)) -> Result<(), YamlError> {
    let mut options = granit_parser::Options::default();
    options.set_emit_comments(false);
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| at(error.marker(), Problem::Syntax(error.kind().to_string())))?;
        builder.take(event, span)?;
        builder.parts.drain(..).for_each(&mut *take);
    }
    Ok(())
}

/// The JSON documents of a text. JSON is tried first: it knows escapes that YAML 1.1 does not. Text that is not JSON, or has a
/// key twice, is left to YAML, which can name the place.
fn json_texts(text: &str) -> Option<Vec<&str>> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    if json::refuse_duplicates(text).is_ok() {
        return Some(vec![text]);
    }
    // Several documents one after the other, as `jq -c` prints them.
    let documents = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let texts = documents.map(|document| {
        let text = document.ok()?.get();
        json::refuse_duplicates(text).ok()?;
        Some(text)
    });
    texts.collect()
}

/// Passes on a JSON document, with the items of a list as separate parts.
fn take_json(text: &str, take: &mut dyn FnMut(Part)) -> Result<(), YamlError> {
    let Some(mut members) = raw_members(text) else {
        let document = json_value(text)?;
        if !document.is_null() {
            take(Part::Document(document));
        }
        return Ok(());
    };
    if let Some(items) = members.get("items").and_then(|items| serde_json::from_str::<Vec<&RawValue>>(items.get()).ok())
    {
        members.remove("items");
        for item in items {
            take(Part::Item(json_value(item.get())?));
        }
        let mut document: Map<String, Value> = Map::from_iter([("items".to_owned(), Value::Array(Vec::new()))]);
        for (name, member) in members {
            document.insert(name, json_value(member.get())?);
        }
        take(Part::Document(Value::Object(document)));
        return Ok(());
    }
    take(Part::Document(json_value(text)?));
    Ok(())
}

fn raw_members(text: &str) -> Option<HashMap<String, &RawValue>> {
    if text.trim_start().starts_with('{') { serde_json::from_str(text).ok() } else { None }
}

fn json_value(text: &str) -> Result<Value, YamlError> {
    json_document(text).ok_or_else(|| YamlError { line: 1, column: 1, problem: Problem::Syntax("not JSON".to_owned()) })
}

fn json_document(text: &str) -> Option<Value> {
    let mut value = serde_json::from_str(text).ok()?;
    print_numbers(&mut value);
    Some(value)
}

fn print_numbers(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(print_numbers),
        Value::Object(members) => members.values_mut().for_each(print_numbers),
        Value::Number(number) if number.is_f64() => {
            let printed = number.as_f64().and_then(json::number_as_printed);
            if let Some(printed) = printed {
                *number = printed;
            }
        }
        _ => {}
    }
}

fn at(marker: &Marker, problem: Problem) -> YamlError {
    YamlError { line: marker.line(), column: marker.col() + 1, problem }
}

fn value(scalar: Scalar, location: &Marker) -> Result<Value, YamlError> {
    scalar.into_value().map_err(|error| at(location, error))
}

/// Builds values from parser events, without recursion.
#[derive(Default)]
struct Builder {
    /// Complete parts that were not passed on yet.
    parts: Vec<Part>,
    /// Whether the items of a list become separate parts.
    separates_items: bool,
    open: Vec<Open>,
    anchors: HashMap<usize, Anchored>,
    copied: usize,
}

/// An incomplete collection.
struct Open {
    anchor: usize,
    /// Maximum nesting inside.
    depth: usize,
    /// Size of the content in bytes.
    size: usize,
    content: Content,
}

enum Content {
    Sequence(Vec<Value>),
    Mapping {
        members: Map<String, Value>,
        /// Names added by a merge, which the mapping's own keys may override.
        merged: HashSet<String>,
        key: Option<Key>,
    },
}

enum Key {
    Name(String),
    Merge,
}

/// A complete value with the cost of copying it.
#[derive(Clone)]
struct Anchored {
    scalar: Scalar,
    depth: usize,
    size: usize,
}

/// A value, with the information needed if it is used as a key.
#[derive(Clone)]
enum Scalar {
    Value(Value),
    /// A plain `<<`: it merges as a key, and is text as a value.
    Merge,
    /// A float before Go formats it: keys are formatted in single precision.
    Float(f64),
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), YamlError> {
        let location = &span.start;
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let scalar = resolve(&text, style, tag.as_deref()).map_err(|error| at(location, error))?;
                let node = Anchored { scalar, depth: 0, size: BYTES_OF_VALUE + text.len() };
                self.complete(anchor, node, location)
            }
            Event::Alias(anchor) => self.copy(anchor, location),
            Event::SequenceStart(_, anchor, _) => self.open(anchor, Content::Sequence(Vec::new()), location),
            Event::MappingStart(_, anchor, _) => {
                let content = Content::Mapping { members: Map::new(), merged: HashSet::new(), key: None };
                self.open(anchor, content, location)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(location),
            Event::DocumentStart(..) => {
                // Anchors are valid only in their document.
                self.anchors.clear();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn open(&mut self, anchor: usize, content: Content, location: &Marker) -> Result<(), YamlError> {
        if self.open.len() >= DEEPEST {
            return Err(at(location, Problem::TooDeep));
        }
        self.open.push(Open { anchor, depth: 0, size: BYTES_OF_VALUE, content });
        Ok(())
    }

    fn close(&mut self, location: &Marker) -> Result<(), YamlError> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let value = match open.content {
            Content::Sequence(items) => Value::Array(items),
            Content::Mapping { members, .. } => Value::Object(members),
        };
        let node = Anchored { scalar: Scalar::Value(value), depth: open.depth + 1, size: open.size };
        self.complete(open.anchor, node, location)
    }

    fn copy(&mut self, anchor: usize, location: &Marker) -> Result<(), YamlError> {
        // The parser rejects unknown anchors, so an anchor without a value is incomplete.
        let node = self.anchors.get(&anchor).ok_or_else(|| at(location, Problem::Recursion))?;
        // Check the limit before copying.
        self.copied = self.copied.saturating_add(node.size);
        if self.copied > MOST_COPIED {
            return Err(at(location, Problem::TooMuchCopied));
        }
        let mut node = node.clone();
        if let Scalar::Merge = node.scalar {
            node.scalar = Scalar::Value("<<".into());
        }
        self.complete(0, node, location)
    }

    /// Whether the innermost open collection is the list `items` of the document, to which no alias can refer.
    fn is_in_items(&self) -> bool {
        let [document, Open { anchor: 0, content: Content::Sequence(_), .. }] = self.open.as_slice() else {
            return false;
        };
        matches!(&document.content, Content::Mapping { key: Some(Key::Name(name)), .. } if name == "items")
    }

    /// Adds a complete value to the surrounding collection.
    fn complete(&mut self, anchor: usize, node: Anchored, location: &Marker) -> Result<(), YamlError> {
        if anchor != 0 {
            // Nested anchors are copied once for each level.
            self.copied = self.copied.saturating_add(node.size);
            if self.copied > MOST_COPIED {
                return Err(at(location, Problem::TooMuchCopied));
            }
            self.anchors.insert(anchor, node.clone());
        }
        if self.open.len() + node.depth > DEEPEST {
            return Err(at(location, Problem::TooDeep));
        }
        let is_item = self.separates_items && self.is_in_items();
        let Some(open) = self.open.last_mut() else {
            let value = value(node.scalar, location)?;
            if !value.is_null() {
                self.parts.push(Part::Document(value));
            }
            return Ok(());
        };
        open.depth = open.depth.max(node.depth);
        open.size = open.size.saturating_add(node.size);
        match &mut open.content {
            Content::Sequence(_) if is_item => self.parts.push(Part::Item(value(node.scalar, location)?)),
            Content::Sequence(items) => items.push(value(node.scalar, location)?),
            Content::Mapping { members, merged, key } => match key.take() {
                None => {
                    let name = node.scalar.into_key().map_err(|error| at(location, error))?;
                    if let Key::Name(name) = &name
                        && members.contains_key(name)
                        && !merged.remove(name)
                    {
                        return Err(at(location, Problem::DuplicateKey));
                    }
                    *key = Some(name);
                }
                Some(Key::Name(name)) => {
                    members.insert(name, value(node.scalar, location)?);
                }
                Some(Key::Merge) => {
                    merge(members, merged, value(node.scalar, location)?).map_err(|error| at(location, error))?
                }
            },
        }
        Ok(())
    }
}

/// Merges the members of one or several mappings. The first mapping with a name wins.
///
/// Go lets a merge override an earlier key, contrary to the YAML specification, and rejects it in strict mode. Here it
/// is always rejected.
fn merge(members: &mut Map<String, Value>, merged: &mut HashSet<String>, source: Value) -> Result<(), Problem> {
    let sources = match source {
        Value::Object(_) => vec![source],
        Value::Array(items) => items,
        _ => return Err(Problem::UnsupportedMerge),
    };
    let mut added = HashSet::new();
    for source in sources {
        let Value::Object(source) = source else {
            return Err(Problem::UnsupportedMerge);
        };
        for (name, value) in source {
            if added.contains(&name) {
                continue;
            }
            if members.contains_key(&name) {
                return Err(Problem::DuplicateKey);
            }
            added.insert(name.clone());
            members.insert(name, value);
        }
    }
    merged.extend(added);
    Ok(())
}

impl Scalar {
    fn into_value(self) -> Result<Value, Problem> {
        Ok(match self {
            Self::Value(value) => value,
            Self::Merge => "<<".into(),
            Self::Float(number) => json::number_as_printed(number).map(Value::Number).ok_or(Problem::NotFinite)?,
        })
    }

    fn into_key(self) -> Result<Key, Problem> {
        match self {
            Self::Merge => Ok(Key::Merge),
            Self::Float(number) => Ok(Key::Name(single_precision_text(number))),
            Self::Value(Value::String(text)) => Ok(Key::Name(text)),
            Self::Value(Value::Bool(boolean)) => Ok(Key::Name(boolean.to_string())),
            Self::Value(Value::Number(number)) => match number.as_i64() {
                Some(integer) => Ok(Key::Name(integer.to_string())),
                None => Err(Problem::UnsupportedKey),
            },
            Self::Value(_) => Err(Problem::UnsupportedKey),
        }
    }
}

/// Formats a float in a key like `sigs.k8s.io/yaml`: Go's `%g` of a 32-bit number, with an exponent of at least two
/// digits below 1e-4 and from 1e6.
fn single_precision_text(number: f64) -> String {
    let single = number as f32;
    if single.is_nan() {
        return ".nan".to_owned();
    }
    if single.is_infinite() {
        return if single < 0.0 { "-.inf" } else { ".inf" }.to_owned();
    }
    let scientific = format!("{single:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return format!("{single}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

/// Resolves a scalar by its text, quotes and tag.
fn resolve(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Scalar, Problem> {
    let string = || Ok(Scalar::Value(text.into()));
    let Some(tag) = tag else {
        return match style {
            ScalarStyle::Plain => Ok(plain(text)),
            _ => string(),
        };
    };
    let Some(suffix) = tag.suffix_in_namespace("tag:yaml.org,2002:") else {
        // Like Go, ignores custom tags and uses the text.
        return string();
    };
    let resolved = plain(text);
    match (suffix.as_ref(), resolved) {
        ("str", _) => string(),
        ("merge", _) => Ok(Scalar::Merge),
        ("null", scalar @ Scalar::Value(Value::Null))
        | ("bool", scalar @ Scalar::Value(Value::Bool(_)))
        | ("int", scalar @ Scalar::Value(Value::Number(_)))
        | ("float", scalar @ Scalar::Float(_)) => Ok(scalar),
        ("float", Scalar::Value(Value::Number(integer))) if integer.is_i64() => {
            Ok(Scalar::Float(integer.as_f64().unwrap_or_default()))
        }
        ("timestamp", _) if is_date_like(text) => string(),
        ("null" | "bool" | "int" | "float" | "timestamp" | "binary", _) => Err(Problem::WrongTag),
        _ => string(),
    }
}

/// Whether a text starts with year, month and day like Go's timestamps. The value stays text in any case.
fn is_date_like(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let mut digits = |count: std::ops::RangeInclusive<usize>| {
        parts.next().is_some_and(|part| count.contains(&part.bytes().take_while(u8::is_ascii_digit).count()))
    };
    digits(4..=4) && digits(1..=2) && digits(1..=2)
}

/// Resolves a scalar without quotes and tag.
fn plain(text: &str) -> Scalar {
    let value = match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => true.into(),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => false.into(),
        "<<" => return Scalar::Merge,
        ".nan" | ".NaN" | ".NAN" => return Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return Scalar::Float(f64::INFINITY);
        }
        "-.inf" | "-.Inf" | "-.INF" => return Scalar::Float(f64::NEG_INFINITY),
        _ => return number(text).unwrap_or_else(|| Scalar::Value(text.into())),
    };
    Scalar::Value(value)
}

fn number(text: &str) -> Option<Scalar> {
    match text.as_bytes().first()? {
        b'.' => float(&without_separators(text)?),
        b'0'..=b'9' | b'+' | b'-' => {
            let digits = text.replace('_', "");
            match integer(&digits) {
                Some(integer) => Some(Scalar::Value(integer.into())),
                None => float(&digits),
            }
        }
        _ => None,
    }
}

/// Go passes numbers with a leading dot to its float parser, which accepts underscores only between digits.
fn without_separators(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let is_digit = |index: usize| bytes.get(index).is_some_and(u8::is_ascii_digit);
    let are_separators = bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'_')
        .all(|(index, _)| is_digit(index.wrapping_sub(1)) && is_digit(index + 1));
    are_separators.then(|| text.replace('_', ""))
}

/// Parses an integer with Go's base prefixes, up to 64 bits, signed or unsigned.
fn integer(digits: &str) -> Option<Number> {
    let (negative, magnitude, signed) = match digits.as_bytes().first()? {
        b'-' => (true, &digits[1..], true),
        b'+' => (false, &digits[1..], true),
        _ => (false, digits, false),
    };
    let (base, magnitude) = match magnitude.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &magnitude[2..]),
        [b'0', b'o' | b'O', ..] => (8, &magnitude[2..]),
        [b'0', b'b' | b'B', ..] => (2, &magnitude[2..]),
        [b'0', _, ..] => (8, &magnitude[1..]),
        _ => (10, magnitude),
    };
    // `from_str_radix` would accept a second sign here.
    if !magnitude.starts_with(|first: char| first.is_ascii_hexdigit()) {
        return None;
    }
    let magnitude = u64::from_str_radix(magnitude, base).ok()?;
    if negative {
        return 0i64.checked_sub_unsigned(magnitude).map(Number::from);
    }
    // Go parses a number with a sign as a signed integer.
    if signed && i64::try_from(magnitude).is_err() {
        return None;
    }
    Some(magnitude.into())
}

/// Parses a float in decimal notation: digits with at most one point and an optional exponent. Like in Go, a float that
/// is out of range stays text.
fn float(digits: &str) -> Option<Scalar> {
    let unsigned = digits.strip_prefix(['+', '-']).unwrap_or(digits);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if !is_digits(whole) || !is_digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    if let Some(exponent) = exponent {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if exponent.is_empty() || !is_digits(exponent) {
            return None;
        }
    }
    let number: f64 = digits.parse().ok()?;
    number.is_finite().then_some(Scalar::Float(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn problem(text: &str) -> (usize, usize, Problem) {
        let error = documents(text).unwrap_err();
        (error.line, error.column, error.problem)
    }

    /// The documents of [`for_each_part`], with their items, and the number of items that were separate.
    fn joined(text: &str) -> Result<(Vec<Value>, usize), YamlError> {
        let mut joined = Vec::new();
        let mut items = Vec::new();
        let mut separate = 0;
        for_each_part(text, &mut |part| match part {
            Part::Item(item) => {
                separate += 1;
                items.push(item);
            }
            Part::Document(mut document) => {
                if !items.is_empty() {
                    document["items"] = std::mem::take(&mut items).into();
                }
                joined.push(document);
            }
        })?;
        Ok((joined, separate))
    }

    #[test]
    fn passes_on_items_of_lists_separately() {
        for (text, separate) in [
            ("kind: List\nitems:\n- {a: 1}\n- &b [2]\nmore: *b\n---\nitems: [c]\n---\nd: {items: [e]}\n", 3),
            ("items: &a [1, 2]\nb: *a\n", 0),
            ("items: 1\n---\n- items: [1]\n---\nitems: {items: [1]}\n", 0),
            (r#"{"kind":"List","items":[{"a":1.0},[1e2]]}{"items":null}{"items":[]} 7 null"#, 2),
            (r#"{"items":[1],"metadata":{"items":[2]}}"#, 1),
            (r#"[{"items":[1]}]"#, 0),
        ] {
            assert_eq!(joined(text).unwrap(), (documents(text).unwrap(), separate), "{text}");
        }
    }

    #[test]
    fn parts_have_the_problems_of_documents() {
        for text in [
            r#"{"items":[1e400]}"#,
            r#"{"items":["\ud800"]}"#,
            r#"{"items":[{"a":1,"a":2}]}"#,
            r#"{"items":[1],"items":[2]}"#,
            r#"{"items":[1]"#,
            "items: [1]\nitems: [2]\n",
            "items: [1]\n---\na: [\n",
            &format!(r#"{{"items":[{}{}]}}"#, "[".repeat(126), "]".repeat(126)),
            &format!(r#"{{"items":[{}{}]}}"#, "[".repeat(127), "]".repeat(127)),
        ] {
            assert_eq!(joined(text).map(|(documents, _)| documents), documents(text), "{text}");
        }
    }

    #[test]
    fn reads_several_documents_and_skips_empty_ones() {
        assert_eq!(
            documents("---\n# nothing\n---\na: 1\n---\nnull\n---\n- b\n...\n").unwrap(),
            [json!({"a": 1}), json!(["b"])]
        );
        assert_eq!(documents("").unwrap(), Vec::<Value>::new());
    }

    #[test]
    fn reads_json_with_its_own_escapes() {
        assert_eq!(documents("{\"a\": \"\\ud83d\\ude00\\/\", \"b\": 1.0}").unwrap(), [json!({"a": "😀/", "b": 1})]);
    }

    #[test]
    fn reports_position_without_content() {
        assert_eq!(problem("a:\n  b: 1\n  b: hunter2\n"), (3, 3, Problem::DuplicateKey));
        assert_eq!(problem("{\"a\": 1, \"a\": 2}").2, Problem::DuplicateKey);
        assert_eq!(problem("1: a\n'1': b\n").2, Problem::DuplicateKey);
        assert_eq!(problem("a: .inf").2, Problem::NotFinite);
        let error = documents("a: 'hunter2").unwrap_err().to_string();
        assert!(error.starts_with("line 1, column "), "{error}");
        for text in [
            "a: 'hunter2",
            "a: *hunter2",
            "hunter2: [",
            "%hunter2\na",
            "a: \"\\hunter2\"",
            "!hunter2!x a",
            "a: @hunter2",
        ] {
            if let Err(error) = documents(text) {
                assert!(!error.to_string().contains("hunter2"), "{error}");
            }
        }
    }

    #[test]
    fn aliases_cannot_blow_up() {
        let mut bomb = String::from("a: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
        for (name, of) in ["b", "c", "d", "e", "f", "g", "h", "i"].iter().zip("abcdefgh".chars()) {
            bomb.push_str(&format!("{name}: &{name} [{}]\n", vec![format!("*{of}"); 10].join(", ")));
        }
        assert_eq!(problem(&bomb).2, Problem::TooMuchCopied);
        assert_eq!(problem("a: &a [*a]").2, Problem::Recursion);
        let mut deep = String::from("l0: &l0 [x]\n");
        for level in 1..200 {
            deep.push_str(&format!("l{level}: &l{level} [*l{}]\n", level - 1));
        }
        assert_eq!(problem(&deep).2, Problem::TooDeep);
    }

    #[test]
    fn deep_nesting_is_an_error() {
        assert!(documents(&"[".repeat(100_000)).is_err());
        assert!(documents(&"- ".repeat(100_000)).is_err());
        assert!(documents(&"{\"a\":".repeat(100_000)).is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[-a-c0-9:{}\\[\\],&*!<>|'\"# \n._xeE+~%?]{0,60}") {
            let _ = documents(&text);
        }
    }
}
