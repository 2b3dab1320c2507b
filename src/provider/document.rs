//! Documents of providers: raw JSON with `apiVersion` and `kind` inside objects of Gardener.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;

use crate::api::gotext::json::{DecodeError, decode_lenient, refuse_duplicates};

/// A document of a provider.
pub trait Document: DeserializeOwned + Default {
    /// The kind that it must have.
    const KIND: &'static str;
    /// The group and version that it must have.
    const API_VERSION: &'static str;
    /// Whether unknown and duplicate members are errors.
    const STRICT: bool;
}

/// Declares types of documents: members are in camel case, and one that is absent or null has its default. `strict` ones
/// refuse members that they don't have.
macro_rules! documents {
    (strict $($items:tt)*) => { $crate::provider::document::documents! { #[serde(deny_unknown_fields)] $($items)* } };
    (lenient $($items:tt)*) => { $crate::provider::document::documents! { #[serde()] $($items)* } };
    (#[$strictness:meta] $($(#[$attribute:meta])* pub struct $name:ident {
        $($(#[$of_member:meta])* $visibility:vis $member:ident: $type:ty,)*
    })*) => {$(
        $(#[$attribute])*
        #[derive(Clone, Debug, Default, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        #[$strictness]
        pub struct $name {$(
            $(#[$of_member])*
            #[serde(default, deserialize_with = "crate::api::gotext::json::null_as_default")]
            $visibility $member: $type,
        )*}
    )*};
}
pub(in crate::provider) use documents;

/// Says that types are documents, each of the kind that it is called after.
macro_rules! kinds {
    ($($name:ident of $version:path: strict $strict:literal;)*) => {$(
        impl $crate::provider::document::Document for $name {
            const KIND: &'static str = stringify!($name);
            const API_VERSION: &'static str = $version;
            const STRICT: bool = $strict;
        }
    )*};
}
pub(in crate::provider) use kinds;

/// Why a document can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// A member is wrong.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// It is another document.
    #[error("expected kind {wanted_kind} of {wanted_version}, found kind {kind:?} of {version:?}")]
    Type {
        /// Kind that it must have.
        wanted_kind: &'static str,
        /// Group and version that it must have.
        wanted_version: &'static str,
        /// Kind that it has.
        kind: String,
        /// Group and version that it has.
        version: String,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TypeMeta {
    #[serde(default)]
    api_version: Option<String>,
    #[serde(default)]
    kind: Option<String>,
}

/// Decodes a document.
///
/// One without `kind` counts as of the kind that is wanted. One without `apiVersion` may have no member but `kind`, and is an
/// empty document: the Go extensions read it as their internal type, which has none of the members that are written here.
///
/// # Errors
/// When kind or version differ, or a member is wrong; the error names the member's path.
pub fn decode_document<T: Document>(raw: &RawValue) -> Result<T, DocumentError> {
    let text = raw.get();
    let meta: TypeMeta = decode_lenient(text)?;
    let (kind, version) = (meta.kind.unwrap_or_default(), meta.api_version.unwrap_or_default());
    let is_kind = kind.is_empty() || kind == T::KIND;
    if is_kind && version.is_empty() && has_no_member_but_kind(text)? {
        return Ok(T::default());
    }
    if !is_kind || version != T::API_VERSION {
        return Err(DocumentError::Type { wanted_kind: T::KIND, wanted_version: T::API_VERSION, kind, version });
    }
    if T::STRICT {
        refuse_duplicates(text)?;
    }
    Ok(decode_lenient(text)?)
}

fn has_no_member_but_kind(text: &str) -> Result<bool, DecodeError> {
    let members: BTreeMap<String, IgnoredAny> = decode_lenient(text)?;
    Ok(members.keys().all(|member| ["kind", "apiVersion"].contains(&member.as_str())))
}

#[cfg(test)]
#[allow(unreachable_pub, reason = "the macro declares what others use")]
mod tests {
    use super::*;

    documents! {
        strict
        /// A document.
        pub struct Config {
            api_version: String,
            kind: String,
            /// A member.
            pub size: i32,
        }
    }

    impl Document for Config {
        const KIND: &'static str = "Config";
        const API_VERSION: &'static str = "cloud/v1";
        const STRICT: bool = true;
    }

    #[test]
    fn a_document_without_kind_or_version_is_read_as_by_the_go_extensions() {
        for (text, size) in [
            ("{}", Some(0)),
            (r#"{"kind": "Config"}"#, Some(0)),
            (r#"{"kind": "Config", "apiVersion": ""}"#, Some(0)),
            (r#"{"apiVersion": "cloud/v1"}"#, Some(0)),
            (r#"{"apiVersion": "cloud/v1", "size": 3}"#, Some(3)),
            (r#"{"apiVersion": "cloud/v1", "kind": "Config", "size": 3}"#, Some(3)),
            (r#"{"kind": "Config", "size": 3}"#, None),
            (r#"{"size": 3}"#, None),
            (r#"{"kind": "Another"}"#, None),
            (r#"{"apiVersion": "cloud/v2"}"#, None),
            (r#"{"apiVersion": "cloud/v1", "volume": 3}"#, None),
        ] {
            let raw = RawValue::from_string(text.to_owned()).unwrap();
            let Ok(config) = decode_document::<Config>(&raw) else {
                assert_eq!(size, None, "{text}");
                continue;
            };
            let Config { api_version, kind, size: found } = config;
            assert_eq!(Some(found), size, "{text}");
            assert!(kind.is_empty() || kind == "Config", "{text}: {api_version}");
        }
    }
}
