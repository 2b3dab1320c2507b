//! Tags of a machine at Azure.

use std::collections::BTreeMap;

/// A tag key without the characters that Azure refuses: lower case, and `<>%\&?/` and spaces become `_`.
#[must_use]
pub fn sanitize_tag_key(key: &str) -> String {
    key.chars()
        // Go lower-cases each character by itself and to a single one (`İ` becomes `i`).
        .map(|character| character.to_lowercase().next().unwrap_or(character))
        .map(
            |character| {
                if matches!(character, '<' | '>' | '%' | '\\' | '&' | '?' | '/' | ' ') { '_' } else { character }
            },
        )
        .collect()
}

/// The tags that machine-controller-manager finds machines by, and the labels of the pool as tags.
/// Where two labels become the same key, the last one in the order of label keys stays.
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
