//! The parts of a profile's document that change with its format.

use serde_json::{Map, Value};

use crate::provider::profile::Members;

/// Where the images of core's half stand.
pub(in crate::offer) const CORE_IMAGES: &str = "/spec/machineImages";
/// Where the images of the provider's half stand.
pub(in crate::offer) const PROVIDER_IMAGES: &str = "/spec/providerConfig/machineImages";

/// The items of a list that are objects.
pub(in crate::offer) fn objects<'a>(document: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Members> {
    document.pointer(pointer).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

/// The items of a list that are objects, to change them.
pub(in crate::offer) fn objects_mut<'a>(
    document: &'a mut Value,
    pointer: &str,
) -> impl Iterator<Item = &'a mut Members> {
    let items = document.pointer_mut(pointer).and_then(Value::as_array_mut);
    items.into_iter().flatten().filter_map(Value::as_object_mut)
}

/// The versions of an image.
pub(in crate::offer) fn versions(image: &Members) -> impl Iterator<Item = &Members> {
    image.get("versions").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

/// The versions of an image, to change them.
pub(in crate::offer) fn versions_mut(image: &mut Members) -> Option<&mut Vec<Value>> {
    image.get_mut("versions").and_then(Value::as_array_mut)
}

/// A member that is text.
pub(in crate::offer) fn text<'a>(members: &'a Members, name: &str) -> &'a str {
    members.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The flavors that a version lists.
pub(in crate::offer) fn flavors(version: &Members) -> Vec<Members> {
    let flavors = version.get("capabilityFlavors").and_then(Value::as_array).into_iter().flatten();
    flavors.map(|flavor| flavor.as_object().cloned().unwrap_or_else(Map::new)).collect()
}

/// What a flavor says besides its capabilities: which image it is.
pub(in crate::offer) fn without_capabilities(flavor: &Members) -> Members {
    let mut image = flavor.clone();
    image.remove("capabilities");
    image
}

/// The value at a path such as `spec.machineImages[0].versions[1]`.
pub(in crate::offer) fn at_path<'a>(document: &'a Value, path: &str) -> Option<&'a Value> {
    document.pointer(&format!("/{}", path.replace(['.', '['], "/").replace(']', "")))
}
