//! Tags of a machine on AWS.

use std::collections::BTreeMap;

/// The tags by which machine-controller-manager finds machines, overridden by the labels of the pool, as in the Go
/// extension.
#[must_use]
pub fn machine_tags(technical_id: &str, pool_labels: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut tags = BTreeMap::from([
        (format!("kubernetes.io/cluster/{technical_id}"), "1".to_owned()),
        ("kubernetes.io/role/node".to_owned(), "1".to_owned()),
    ]);
    tags.extend(pool_labels.clone());
    tags
}
