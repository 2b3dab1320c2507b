//! Parses the path and query of a request.

use super::kinds::{KINDS, Kind};

/// A parsed path.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) kind: &'static Kind,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
}

/// Query parameters.
pub(crate) struct Query(Vec<(String, String)>);

/// A client's request.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) content_type: String,
    /// Whether the client requests only metadata.
    pub(crate) only_metadata: bool,
    pub(crate) body: Vec<u8>,
}

/// The kinds of a group and version, for a discovery request.
pub(crate) fn group_of(path: &str) -> Option<Vec<&'static Kind>> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let [group, version] = match parts.as_slice() {
        ["apis", group, version] => [*group, *version],
        ["api", version] => ["", *version],
        _ => return None,
    };
    let kinds: Vec<_> = KINDS.into_iter().filter(|kind| kind.group == group && kind.version == version).collect();
    (!kinds.is_empty()).then_some(kinds)
}

impl Path {
    pub(crate) fn of(path: &str) -> Option<Self> {
        let parts: Vec<String> = path.trim_matches('/').split('/').map(decoded).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some((*namespace).to_owned()), rest),
            rest => (None, rest),
        };
        let (plural, rest) = rest.split_first()?;
        let kind =
            KINDS.into_iter().find(|kind| kind.group == group && kind.version == version && kind.plural == *plural)?;
        let mut rest = rest.iter().map(|part| (*part).to_owned());
        Some(Self { kind, namespace, name: rest.next(), subresource: rest.next() })
    }
}

impl Query {
    pub(crate) fn of(query: &str) -> Self {
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        Self(
            pairs
                .map(|pair| {
                    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                    (decoded(key), decoded(value))
                })
                .collect(),
        )
    }

    pub(crate) fn get(&self, key: &str) -> &str {
        self.0.iter().find(|(name, _)| name == key).map_or("", |(_, value)| value)
    }

    pub(crate) fn is_true(&self, key: &str) -> bool {
        matches!(self.get(key), "true" | "1")
    }
}

/// Decodes percent escapes.
fn decoded(text: impl AsRef<str>) -> String {
    let bytes = text.as_ref().as_bytes();
    let (mut decoded, mut at) = (Vec::new(), 0);
    while let Some(byte) = bytes.get(at) {
        let hex = bytes.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        match (byte, hex.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(escaped)) => {
                decoded.push(escaped);
                at += 3;
            }
            (b'+', _) => {
                decoded.push(b' ');
                at += 1;
            }
            (byte, _) => {
                decoded.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
