//! An object of a watch, cut to what is kept of it before it reaches anybody.

use std::borrow::Cow;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::cluster::machine_objects::{Cached, Readable, read};
use crate::cluster::store::Identity;

/// What is kept of an object.
#[derive(Clone)]
pub(crate) struct Trimmed<T> {
    metadata: ObjectMeta,
    pub(crate) identity: Identity,
    pub(crate) object: Readable<T>,
}

impl<T> fmt::Debug for Trimmed<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.identity, formatter)
    }
}

impl<'de, T: Cached> Deserialize<'de> for Trimmed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let (identity, object) = read(raw.get()).map_err(serde::de::Error::custom)?;
        let metadata = ObjectMeta {
            namespace: Some(identity.namespace.clone()),
            name: Some(identity.name.clone()),
            uid: Some(identity.uid.clone()),
            resource_version: Some(identity.version.to_string()),
            ..ObjectMeta::default()
        };
        Ok(Self { metadata, identity, object })
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
