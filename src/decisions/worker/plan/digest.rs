//! Pure: digests of the content of objects. Two objects have the same digest if Go treats them as equal
//! ([`is_same`](crate::worker::plan::difference::is_same)), so objects can be compared without keeping them.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::worker::plan::difference::is_nothing;

/// SHA-256 over a canonical form.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex::encode(&self.0[..6]))
    }
}

/// Digest of an object without a `spec` whose fields are at the top level: all fields, and of the metadata labels and
/// annotations.
#[must_use]
pub fn of_document(document: &Value) -> Digest {
    let mut hash = Sha256::new();
    for member in ["labels", "annotations"] {
        feed_value(&mut hash, &document["metadata"][member]);
    }
    let members = document.as_object().into_iter().flatten();
    feed_members(
        &mut hash,
        members.filter(|(member, _)| !["metadata", "apiVersion", "kind"].contains(&member.as_str())),
    );
    Digest(hash.finalize().into())
}

/// Digest of a Secret: type, data, labels and annotations.
#[must_use]
pub fn of_secret(secret: &Secret) -> Digest {
    let mut hash = Sha256::new();
    let ObjectMeta { labels, annotations, .. } = &secret.metadata;
    for map in [labels, annotations] {
        feed_texts(&mut hash, map.iter().flatten().map(|(key, value)| (key, value.as_bytes())));
    }
    feed_bytes(&mut hash, secret.type_.as_deref().unwrap_or_default().as_bytes());
    let data: Option<&BTreeMap<String, ByteString>> = secret.data.as_ref();
    feed_texts(&mut hash, data.into_iter().flatten().map(|(key, value)| (key, value.0.as_slice())));
    Digest(hash.finalize().into())
}

fn feed_texts<'a>(hash: &mut Sha256, members: impl Iterator<Item = (&'a String, &'a [u8])>) {
    hash.update(b"{");
    for (key, value) in members {
        feed_bytes(hash, key.as_bytes());
        feed_bytes(hash, value);
    }
    hash.update(b"}");
}

fn feed_value(hash: &mut Sha256, value: &Value) {
    match value {
        value if is_nothing(value) => hash.update(b"n"),
        Value::Null => {}
        Value::Bool(value) => hash.update(if *value { b"t" } else { b"f" }),
        Value::Number(number) => {
            hash.update(b"#");
            feed_bytes(hash, number.to_string().as_bytes());
        }
        Value::String(text) => {
            hash.update(b"s");
            feed_bytes(hash, text.as_bytes());
        }
        Value::Array(items) => {
            hash.update(b"[");
            items.iter().for_each(|item| feed_value(hash, item));
            hash.update(b"]");
        }
        Value::Object(members) => feed_members(hash, members.iter()),
    }
}

fn feed_members<'a>(hash: &mut Sha256, members: impl Iterator<Item = (&'a String, &'a Value)>) {
    let mut members: Vec<_> = members.filter(|(_, value)| !is_nothing(value)).collect();
    members.sort_unstable_by_key(|(key, _)| *key);
    hash.update(b"{");
    for (key, value) in members {
        feed_bytes(hash, key.as_bytes());
        feed_value(hash, value);
    }
    hash.update(b"}");
}

/// Prefixes the length, so that different sequences never feed the same bytes.
fn feed_bytes(hash: &mut Sha256, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::worker::plan::difference::is_same;

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (0..3_i64).prop_map(Value::from),
            "[ab]{0,2}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[ab]{1,2}", inner, 0..3).prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        #[test]
        fn digest_equality_matches_document_equality(left in any_value(), right in any_value()) {
            let documents = [json!({"providerSpec": left}), json!({"providerSpec": right})];
            let [left, right] = &documents;
            prop_assert_eq!(is_same(left, right), of_document(left) == of_document(right));
        }
    }

    #[test]
    fn empty_values_have_equal_digests() {
        let digest = |labels: Value, item: Value| {
            of_document(&json!({"metadata": {"labels": labels}, "providerSpec": {"items": [item]}}))
        };
        let nothing = [json!(null), json!({}), json!([]), json!({"a": null})];
        for form in &nothing {
            assert_eq!(digest(form.clone(), json!(1)), digest(json!(null), json!(1)), "labels {form}");
            assert_eq!(digest(json!(null), form.clone()), digest(json!(null), json!(null)), "item {form}");
        }
        assert_ne!(digest(json!({"a": "b"}), json!(1)), digest(json!(null), json!(1)));
    }

    #[test]
    fn ignores_fields_set_by_api_server() {
        let target = json!({"metadata": {"name": "c", "labels": {"a": "b"}}, "provider": "Azure", "secretRef": null});
        let mut live = json!({
            "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "MachineClass", "provider": "Azure",
            "metadata": {"name": "c", "labels": {"a": "b"}, "uid": "u", "finalizers": ["f"], "managedFields": [{}]},
        });
        assert_eq!(of_document(&target), of_document(&live));
        live["metadata"]["annotations"] = json!({"foreign": "edit"});
        assert_ne!(of_document(&target), of_document(&live));
    }

    #[test]
    fn secret_digest_covers_type_labels_data() {
        let secret = |document: Value| of_secret(&serde_json::from_value(document).unwrap());
        let target = json!({"metadata": {"labels": {"a": "b"}}, "type": "Opaque", "data": {"userData": "eA=="}});
        let mut live = target.clone();
        live["metadata"]["annotations"] = json!({});
        live["metadata"]["resourceVersion"] = json!("7");
        assert_eq!(secret(target.clone()), secret(live));
        for (pointer, value) in [("/metadata/labels/a", "c"), ("/type", "other"), ("/data/userData", "eQ==")] {
            let mut changed = target.clone();
            *changed.pointer_mut(pointer).unwrap() = json!(value);
            assert_ne!(secret(target.clone()), secret(changed), "{pointer}");
        }
    }
}
