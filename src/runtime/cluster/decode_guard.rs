//! A wrapper for watched objects that defers decoding, so that an invalid object does not stop the watch.
//!
//! kube's `DeserializeGuard` buffers objects and so loses raw JSON, which class hashes are computed from. This one
//! keeps the text.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::cluster::store::Kept;
use wire::api::gotext::json::decode_lenient;
use wire::api::metadata::without_managers;
use wire::api::packed_text::PackedText;

/// A watched object, decoded on demand.
#[derive(Clone, Debug)]
pub struct LazyObject<K> {
    metadata: ObjectMeta,
    content: Content<K>,
}

#[derive(Clone, Debug)]
enum Content<K> {
    /// As received from a watch. Packed text takes a tenth of the memory, which matters for thousands of idle Workers.
    Packed(Arc<PackedText>),
    /// As written by this process, until the watch reports it.
    Decoded(Arc<K>),
}

#[derive(Deserialize)]
struct OnlyMetadata {
    #[serde(default, deserialize_with = "without_managers")]
    metadata: ObjectMeta,
}

impl<'de, K> Deserialize<'de> for LazyObject<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        // Fail here, because an object without metadata can't be reported either.
        let OnlyMetadata { metadata } = serde_json::from_str(raw.get()).map_err(serde::de::Error::custom)?;
        Ok(Self { metadata, content: Content::Packed(Arc::new(PackedText::of(raw.get()))) })
    }
}

impl<K> Kept for LazyObject<K> {
    const OWN_WRITES_DIFFER: bool = true;
}

impl<K: Resource> LazyObject<K> {
    /// Wraps a decoded object.
    pub fn decoded(object: Arc<K>) -> Self {
        Self { metadata: object.meta().clone(), content: Content::Decoded(object) }
    }

    /// Decodes the object.
    ///
    /// # Errors
    /// The path and reason if decoding fails.
    pub fn object(&self) -> Result<Arc<K>, String>
    where
        K: DeserializeOwned,
    {
        match &self.content {
            Content::Decoded(object) => Ok(Arc::clone(object)),
            Content::Packed(text) => {
                let text = text.unpack().ok_or("its packed text is incomplete")?;
                decode_lenient(&text).map(Arc::new).map_err(|error| error.to_string())
            }
        }
    }

    pub fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    pub fn labels(&self) -> Option<&BTreeMap<String, String>> {
        self.metadata.labels.as_ref()
    }

    pub fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }
}

impl<K: Resource<DynamicType = ()>> Resource for LazyObject<K> {
    type DynamicType = ();
    type Scope = K::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        K::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        K::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        K::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        K::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use kube::core::ApiResource;

    use super::*;
    use wire::api::gardener::Worker;

    #[test]
    fn preserves_raw_bytes_and_reports_error_path() {
        let good = r#"{"metadata":{"name":"w"},"spec":{"type":"azure","pools":[{"name":"a","providerConfig":{"b":"\u003c","a": 1}}]}}"#;
        let guarded: LazyObject<Worker> = serde_json::from_str(good).unwrap();
        let worker = guarded.object().unwrap();
        assert_eq!(worker.spec.pools[0].provider_config.as_deref().unwrap().get(), r#"{"b":"\u003c","a": 1}"#);

        let bad = r#"{"metadata":{"name":"w"},"spec":{"type":"azure","pools":[{"name":"a","maximum":"three"}]}}"#;
        let guarded: LazyObject<Worker> = serde_json::from_str(bad).unwrap();
        assert_eq!(guarded.meta().name.as_deref(), Some("w"));
        assert!(guarded.object().unwrap_err().starts_with("spec.pools[0].maximum"), "names the path");
    }

    #[test]
    fn guarded_object_has_kind_of_its_object() {
        assert_eq!(ApiResource::erase::<LazyObject<Worker>>(&()), ApiResource::erase::<Worker>(&()));
        assert_eq!(LazyObject::<Worker>::url_path(&(), Some("ns")), Worker::url_path(&(), Some("ns")));
        let mut guarded: LazyObject<Worker> =
            serde_json::from_str(r#"{"metadata": {"name": "a"}, "spec": {}}"#).unwrap();
        guarded.meta_mut().name = Some("b".to_owned());
        assert_eq!(guarded.name(), "b");
    }
}
