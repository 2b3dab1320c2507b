//! The object under review, and whether it needs a review.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use runtime::webhook::{Denial, Verdict};
use wire::api::gotext::json::decode_lenient;

/// An object with its spec undecoded.
#[derive(Deserialize)]
struct Outline<'a> {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(borrow)]
    spec: Option<&'a RawValue>,
}

/// The new and the old version of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    /// New object as JSON.
    pub(crate) object: &'a str,
    /// Old object as JSON; `None` on creation.
    pub(crate) old: Option<&'a str>,
    /// Set when the review is given up at its deadline.
    pub(crate) stop: Option<&'a Arc<AtomicBool>>,
}

impl<'a> Subject<'a> {
    /// Decodes the new object unless it needs no check: it is being deleted, or its spec is unchanged. This way stored
    /// objects can always be labelled, finalized and deleted.
    pub(super) fn to_validate<T: DeserializeOwned>(self) -> Result<T, Verdict> {
        let outline: Outline<'a> = parse(self.object)?;
        if outline.metadata.deletion_timestamp.is_some() {
            return Err(Verdict::ALLOWED);
        }
        let old = self.old.map(parse::<Outline<'_>>).transpose()?;
        if old.is_some_and(|old| same(old.spec, outline.spec)) {
            return Err(Verdict::ALLOWED);
        }
        read(self.object)
    }

    /// Whether the spec is unchanged.
    pub(super) fn is_spec_unchanged(self) -> bool {
        let spec = |object| serde_json::from_str::<Outline<'_>>(object).ok().map(|outline| outline.spec);
        let object = spec(self.object);
        let old = self.old.and_then(spec);
        object.zip(old).is_some_and(|(object, old)| same(old, object))
    }

    /// Decodes the new object, unless it is being deleted.
    pub(super) fn to_mutate<T: DeserializeOwned>(self) -> Result<T, Verdict> {
        let outline: Outline<'a> = parse(self.object)?;
        if outline.metadata.deletion_timestamp.is_some() { Err(Verdict::ALLOWED) } else { read(self.object) }
    }
}

/// Whether two documents are equivalent JSON.
pub(super) fn same(one: Option<&RawValue>, other: Option<&RawValue>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => are_equal(one, other, LEVELS),
        _ => false,
    }
}

/// Depth down to which documents are compared part by part.
const LEVELS: usize = 16;

/// An API server serializes both documents the same way, so most parts are equal as text. Only different parts are
/// decoded, until the first actual difference.
fn are_equal(one: &RawValue, other: &RawValue, levels: usize) -> bool {
    if one.get() == other.get() {
        return true;
    }
    let both_begin_with = |bracket| [one, other].iter().all(|raw| raw.get().starts_with(bracket));
    match levels.checked_sub(1) {
        Some(levels) if both_begin_with('{') => {
            both::<BTreeMap<String, &RawValue>>(one, other).is_some_and(|(one, other)| {
                one.len() == other.len()
                    && one.iter().zip(&other).all(|(one, other)| one.0 == other.0 && are_equal(one.1, other.1, levels))
            })
        }
        Some(levels) if both_begin_with('[') => both::<Vec<&RawValue>>(one, other).is_some_and(|(one, other)| {
            one.len() == other.len() && one.iter().zip(&other).all(|(one, other)| are_equal(one, other, levels))
        }),
        _ => both::<Value>(one, other).is_some_and(|(one, other)| one == other),
    }
}

/// Decodes both documents; `None` if that fails for either.
fn both<'a, T: Deserialize<'a>>(one: &'a RawValue, other: &'a RawValue) -> Option<(T, T)> {
    Some((serde_json::from_str(one.get()).ok()?, serde_json::from_str(other.get()).ok()?))
}

/// Decodes an object; errors contain the path.
pub(super) fn read<T: DeserializeOwned>(object: &str) -> Result<T, Verdict> {
    decode_lenient(object).map_err(|error| unreadable(&error.to_string()))
}

fn parse<'a, T: Deserialize<'a>>(object: &'a str) -> Result<T, Verdict> {
    serde_json::from_str(object)
        .map_err(|error| unreadable(&format!("line {}, column {}", error.line(), error.column())))
}

fn unreadable(why: &str) -> Verdict {
    let message = format!("the object can't be read: {why}");
    Verdict::Denied(Denial { code: 422, reason: "Invalid", message, causes: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn are_the_same(one: &str, other: &str) -> bool {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        same(Some(&raw(one)), Some(&raw(other)))
    }

    #[test]
    fn compares_documents_by_meaning() {
        let one = r#"{"images":[{"name":"a","versions":["1",{"x":1.0}]}],"types":[]}"#;
        assert!(are_the_same(one, r#"{ "types":[], "images":[ {"versions":["1",{"x": 1.0}],"name":"\u0061"}]}"#));
        for other in [
            r#"{"images":[{"name":"a","versions":["1",{"x":2.0}]}],"types":[]}"#,
            r#"{"images":[{"name":"a","versions":["1"]}],"types":[]}"#,
            r#"{"images":[{"name":"a","versions":["1",{"x":1.0}]}]}"#,
            r#"{"images":[{"name":"a","versions":["1",{"y":1.0}]}],"types":[]}"#,
            r#"{"images":{},"types":[]}"#,
        ] {
            assert!(!are_the_same(one, other), "{other}");
        }
    }

    #[test]
    fn deep_documents_are_never_equal() {
        let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(are_the_same(&deep("1"), &deep("1")));
        assert!(!are_the_same(&deep("1"), &deep("2")));
        let less = |inner: &str| format!("{}{inner}{}", "[".repeat(40), "]".repeat(40));
        assert!(are_the_same(&less("1"), &less(" 1")));
    }
}
