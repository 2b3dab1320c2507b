//! Compares images of two provider statuses as sets. The Go extension writes an image with its architecture or its
//! capabilities, depending on its place in the list, and in old-format profiles once per pool. We write it once, with
//! its capabilities.

use serde_json::{Value, json};

use super::compare::items;

pub(crate) const REFERENCES: [&str; 6] =
    ["urn", "id", "ami", "image", "communityGalleryImageID", "sharedGalleryImageID"];

/// The images that only one side has, or `None`.
pub fn difference(expected: &Value, got: &Value) -> Option<(Value, Value)> {
    let (expected, got) = (items(expected), items(got));
    let missing: Vec<&Value> =
        expected.iter().filter(|expected| !got.iter().any(|got| is_same(expected, got))).collect();
    let added: Vec<&Value> = got.iter().filter(|got| !expected.iter().any(|expected| is_same(expected, got))).collect();
    (!missing.is_empty() || !added.is_empty()).then(|| (json!(missing), json!(added)))
}

/// Whether our image equals the measured one: same reference, and same capabilities or, if only that was written, same
/// architecture.
fn is_same(expected: &Value, got: &Value) -> bool {
    if !is_same_reference(expected, got) {
        return false;
    }
    match (&expected["capabilities"], &expected["architecture"]) {
        (Value::Object(_), _) => {
            expected["capabilities"] == got["capabilities"]
                && expected["skipMarketplaceAgreement"] == got["skipMarketplaceAgreement"]
        }
        (_, Value::Null) => got["capabilities"].is_null() && got["architecture"].is_null(),
        (_, architecture) => {
            got["capabilities"]["architecture"] == json!([architecture]) || got["architecture"] == *architecture
        }
    }
}

/// Whether name, version and reference are equal.
pub fn is_same_reference(expected: &Value, got: &Value) -> bool {
    ["name", "version"].iter().chain(&REFERENCES).all(|member| expected[*member] == got[*member])
}
