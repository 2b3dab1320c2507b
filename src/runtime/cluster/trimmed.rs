//! A watched object of which only the identity is decoded before it reaches the store.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::{ApiResource, DynamicResourceScope};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::cluster::identity::Identity;

/// An object of any kind as text. One type for all kinds keeps the watch code from being compiled once per kind.
#[derive(Clone)]
pub struct UndecodedObject {
    metadata: ObjectMeta,
    pub(crate) identity: Identity,
    pub text: Arc<RawValue>,
}

impl fmt::Debug for UndecodedObject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.identity, formatter)
    }
}

impl<'de> Deserialize<'de> for UndecodedObject {
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

impl Resource for UndecodedObject {
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

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Secret;

    use super::*;
    use wire::api::gardener::Worker;

    const SECRET: &str = concat!(
        r#"{"metadata": {"namespace": "ns", "name": "s", "uid": "u", "resourceVersion": "7"}, "#,
        r#""data": {"a": "planted-secret"}}"#
    );

    #[test]
    fn trimmed_object_keeps_kind() {
        for kind in [ApiResource::erase::<Worker>(&()), ApiResource::erase::<Secret>(&())] {
            assert_eq!(ApiResource::erase::<UndecodedObject>(&kind), kind);
        }
        let kind = ApiResource::erase::<Worker>(&());
        assert_eq!(UndecodedObject::url_path(&kind, Some("ns")), Worker::url_path(&(), Some("ns")));
    }

    #[test]
    fn debug_output_has_only_identity() {
        let mut trimmed: UndecodedObject = serde_json::from_str(SECRET).unwrap();
        let [namespace, name, uid] = ["ns", "s", "u"].map(str::to_owned);
        let identity = Identity { namespace, name, uid, version: 7 };
        assert_eq!((&trimmed.identity, Identity::of(&trimmed).as_ref()), (&identity, Some(&identity)));
        assert_eq!(trimmed.text.get(), SECRET);
        assert_eq!(format!("{trimmed:?}"), format!("{identity:?}"));
        trimmed.meta_mut().name = Some("other".to_owned());
        assert_eq!(trimmed.meta().name.as_deref(), Some("other"));
        assert!(serde_json::from_str::<UndecodedObject>(r#"{"metadata": {"name": "s"}}"#).is_err(), "of no API server");
    }
}
