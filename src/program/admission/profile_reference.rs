//! References to profiles. Their names come from users and become part of a URL path.

/// Maximum length of an object name.
const MAX_ERROR_CHARS: usize = 253;

/// A reference by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProfileReference {
    CloudProfile(String),
    /// A NamespacedCloudProfile, whose merged profile in the status is used.
    Namespaced {
        namespace: String,
        name: String,
    },
}

impl ProfileReference {
    /// Whether it is valid and safe to use in a URL path.
    pub(super) fn is_a_name(&self) -> bool {
        match self {
            Self::CloudProfile(name) => is_object_name(name),
            Self::Namespaced { namespace, name } => is_object_name(namespace) && is_object_name(name),
        }
    }
}

impl std::fmt::Display for ProfileReference {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::CloudProfile(name) => write!(formatter, "CloudProfile {name:?}"),
            Self::Namespaced { namespace, name } => {
                write!(formatter, "NamespacedCloudProfile {:?}", format!("{namespace}/{name}"))
            }
        }
    }
}

/// Whether it is a DNS subdomain (RFC 1123): lower-case letters, digits, dots and hyphens.
pub(super) fn is_object_name(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_part =
        |part: &str| !part.is_empty() && part.bytes().all(is_inner) && !part.starts_with('-') && !part.ends_with('-');
    name.len() <= MAX_ERROR_CHARS && name.split('.').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_named_by_a_name_and_nothing_else() {
        for name in ["azure", "azure-2", "a.b-c.d"] {
            assert!(is_object_name(name), "{name}");
        }
        for name in ["", "..", "../secrets", "a/b", "A", "a b", "-a", "a-", "a..b", "a?b", &"a".repeat(254)] {
            assert!(!is_object_name(name), "{name}");
        }
    }
}
