//! Identity and version of an object.

use kube::Resource;
use serde::Deserialize;

/// Identity and resource version of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    pub name: String,
    /// Distinguishes a recreated object from the earlier one with the same name.
    pub uid: String,
    pub version: u64,
}

impl Identity {
    /// Reads the identity from the JSON text of an object.
    ///
    /// # Errors
    /// When the text is not an object with the metadata that an API server sets.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
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

    /// Identity of a decoded object; `None` if the object does not come from an API server.
    #[must_use]
    pub fn of(object: &impl Resource) -> Option<Self> {
        let metadata = object.meta();
        Some(Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone()?,
            uid: metadata.uid.clone()?,
            // Resource versions of one kind are increasing integers (documented since Kubernetes 1.35, true before).
            version: metadata.resource_version.as_deref()?.parse().ok()?,
        })
    }
}
