//! Compares images of two provider statuses as sets. The Go extension writes an image with its architecture or its
//! capabilities, depending on its place in the list, and in old-format profiles once per pool. We write it once, with
//! its capabilities.

use serde_json::{Value, json};

use super::compare::items;

pub(crate) const REFERENCES: [&str; 6] =
    ["urn", "id", "ami", "image", "communityGalleryImageID", "sharedGalleryImageID"];

/// The images that only one side has, or `None`.
pub fn difference(wanted: &Value, got: &Value) -> Option<(Value, Value)> {
    let (wanted, got) = (items(wanted), items(got));
    let missing: Vec<&Value> = wanted.iter().filter(|wanted| !got.iter().any(|got| is_same(wanted, got))).collect();
    let added: Vec<&Value> = got.iter().filter(|got| !wanted.iter().any(|wanted| is_same(wanted, got))).collect();
    (!missing.is_empty() || !added.is_empty()).then(|| (json!(missing), json!(added)))
}

/// Whether our image equals the measured one: same reference, and same capabilities or, if only that was written, same
/// architecture.
fn is_same(wanted: &Value, got: &Value) -> bool {
    if !is_same_reference(wanted, got) {
        return false;
    }
    match (&wanted["capabilities"], &wanted["architecture"]) {
        (Value::Object(_), _) => {
            wanted["capabilities"] == got["capabilities"]
                && wanted["skipMarketplaceAgreement"] == got["skipMarketplaceAgreement"]
        }
        (_, Value::Null) => got["capabilities"].is_null() && got["architecture"].is_null(),
        (_, architecture) => {
            got["capabilities"]["architecture"] == json!([architecture]) || got["architecture"] == *architecture
        }
    }
}

/// Whether name, version and reference are equal.
pub fn is_same_reference(wanted: &Value, got: &Value) -> bool {
    ["name", "version"].iter().chain(&REFERENCES).all(|member| wanted[*member] == got[*member])
}
