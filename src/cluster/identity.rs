//! Who an object is, and in which version.

use kube::Resource;
use serde::Deserialize;

/// Who an object is, and which version of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Its namespace; empty for what is in none.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
    /// Its uid: an object that was made anew under the same name has another one.
    pub(crate) uid: String,
    /// Its resource version.
    pub(crate) version: u64,
}

impl Identity {
    /// Reads it from an object.
    ///
    /// # Errors
    /// When the text is no object of an API server.
    pub(crate) fn read(text: &str) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Object {
            metadata: Metadata,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Metadata {
            #[serde(default)]
            namespace: String,
            name: String,
            uid: String,
            resource_version: String,
        }
        let Object { metadata } = serde_json::from_str(text)?;
        let version = metadata.resource_version.parse().map_err(serde::de::Error::custom)?;
        Ok(Self { namespace: metadata.namespace, name: metadata.name, uid: metadata.uid, version })
    }

    /// That of a decoded object; `None` for what no API server has sent.
    #[must_use]
    pub(crate) fn of(object: &impl Resource) -> Option<Self> {
        let metadata = object.meta();
        Some(Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone()?,
            uid: metadata.uid.clone()?,
            // Versions of one kind are numbers that grow (documented since Kubernetes 1.35, true since ever).
            version: metadata.resource_version.as_deref()?.parse().ok()?,
        })
    }
}
