//! Secret data whose values never appear in logs, errors or `Debug`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

use crate::api::packed_text::PackedText;

/// The data of one Secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretContent {
    /// Labels of the Secret.
    pub labels: BTreeMap<String, String>,
    data: BTreeMap<String, ByteString>,
    /// Whether the values were not read; if so, every key is treated as set.
    unread: bool,
}

/// Placeholder for values that were not read.
const UNREAD: &[u8] = b"unread";

impl SecretContent {
    /// A Secret whose values were not read. It is sufficient for plans that are not written.
    #[must_use]
    pub fn unread(labels: BTreeMap<String, String>) -> Self {
        Self { labels, data: BTreeMap::new(), unread: true }
    }

    /// The value of a key; `None` if the key is absent or its value is empty.
    #[must_use]
    pub fn non_empty(&self, key: &str) -> Option<&[u8]> {
        let value = self.data.get(key).map(|value| value.0.as_slice()).filter(|value| !value.is_empty());
        value.or(self.unread.then_some(UNREAD))
    }

    /// Whether the values were not read.
    #[must_use]
    pub fn is_unread(&self) -> bool {
        self.unread
    }

    /// Total size of the values in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.data.values().map(|value| value.0.len()).sum()
    }

    /// Whether the key exists, even with an empty value.
    #[must_use]
    pub fn has_key(&self, key: &str) -> bool {
        self.unread || self.data.contains_key(key)
    }

    /// Compresses the Secret.
    #[must_use]
    pub fn pack(&self) -> PackedSecret {
        // Serialising maps of texts can't fail; an incomplete result would fail to decompress, and the Secret is read
        // again.
        PackedSecret(PackedText::of(&serde_json::to_string(&(&self.labels, &self.data)).unwrap_or_default()))
    }
}

/// A compressed Secret.
#[derive(Debug)]
pub struct PackedSecret(PackedText);

impl PackedSecret {
    /// Decompresses the Secret; `None` if the compressed data is incomplete.
    #[must_use]
    pub fn unpack(&self) -> Option<SecretContent> {
        let (labels, data) = serde_json::from_str(&self.0.unpack()?).ok()?;
        Some(SecretContent { labels, data, unread: false })
    }

    /// Compressed size in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.size()
    }
}

impl From<Secret> for SecretContent {
    fn from(secret: Secret) -> Self {
        Self {
            labels: secret.metadata.labels.unwrap_or_default(),
            data: secret.data.unwrap_or_default(),
            unread: false,
        }
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

    /// Returns the Secret with that namespace and name.
    #[must_use]
    pub fn get(&self, namespace: &str, name: &str) -> Option<&SecretContent> {
        self.0.get(&(namespace.to_owned(), name.to_owned())).map(|content| &**content)
    }

    /// Namespaces and names of the Secrets.
    pub fn references(&self) -> impl Iterator<Item = &(String, String)> {
        self.0.keys()
    }

    /// These Secrets, completed by those of `others` that are missing here.
    #[must_use]
    pub fn completed_by(&self, others: &Self) -> Self {
        let mut all = others.0.clone();
        all.extend(self.0.clone());
        Self(all)
    }
}

/// A secret text that `Debug` omits.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Sensitive(String);

impl Sensitive {
    /// The secret text, for its intended use.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Sensitive {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for Sensitive {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Sensitive(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_secret_is_small_and_comes_back_as_it_was() {
        let content = SecretContent {
            labels: [("a".to_owned(), "b".to_owned())].into(),
            data: [
                ("script".to_owned(), ByteString("echo hello\n".repeat(1000).into())),
                ("raw".to_owned(), ByteString(vec![0, 255])),
            ]
            .into(),
            unread: false,
        };
        let packed = content.pack();
        assert!(packed.size() < content.size() / 3, "{} bytes", packed.size());
        assert_eq!(packed.unpack(), Some(content));
        assert!(!format!("{packed:?}").contains("hello"));
    }
}
