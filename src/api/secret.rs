//! Secrets as they are read: their values never reach a log, an error or `Debug`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

/// The data of one Secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretContent {
    /// Labels of the Secret.
    pub labels: BTreeMap<String, String>,
    data: BTreeMap<String, ByteString>,
}

impl SecretContent {
    /// The value of a key, `None` when the key is absent or its value is empty.
    #[must_use]
    pub fn non_empty(&self, key: &str) -> Option<&[u8]> {
        self.data.get(key).map(|value| value.0.as_slice()).filter(|value| !value.is_empty())
    }

    /// Bytes of all values together.
    #[must_use]
    pub fn size(&self) -> usize {
        self.data.values().map(|value| value.0.len()).sum()
    }

    /// Whether the key is there, even with an empty value.
    #[must_use]
    pub fn has_key(&self, key: &str) -> bool {
        self.data.contains_key(key)
    }
}

impl From<Secret> for SecretContent {
    fn from(secret: Secret) -> Self {
        Self { labels: secret.metadata.labels.unwrap_or_default(), data: secret.data.unwrap_or_default() }
    }
}

impl fmt::Debug for SecretContent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SecretContent").field("keys", &self.data.keys().collect::<Vec<_>>()).finish()
    }
}

/// The Secrets that a Worker refers to, by namespace and name.
#[derive(Clone, Debug, Default)]
pub struct Secrets(BTreeMap<(String, String), Arc<SecretContent>>);

impl Secrets {
    /// Adds a Secret.
    pub fn insert(&mut self, namespace: &str, name: &str, content: impl Into<Arc<SecretContent>>) {
        self.0.insert((namespace.to_owned(), name.to_owned()), content.into());
    }

    /// The Secret of that namespace and name.
    #[must_use]
    pub fn get(&self, namespace: &str, name: &str) -> Option<&SecretContent> {
        self.0.get(&(namespace.to_owned(), name.to_owned())).map(|content| &**content)
    }

    /// These Secrets, and of the others those that are not among them.
    #[must_use]
    pub fn completed_by(&self, others: &Self) -> Self {
        let mut all = others.0.clone();
        all.extend(self.0.clone());
        Self(all)
    }
}
