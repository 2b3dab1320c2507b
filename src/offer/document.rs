//! The parts of a profile's document that change with its format.

use serde_json::{Map, Value};

use crate::provider::profile::Members;

/// Where the images of core's half stand.
pub(super) const CORE_IMAGES: &str = "/spec/machineImages";
/// Where the images of the provider's half stand.
pub(super) const PROVIDER_IMAGES: &str = "/spec/providerConfig/machineImages";

/// The items of a list that are objects.
pub(super) fn objects<'a>(document: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Members> {
    document.pointer(pointer).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

/// The items of a list that are objects, to change them.
pub(super) fn objects_mut<'a>(document: &'a mut Value, pointer: &str) -> impl Iterator<Item = &'a mut Members> {
    let items = document.pointer_mut(pointer).and_then(Value::as_array_mut);
    items.into_iter().flatten().filter_map(Value::as_object_mut)
}

/// The versions of an image.
pub(super) fn versions(image: &Members) -> impl Iterator<Item = &Members> {
    image.get("versions").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

/// Changes every version in a list of images; `change` gets the name of its image, too.
pub(super) fn each_version_mut(document: &mut Value, pointer: &str, mut change: impl FnMut(&str, &mut Members)) {
    for image in objects_mut(document, pointer) {
        let name = text(image, "name").to_owned();
        let versions = image.get_mut("versions").and_then(Value::as_array_mut).into_iter().flatten();
        versions.filter_map(Value::as_object_mut).for_each(|version| change(&name, version));
    }
}

/// Image and version.
pub(super) fn title(image: &str, version: &Members) -> (String, String) {
    (image.to_owned(), text(version, "version").to_owned())
}

/// A member that is text.
pub(super) fn text<'a>(members: &'a Members, name: &str) -> &'a str {
    members.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The flavors that a version lists.
pub(super) fn flavors(version: &Members) -> Vec<Members> {
    let flavors = version.get("capabilityFlavors").and_then(Value::as_array).into_iter().flatten();
    flavors.map(|flavor| flavor.as_object().cloned().unwrap_or_else(Map::new)).collect()
}

/// Moves the regions of a flavor to another one.
pub(super) fn append_regions(flavor: &mut Members, other: &mut Members) {
    let more = other.get_mut("regions").and_then(Value::as_array_mut).map(std::mem::take);
    if let (Some(Value::Array(regions)), Some(mut more)) = (flavor.get_mut("regions"), more) {
        regions.append(&mut more);
    }
}

/// Moves the regions of a flavor to another one that has no image there.
pub(super) fn append_new_regions(flavor: &mut Members, other: &mut Members) {
    let known = region_names(flavor);
    if let Some(Value::Array(regions)) = other.get_mut("regions") {
        regions.retain(|region| !known.contains(&region["name"]));
    }
    append_regions(flavor, other);
}

/// The regions of a flavor, with their images.
pub(super) fn regions(flavor: &Members) -> Vec<Value> {
    flavor.get("regions").and_then(Value::as_array).cloned().unwrap_or_default()
}

/// The names of the regions of a flavor.
pub(super) fn region_names(flavor: &Members) -> Vec<Value> {
    let regions = flavor.get("regions").and_then(Value::as_array).into_iter().flatten();
    regions.map(|region| region["name"].clone()).collect()
}

/// What a flavor says besides its capabilities: which image it is.
pub(super) fn without_capabilities(flavor: &Members) -> Members {
    let mut image = flavor.clone();
    image.remove("capabilities");
    image
}

/// The value at a path such as `spec.machineImages[0].versions[1]`.
pub(super) fn at_path<'a>(document: &'a Value, path: &str) -> Option<&'a Value> {
    document.pointer(&format!("/{}", path.replace(['.', '['], "/").replace(']', "")))
}

/// A document without what its author did not write.
pub(super) fn without_status(document: &Value) -> Value {
    let mut document = document.clone();
    if let Some(members) = document.as_object_mut() {
        members.remove("status");
    }
    document
}
