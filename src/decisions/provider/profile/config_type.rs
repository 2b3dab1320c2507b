//! The type of a provider's document in CloudProfiles: how to open it, and how to merge the document of a
//! NamespacedCloudProfile into that of its parent.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{ImageDocument, ProfileConfig, UnknownConfig};
use crate::provider::document::{Document, DocumentError, decode_document};
use wire::api::gotext::json::decode_lenient;
use wire::capabilities::DEFAULT_ARCHITECTURE;

/// How to merge a version that both documents list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SameVersion {
    /// Keep both entries.
    Added,
    /// Keep the entry of the NamespacedCloudProfile.
    Replaced,
}

type Opened = Result<Box<dyn ProfileConfig>, DocumentError>;

/// The type of a provider's document in CloudProfiles.
#[derive(Clone, Copy)]
pub struct ConfigType {
    open: fn(Option<&RawValue>) -> Opened,
    same_version: SameVersion,
    complete: fn(&mut Value),
}

impl ConfigType {
    /// Documents that decode as `Config`.
    #[must_use]
    pub fn of<Config: ImageDocument + Document + 'static>(same_version: SameVersion) -> Self {
        let open = |raw: Option<&RawValue>| {
            let config: Option<Config> = raw.map(decode_document).transpose()?;
            Ok(Box::new(config.unwrap_or_default()) as Box<dyn ProfileConfig>)
        };
        Self { open, same_version, complete: |_| {} }
    }

    /// Documents of an unknown provider.
    pub(super) fn unknown() -> Self {
        Self { open: |_| Ok(Box::new(UnknownConfig)), same_version: SameVersion::Added, complete: |_| {} }
    }

    /// Sets a function that adds defaults to merged documents, where the decoder adds them only in memory.
    #[must_use]
    pub fn completed_by(self, complete: fn(&mut Value)) -> Self {
        Self { complete, ..self }
    }

    pub(super) fn open(self, raw: Option<&RawValue>) -> Opened {
        (self.open)(raw)
    }

    pub(super) fn merge(self, parent: &RawValue, namespaced: &RawValue) -> Result<Value, DocumentError> {
        let [parent, namespaced] = [parent, namespaced].map(|raw| {
            self.open(Some(raw))?;
            let mut document: Value = decode_lenient(raw.get())?;
            (self.complete)(&mut document);
            Ok::<_, DocumentError>(document)
        });
        Ok(merge_configs(parent?, namespaced?, self.same_version))
    }
}

/// Adds `amd64` to versions in the old format without an architecture, as merged documents contain it.
pub fn name_architectures(document: &mut Value) {
    let images = document.get_mut("machineImages").and_then(Value::as_array_mut).into_iter().flatten();
    let versions = images.filter_map(|image| image.get_mut("versions")?.as_array_mut()).flatten();
    for version in versions.filter_map(Value::as_object_mut) {
        let has_flavors =
            version.get("capabilityFlavors").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
        if !has_flavors && version.get("architecture").is_none_or(Value::is_null) {
            version.insert("architecture".to_owned(), DEFAULT_ARCHITECTURE.into());
        }
    }
}

/// Adds images, versions and machine types of `namespaced` to `parent` in their order; the first machine type with a
/// name wins. Existing entries are not added again, so merging is idempotent.
///
/// Both must have been decoded before, so that their members have the right types.
#[must_use]
fn merge_configs(mut parent: Value, namespaced: Value, same_version: SameVersion) -> Value {
    let (Some(members), Value::Object(mut changes)) = (parent.as_object_mut(), namespaced) else { return parent };
    extend_list(members, "machineImages", taken_list(&mut changes, "machineImages"), |images, image| {
        add_image(images, image, same_version);
    });
    extend_list(members, "machineTypes", taken_list(&mut changes, "machineTypes"), |known, machine_type| {
        if !known.iter().any(|known| known.get("name") == machine_type.get("name")) {
            known.push(machine_type);
        }
    });
    parent
}

fn add_image(images: &mut Vec<Value>, mut image: Value, same_version: SameVersion) {
    let known = images.iter_mut().find(|known| known.get("name") == image.get("name"));
    let (Some(known), Some(changes)) = (known.and_then(Value::as_object_mut), image.as_object_mut()) else {
        images.push(image);
        return;
    };
    extend_list(known, "versions", taken_list(changes, "versions"), |versions, version| {
        if versions.contains(&version) {
            return;
        }
        if same_version == SameVersion::Replaced {
            versions.retain(|known| known.get("version") != version.get("version"));
        }
        versions.push(version);
    });
}

/// Appends items to the list member `name`; without items the member stays unchanged.
fn extend_list(
    members: &mut Map<String, Value>,
    name: &str,
    items: Vec<Value>,
    mut add: impl FnMut(&mut Vec<Value>, Value),
) {
    if items.is_empty() {
        return;
    }
    let mut list = taken_list(members, name);
    items.into_iter().for_each(|item| add(&mut list, item));
    members.insert(name.to_owned(), list.into());
}

/// Takes the list member `name`; empty if it is absent or null.
fn taken_list(members: &mut Map<String, Value>, name: &str) -> Vec<Value> {
    match members.get_mut(name).map(Value::take) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn merge_is_idempotent() {
        let image = |versions: Value| json!({"machineImages": [{"name": "linux", "versions": versions}]});
        let parent = image(json!([{"version": "1", "id": "a"}, {"version": "2", "id": "b"}]));
        let changes = image(json!([{"version": "2", "id": "c"}, {"version": "3", "id": "d"}]));
        for (same_version, expected) in
            [(SameVersion::Added, json!(["a", "b", "c", "d"])), (SameVersion::Replaced, json!(["a", "c", "d"]))]
        {
            let once = merge_configs(parent.clone(), changes.clone(), same_version);
            let ids =
                once["machineImages"][0]["versions"].as_array().unwrap().iter().map(|version| version["id"].clone());
            assert_eq!(Value::from_iter(ids), expected);
            assert_eq!(merge_configs(once.clone(), changes.clone(), same_version), once);
        }
    }

    #[test]
    fn new_images_come_last_and_the_first_machine_type_of_a_name_counts() {
        let parent =
            json!({"kind": "x", "machineImages": null, "machineTypes": [{"name": "a", "acceleratedNetworking": true}]});
        let changes = json!({"machineImages": [{"name": "mine"}], "machineTypes": [{"name": "a"}, {"name": "b"}]});
        assert_eq!(
            merge_configs(parent, changes, SameVersion::Added),
            json!({"kind": "x", "machineImages": [{"name": "mine"}],
                "machineTypes": [{"name": "a", "acceleratedNetworking": true}, {"name": "b"}]})
        );
    }
}
