//! The parts of a profile's document that depend on its format.

use serde_json::{Map, Value};

use decisions::provider::profile::Members;

/// Path of the images in core's half.
pub(super) const CORE_IMAGES: &str = "/spec/machineImages";
/// Path of the images in the provider's half.
pub(super) const PROVIDER_IMAGES: &str = "/spec/providerConfig/machineImages";

/// The objects in a list; other items are ignored.
pub(super) fn objects<'a>(document: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Members> {
    document.pointer(pointer).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

/// Mutable access to the objects in a list; other items are ignored.
pub(super) fn objects_mut<'a>(document: &'a mut Value, pointer: &str) -> impl Iterator<Item = &'a mut Members> {
    let items = document.pointer_mut(pointer).and_then(Value::as_array_mut);
    items.into_iter().flatten().filter_map(Value::as_object_mut)
}

pub(super) fn versions(image: &Members) -> impl Iterator<Item = &Members> {
    image.get("versions").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

/// Changes every version in a list of images. `change` also gets the name of the image.
pub(super) fn each_version_mut(document: &mut Value, pointer: &str, mut change: impl FnMut(&str, &mut Members)) {
    for image in objects_mut(document, pointer) {
        let name = text(image, "name").to_owned();
        let versions = image.get_mut("versions").and_then(Value::as_array_mut).into_iter().flatten();
        versions.filter_map(Value::as_object_mut).for_each(|version| change(&name, version));
    }
}

/// The names of image and version.
pub(super) fn title(image: &str, version: &Members) -> (String, String) {
    (image.to_owned(), text(version, "version").to_owned())
}

/// A text field; empty if it is missing.
pub(super) fn text<'a>(members: &'a Members, name: &str) -> &'a str {
    members.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The flavors in a version.
pub(super) fn flavors(version: &Members) -> Vec<Members> {
    let flavors = version.get("capabilityFlavors").and_then(Value::as_array).into_iter().flatten();
    flavors.map(|flavor| flavor.as_object().cloned().unwrap_or_else(Map::new)).collect()
}

/// Moves the regions of `other` into `flavor`.
pub(super) fn append_regions(flavor: &mut Members, other: &mut Members) {
    let more = other.get_mut("regions").and_then(Value::as_array_mut).map(std::mem::take);
    if let (Some(Value::Array(regions)), Some(mut more)) = (flavor.get_mut("regions"), more) {
        regions.append(&mut more);
    }
}

/// Moves the regions of `other` into `flavor`, except those that it already has.
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

pub(super) fn region_names(flavor: &Members) -> Vec<Value> {
    let regions = flavor.get("regions").and_then(Value::as_array).into_iter().flatten();
    regions.map(|region| region["name"].clone()).collect()
}

/// A flavor without its capabilities, that is, its image.
pub(super) fn without_capabilities(flavor: &Members) -> Members {
    let mut image = flavor.clone();
    image.remove("capabilities");
    image
}

pub(super) fn at_path<'a>(document: &'a Value, path: &str) -> Option<&'a Value> {
    document.pointer(&format!("/{}", path.replace(['.', '['], "/").replace(']', "")))
}

/// The document without its status.
pub(super) fn without_status(document: &Value) -> Value {
    let mut document = document.clone();
    if let Some(members) = document.as_object_mut() {
        members.remove("status");
    }
    document
}
