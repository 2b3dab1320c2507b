//! Labels of machines and disks on GCP, which allows only lower-case letters, digits, `_` and `-`.

use std::collections::BTreeMap;

use crate::provider::WorkerContext;
use wire::api::gardener::WorkerPool;

/// Maximum length of a key or value.
const LONGEST: usize = 63;

/// The labels of the machines of a pool and of all their disks: the Worker, the shoot, and the labels of the pool,
/// which may override the former. If two labels of the pool map to the same key, the last one in key order wins.
pub(super) fn machine_labels(context: &WorkerContext<'_>, pool: &WorkerPool) -> BTreeMap<String, String> {
    let worker = context.worker.metadata.name.as_deref().unwrap_or_default();
    let mut labels = BTreeMap::from([
        ("name".to_owned(), label_value(worker)),
        ("k8s-cluster-name".to_owned(), label_value(&context.shoot.status.technical_id)),
    ]);
    let of_pool = pool.labels.iter().map(|(key, value)| (label_key(key), label_value(value)));
    labels.extend(of_pool.filter(|(key, _)| !key.is_empty()));
    labels
}

/// Converts a text to a value: in lower case, with `_` for other unsupported characters, and truncated.
#[must_use]
pub fn label_value(text: &str) -> String {
    text.chars().map(allowed).take(LONGEST).collect()
}

/// Converts a text to a key: like a value, without leading digits and `_`.
#[must_use]
pub fn label_key(text: &str) -> String {
    let allowed = text.chars().map(allowed);
    allowed.skip_while(|character| character.is_ascii_digit() || *character == '_').take(LONGEST).collect()
}

/// Converts one character with the simple case mapping, which never expands to several characters.
fn allowed(character: char) -> char {
    let small = character.to_lowercase().next().unwrap_or(character);
    if small.is_ascii_lowercase() || small.is_ascii_digit() || matches!(small, '_' | '-') { small } else { '_' }
}
