//! The objects of a review: what is asked about, and whether it has to be looked at at all.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::api::gotext::json::decode_lenient;
use crate::runtime::webhook::{Denial, Verdict};

/// An object with its spec unread.
#[derive(Deserialize)]
struct Outline<'a> {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(borrow)]
    spec: Option<&'a RawValue>,
}

/// An object as it is to become, and as it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    /// As it is to become, JSON.
    pub(crate) object: &'a str,
    /// As it is, JSON; `None` when it is made.
    pub(crate) old: Option<&'a str>,
}

impl<'a> Subject<'a> {
    /// The object, unless it needs no look: it is being deleted, or its spec stays as it is. So an object that was accepted
    /// before can always be labelled, finalized and deleted.
    pub(super) fn to_judge<T: DeserializeOwned>(self) -> Result<T, Verdict> {
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

    /// The object, unless it is being deleted.
    pub(super) fn to_change<T: DeserializeOwned>(self) -> Result<T, Verdict> {
        let outline: Outline<'a> = parse(self.object)?;
        if outline.metadata.deletion_timestamp.is_some() { Err(Verdict::ALLOWED) } else { read(self.object) }
    }
}

/// Whether two documents say the same. An API server writes both in the same way, so the texts mostly decide.
pub(super) fn same(one: Option<&RawValue>, other: Option<&RawValue>) -> bool {
    let text = |raw: Option<&'_ RawValue>| raw.map(|raw| raw.get().to_owned());
    if text(one) == text(other) {
        return true;
    }
    let value = |raw: Option<&RawValue>| raw.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
    value(one) == value(other)
}

/// Reads an object with the path of what is wrong.
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
