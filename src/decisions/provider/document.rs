//! Provider documents: raw JSON with `apiVersion` and `kind` inside Gardener objects.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;

use wire::api::gotext::json::{DecodeError, decode_lenient, refuse_duplicates};

/// A provider document.
pub trait Document: DeserializeOwned + Default {
    /// Required kind.
    const KIND: &'static str;
    /// Required API version (group and version).
    const API_VERSION: &'static str;
    /// Whether unknown and duplicate members are errors.
    const STRICT: bool;
}

/// Declares document types: members are in camel case, and absent or null members get their default. `strict` types
/// reject unknown members.
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
            #[serde(default, deserialize_with = "wire::api::gotext::json::null_as_default")]
            $visibility $member: $type,
        )*}
    )*};
}
pub(in crate::provider) use documents;

/// Implements [`Document`] for types, with the name of the type as kind.
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

/// Reason why a document can't be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// A member is invalid.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The document has another kind or version.
    #[error("expected kind {target_kind} of {target_version}, found kind {kind:?} of {version:?}")]
    Type {
        /// Required kind.
        target_kind: &'static str,
        /// Required API version.
        target_version: &'static str,
        /// Actual kind.
        kind: String,
        /// Actual API version.
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
/// A document without `kind` is accepted as the required kind. A document without `apiVersion` may have no member but
/// `kind`, and decodes to an empty document: the Go extensions decode it as their internal type, which has none of the
/// members of the versioned type.
///
/// # Errors
/// If kind or version differ, or a member is invalid; the error names the path of the member.
pub fn decode_document<T: Document>(raw: &RawValue) -> Result<T, DocumentError> {
    let text = raw.get();
    let meta: TypeMeta = decode_lenient(text)?;
    let kind = meta.kind.unwrap_or_default();
    let version = meta.api_version.unwrap_or_default();
    let is_kind = kind.is_empty() || kind == T::KIND;
    if is_kind && version.is_empty() && has_no_member_but_kind(text)? {
        return Ok(T::default());
    }
    if !is_kind || version != T::API_VERSION {
        return Err(DocumentError::Type { target_kind: T::KIND, target_version: T::API_VERSION, kind, version });
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
        /// A document for tests.
        pub struct Config {
            api_version: String,
            kind: String,
            /// A member for tests.
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
