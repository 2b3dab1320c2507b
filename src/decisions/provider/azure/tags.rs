//! Tags of a machine on Azure.

use std::collections::BTreeMap;

/// Sanitizes a tag key for Azure: in lower case, with `_` for `<>%\&?/` and spaces.
#[must_use]
pub fn sanitize_tag_key(key: &str) -> String {
    key.chars()
        // Go maps each character to exactly one lower-case character (`İ` becomes `i`).
        .map(|character| character.to_lowercase().next().unwrap_or(character))
        .map(
            |character| {
                if matches!(character, '<' | '>' | '%' | '\\' | '&' | '?' | '/' | ' ') { '_' } else { character }
            },
        )
        .collect()
}

/// The tags by which machine-controller-manager finds machines, and the labels of the pool as tags. If two labels map
/// to the same key, the last one in key order wins.
#[must_use]
pub fn machine_tags(technical_id: &str, pool_labels: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut tags = BTreeMap::from([
        ("Name".to_owned(), technical_id.to_owned()),
        (sanitize_tag_key(&format!("kubernetes.io-cluster-{technical_id}")), "1".to_owned()),
        ("kubernetes.io-role-node".to_owned(), "1".to_owned()),
    ]);
    tags.extend(pool_labels.iter().map(|(key, value)| (sanitize_tag_key(key), value.clone())));
    tags
}
