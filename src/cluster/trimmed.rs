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
use crate::cluster::machine_objects::Cached;

/// An object as text, until what is kept of it is read.
pub(crate) struct Trimmed<T> {
    metadata: ObjectMeta,
    pub(crate) identity: Identity,
    pub(crate) text: Arc<RawValue>,
    kind: PhantomData<fn() -> T>,
}

impl<T> Clone for Trimmed<T> {
    fn clone(&self) -> Self {
        Self {
            metadata: self.metadata.clone(),
            identity: self.identity.clone(),
            text: Arc::clone(&self.text),
            kind: PhantomData,
        }
    }
}

impl<T> fmt::Debug for Trimmed<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.identity, formatter)
    }
}

impl<'de, T> Deserialize<'de> for Trimmed<T> {
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

impl<T: Cached> Resource for Trimmed<T> {
    type DynamicType = ();
    type Scope = <T::Kind as Resource>::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        T::Kind::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        T::Kind::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        T::Kind::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        T::Kind::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
