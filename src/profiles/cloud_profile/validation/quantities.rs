//! Validates amounts of machine types and volumes. Values that are not quantities are rejected before, when the object
//! is decoded ([`members`](crate::cloud_profile::members)).

use serde_json::Value;

use wire::api::gotext::field::{FieldErrors, FieldPath};
use wire::api::gotext::quantity::Quantity;

/// An amount must not be negative; an absent one is zero.
pub(super) fn validate_amount(amount: &Value, path: FieldPath<'_>, errors: &mut FieldErrors) {
    let Ok(quantity) = serde_json::from_value::<Quantity>(amount.clone()) else { return };
    if quantity.to_string().starts_with('-') {
        errors.invalid(path, amount, "must be greater than or equal to 0");
    }
}

/// The volume of a machine type must have either a size or a minimum size.
pub(super) fn validate_storage(storage: &Value, path: FieldPath<'_>, errors: &mut FieldErrors) {
    let given =
        |member: &'static str| storage.get(member).filter(|amount| !amount.is_null()).map(|amount| (member, amount));
    match (given("size"), given("minSize")) {
        (None, None) => errors.invalid(path, storage, "must either configure \"size\" or \"minSize\""),
        (Some(_), Some(_)) => errors.invalid(path, storage, "not allowed to configure both \"size\" and \"minSize\""),
        (Some((member, amount)), None) | (None, Some((member, amount))) => {
            validate_amount(amount, path.child(member), errors);
        }
    }
}
