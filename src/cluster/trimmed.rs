//! An object of a watch, of which only its identity is decoded before it reaches the store.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::{ApiResource, DynamicResourceScope};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::cluster::identity::Identity;

/// An object of any kind as text, until what is kept of it is read. One type for all kinds: a watch of each would be code of its
/// own.
#[derive(Clone)]
pub(crate) struct Trimmed {
    metadata: ObjectMeta,
    pub(crate) identity: Identity,
    pub(crate) text: Arc<RawValue>,
}

impl fmt::Debug for Trimmed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.identity, formatter)
    }
}

impl<'de> Deserialize<'de> for Trimmed {
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
        Ok(Self { metadata, identity, text: raw.into() })
    }
}

impl Resource for Trimmed {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(of: &ApiResource) -> Cow<'_, str> {
        of.kind.as_str().into()
    }

    fn group(of: &ApiResource) -> Cow<'_, str> {
        of.group.as_str().into()
    }

    fn version(of: &ApiResource) -> Cow<'_, str> {
        of.version.as_str().into()
    }

    fn plural(of: &ApiResource) -> Cow<'_, str> {
        of.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
