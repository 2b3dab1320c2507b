//! Documents of providers: raw JSON with `apiVersion` and `kind` inside objects of Gardener.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::api::gotext::json::{DecodeError, decode_large, decode_lenient, refuse_duplicates};

/// A document of a provider.
pub trait Document: DeserializeOwned + Default {
    /// The kind that it must have.
    const KIND: &'static str;
    /// The group and version that it must have.
    const API_VERSION: &'static str;
    /// Whether unknown and duplicate members are errors.
    const STRICT: bool;
    /// Whether it may have a megabyte.
    const LARGE: bool = false;
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
/// An empty object without `apiVersion` and `kind` is an empty document, as for the Go extension.
///
/// # Errors
/// When kind or version differ, or a member is wrong; the error names the member's path.
pub fn decode_document<T: Document>(raw: &RawValue) -> Result<T, DocumentError> {
    let text = raw.get();
    let meta: TypeMeta = decode_lenient(text)?;
    let (kind, version) = (meta.kind.unwrap_or_default(), meta.api_version.unwrap_or_default());
    if kind.is_empty() && version.is_empty() && is_empty_object(text) {
        return Ok(T::default());
    }
    if kind != T::KIND || version != T::API_VERSION {
        return Err(DocumentError::Type { wanted_kind: T::KIND, wanted_version: T::API_VERSION, kind, version });
    }
    if T::STRICT {
        refuse_duplicates(text)?;
    }
    Ok(if T::LARGE { decode_large(text)? } else { decode_lenient(text)? })
}

fn is_empty_object(text: &str) -> bool {
    text.chars().filter(|character| !character.is_whitespace()).eq("{}".chars())
}
