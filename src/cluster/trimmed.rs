//! An object of a watch, of which only its identity is decoded before it reaches the store.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::cluster::identity::Identity;

/// An object as text, until what is kept of it is read.
pub(crate) struct Trimmed<K> {
    metadata: ObjectMeta,
    pub(crate) identity: Identity,
    pub(crate) text: Arc<RawValue>,
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Trimmed<K> {
    fn clone(&self) -> Self {
        Self {
            metadata: self.metadata.clone(),
            identity: self.identity.clone(),
            text: Arc::clone(&self.text),
            kind: PhantomData,
        }
    }
}

impl<K> fmt::Debug for Trimmed<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.identity, formatter)
    }
}

impl<'de, K> Deserialize<'de> for Trimmed<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let identity = Identity::read(raw.get()).map_err(serde::de::Error::custom)?;
        let metadata = ObjectMeta {
            namespace: Some(identity.namespace.clone()),
            name: Some(identity.name.clone()),
            uid: Some(identity.uid.clone()),
            resource_version: Some(identity.version.to_string()),
            ..ObjectMeta::default()
        };
        Ok(Self { metadata, identity, text: raw.into(), kind: PhantomData })
    }
}

impl<K: Resource<DynamicType = ()>> Resource for Trimmed<K> {
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
