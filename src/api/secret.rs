//! Secrets as they are read: their values never reach a log, an error or `Debug`.

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
    /// Nobody has read the values: whatever key is asked for counts as filled.
    unread: bool,
}

/// What stands for the value of a Secret that nobody has read.
const UNREAD: &[u8] = b"unread";

impl SecretContent {
    /// A Secret of which only the metadata was read. It is enough for what is planned without being written.
    #[must_use]
    pub fn unread(labels: BTreeMap<String, String>) -> Self {
        Self { labels, data: BTreeMap::new(), unread: true }
    }

    /// The value of a key, `None` when the key is absent or its value is empty.
    #[must_use]
    pub fn non_empty(&self, key: &str) -> Option<&[u8]> {
        let value = self.data.get(key).map(|value| value.0.as_slice()).filter(|value| !value.is_empty());
        value.or(self.unread.then_some(UNREAD))
    }

    /// Whether nobody has read the values.
    #[must_use]
    pub fn is_unread(&self) -> bool {
        self.unread
    }

    /// Bytes of all values together.
    #[must_use]
    pub fn size(&self) -> usize {
        self.data.values().map(|value| value.0.len()).sum()
    }

    /// Whether the key is there, even with an empty value.
    #[must_use]
    pub fn has_key(&self, key: &str) -> bool {
        self.unread || self.data.contains_key(key)
    }

    /// The same in less memory.
    #[must_use]
    pub fn pack(&self) -> PackedSecret {
        // Maps of texts can always be written; what is not whole is read again.
        PackedSecret(PackedText::of(&serde_json::to_string(&(&self.labels, &self.data)).unwrap_or_default()))
    }
}

/// A Secret that takes little memory.
#[derive(Debug)]
pub struct PackedSecret(PackedText);

impl PackedSecret {
    /// The Secret as it was; `None` where it was not packed as a whole.
    #[must_use]
    pub fn unpack(&self) -> Option<SecretContent> {
        let (labels, data) = serde_json::from_str(&self.0.unpack()?).ok()?;
        Some(SecretContent { labels, data, unread: false })
    }

    /// Bytes that it takes.
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

    /// The Secret of that namespace and name.
    #[must_use]
    pub fn get(&self, namespace: &str, name: &str) -> Option<&SecretContent> {
        self.0.get(&(namespace.to_owned(), name.to_owned())).map(|content| &**content)
    }

    /// Namespaces and names.
    pub fn references(&self) -> impl Iterator<Item = &(String, String)> {
        self.0.keys()
    }

    /// These Secrets, and of the others those that are not among them.
    #[must_use]
    pub fn completed_by(&self, others: &Self) -> Self {
        let mut all = others.0.clone();
        all.extend(self.0.clone());
        Self(all)
    }
}

/// A text that nobody must read: its `Debug` is empty of it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Sensitive(String);

impl Sensitive {
    /// The text, for the one that it is meant for.
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
