//! Labels of machines and disks at GCP: small letters, digits, `_` and `-` only.

use std::collections::BTreeMap;

use crate::api::gardener::WorkerPool;
use crate::provider::WorkerContext;

/// The longest key or value.
const LONGEST: usize = 63;

/// The labels of the machines of a pool and of all their disks: the Worker, the shoot, and the labels of the pool, which may
/// overwrite the two. Where two labels of the pool become the same key, the one that comes last in the order of keys counts.
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

/// A text as a value: letters become small, everything else that GCP does not take `_`, and what is too long is cut off.
#[must_use]
pub fn label_value(text: &str) -> String {
    text.chars().map(allowed).take(LONGEST).collect()
}

/// A text as a key: as a value, but it begins neither with a digit nor with `_`.
#[must_use]
pub fn label_key(text: &str) -> String {
    let allowed = text.chars().map(allowed);
    allowed.skip_while(|character| character.is_ascii_digit() || *character == '_').take(LONGEST).collect()
}

/// One character, with the simple case mapping: one small letter for each capital one.
fn allowed(character: char) -> char {
    let small = character.to_lowercase().next().unwrap_or(character);
    if small.is_ascii_lowercase() || small.is_ascii_digit() || matches!(small, '_' | '-') { small } else { '_' }
}
