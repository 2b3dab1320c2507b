//! The cases of a family are stored as edits, which turn one document into exactly another one.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Value, json};
use test_support::measured::convert::edits;
use test_support::measured::edits::edited;

/// Documents with few words, so that two of them have much in common.
fn document() -> impl Strategy<Value = Value> {
    let word = prop_oneof![Just("a"), Just("pool-a"), Just("pool-b"), Just("a/b~c"), Just("")];
    let leaf = prop_oneof![
        word.clone().prop_map(Value::from),
        (0..3).prop_map(Value::from),
        Just(json!(1.0)),
        Just(Value::Null)
    ];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            btree_map(word.clone().prop_map(str::to_owned), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn edits_make_one_document_of_another(base in document(), target in document()) {
        let edits = edits(&base, &target);
        let made = edited(&base, &edits).unwrap();
        prop_assert_eq!(made.to_string(), target.to_string(), "{}", edits);
    }
}
