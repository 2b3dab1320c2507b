//! Extracts from documents of a landscape every image name at a cloud, and every image with its version, wherever
//! they occur. If a document leaves open what it uses, every possible version is treated as used.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::requested_names::RequestedNames;
use wire::api::bounded_unpacking::unpacked_json;

/// Maximum nesting of encoded texts.
const MOST_LAYERS: usize = 8;
/// Prefix of gzip data in base64.
const PACKED: &str = "H4sI";
/// Prefix of a JSON object in base64.
const ENCODED: &str = "eyJ";

/// A document can't be decoded, so its uses are unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UsersError {
    /// A compressed part can't be decompressed.
    #[error("{0}: a packed state can't be read, so it is not known which images it needs")]
    Packed(String),
    /// No Shoot and no Worker.
    #[error("no Shoot and no Worker in the files: every version and image would be listed as unused")]
    NoUsers,
}

/// The images and versions that a document refers to.
#[derive(Debug, Default)]
pub(super) struct Needs {
    /// Possible image names at a cloud, in lower case; only those that were searched for.
    pub(super) ids: BTreeSet<String>,
    /// Names in the profile itself or a copy of it: not a use, but the images belong to the profile.
    pub(super) listed: BTreeSet<String>,
    /// Images with their versions.
    pub(super) versions: BTreeSet<(String, String)>,
    /// Images with a version prefix; an empty name is any image.
    pub(super) open: BTreeSet<(String, String)>,
    /// Kubernetes versions, or their first numbers.
    pub(super) kubernetes: BTreeSet<String>,
    /// How many texts were read within texts.
    layers: usize,
}

/// Extracts the uses that are relevant to a profile.
pub(super) struct Reader<'a> {
    /// Name of the profile.
    pub(super) profile: &'a str,
    /// `spec.type`.
    pub(super) provider: &'a str,
    /// Image names at clouds to search for.
    pub(super) requested: &'a RequestedNames,
    /// Parents of NamespacedCloudProfiles by `namespace/name`.
    pub(super) parents: &'a BTreeMap<String, String>,
}

/// `kind namespace/name`.
pub(super) fn title(document: &Value) -> String {
    let text = |path: &str| document.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let namespace = match text("/metadata/namespace") {
        "" => String::new(),
        namespace => format!("{namespace}/"),
    };
    super::record::text(&format!("{} {namespace}{}", text("/kind"), text("/metadata/name")))
}

/// The `namespace/name` of a NamespacedCloudProfile and its parent.
pub(super) fn parent(document: &Value) -> Option<(String, String)> {
    let text = |path: &str| document.pointer(path).and_then(Value::as_str).unwrap_or_default();
    (document["kind"] == "NamespacedCloudProfile").then(|| {
        (format!("{}/{}", text("/metadata/namespace"), text("/metadata/name")), text("/spec/parent/name").to_owned())
    })
}

impl Reader<'_> {
    /// Extracts from a document the uses of the profile's images.
    ///
    /// # Errors
    /// If a part of it can't be decoded.
    pub(super) fn needs(&self, document: &Value) -> Result<Needs, UsersError> {
        let mut needs = Needs::default();
        let title = title(document);
        let empty = Value::Null;
        match document["kind"].as_str() {
            Some("CloudProfile") => {
                let bastion = document.pointer("/spec/bastion").unwrap_or(&empty);
                self.walk(bastion, "bastion", &title, &mut needs)?;
                self.selectable(document, &title, &mut needs)?;
            }
            Some("NamespacedCloudProfile") => {
                self.walk(&document["spec"], "", &title, &mut needs)?;
                self.selectable(document, &title, &mut needs)?;
            }
            // A Cluster has a copy of the profile, which is not a use.
            Some("Cluster") => {
                needs = self.needs(&document["spec"]["shoot"])?;
                let mut copy = self.needs(&document["spec"]["cloudProfile"])?;
                needs.ids.append(&mut copy.ids);
                needs.listed.append(&mut copy.listed);
                return Ok(needs);
            }
            _ => self.walk(document, "", &title, &mut needs)?,
        }
        if self.is_of_another(document) {
            // Names at a cloud are global, but versions belong to the profile that offers them.
            needs.versions.clear();
            needs.open.clear();
            needs.kubernetes.clear();
        }
        Ok(needs)
    }

    /// An offer does not use its versions. But its images are in use if it is another profile.
    fn selectable(&self, document: &Value, title: &str, needs: &mut Needs) -> Result<(), UsersError> {
        let mut selectable = Needs::default();
        self.walk(document, "", title, &mut selectable)?;
        let known = if self.is_of_another(document) { &mut needs.ids } else { &mut needs.listed };
        known.append(&mut selectable.ids);
        Ok(())
    }

    /// Whether the document belongs to another profile.
    fn is_of_another(&self, document: &Value) -> bool {
        let text = |path: &str| document.pointer(path).and_then(Value::as_str).filter(|text| !text.is_empty());
        let provider = text(if document["kind"] == "Worker" { "/spec/type" } else { "/spec/provider/type" });
        if provider.is_some_and(|provider| provider != self.provider) {
            return true;
        }
        let by_name = |name: &str| name != self.profile;
        match document["kind"].as_str() {
            Some("CloudProfile") => text("/metadata/name").is_some_and(by_name),
            Some("NamespacedCloudProfile") => text("/spec/parent/name").is_some_and(by_name),
            Some("Shoot") => match (text("/spec/cloudProfile/kind"), text("/spec/cloudProfile/name")) {
                (Some("NamespacedCloudProfile"), Some(name)) => {
                    let full = format!("{}/{name}", text("/metadata/namespace").unwrap_or_default());
                    self.parents.get(&full).is_some_and(|parent| by_name(parent))
                }
                (_, Some(name)) => by_name(name),
                (_, None) => text("/spec/cloudProfileName").is_some_and(by_name),
            },
            _ => false,
        }
    }

    fn walk(&self, value: &Value, member: &str, title: &str, needs: &mut Needs) -> Result<(), UsersError> {
        match value {
            Value::String(text) => self.text(text, title, needs),
            Value::Array(items) => items.iter().try_for_each(|item| self.walk(item, member, title, needs)),
            Value::Object(members) => {
                let text = |name: &str| members.get(name).and_then(Value::as_str);
                match (text("name"), text("version"), members.get("versions").and_then(Value::as_array)) {
                    (Some(name), _, Some(versions)) => {
                        let versions = versions.iter().filter_map(|version| version["version"].as_str());
                        needs.versions.extend(versions.map(|version| (name.to_owned(), version.to_owned())));
                    }
                    (Some(name), version, _) if ["image", "machineImage"].contains(&member) => {
                        let version = version.unwrap_or_default();
                        let is_whole = version.split('.').count() >= 3;
                        let known = if is_whole { &mut needs.versions } else { &mut needs.open };
                        known.insert((name.to_owned(), version.to_owned()));
                    }
                    (Some(name), Some(version), _) => needs.versions.extend([(name.to_owned(), version.to_owned())]),
                    // Gardener chooses the image of a pool or bastion without one.
                    _ if leaves_image_open(member, members) => {
                        needs.open.insert((String::new(), String::new()));
                    }
                    _ => {}
                }
                if member == "kubernetes" {
                    needs.kubernetes.extend(text("version").map(str::to_owned));
                    let versions = members.get("versions").and_then(Value::as_array).into_iter().flatten();
                    let versions = versions.filter_map(|version| version["version"].as_str());
                    needs.kubernetes.extend(versions.map(str::to_owned));
                }
                needs.kubernetes.extend(text("kubernetesVersion").map(str::to_owned));
                for (name, value) in members {
                    self.names(name, needs);
                    self.walk(value, name, title, needs)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn text(&self, text: &str, title: &str, needs: &mut Needs) -> Result<(), UsersError> {
        self.names(text, needs);
        let unreadable = || UsersError::Packed(title.to_owned());
        let inner = if text.starts_with(PACKED) {
            let packed = STANDARD.decode(text).map_err(|_| unreadable())?;
            Some(serde_json::from_reader(unpacked_json(&packed)).map_err(|_| unreadable())?)
        } else if text.starts_with(ENCODED) {
            STANDARD.decode(text).ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok())
        } else if text.starts_with(['{', '[']) {
            serde_json::from_str(text).ok()
        } else {
            None
        };
        let Some(inner) = inner else { return Ok(()) };
        if needs.layers >= MOST_LAYERS {
            return Err(unreadable());
        }
        needs.layers += 1;
        self.walk(&inner, "", title, needs)?;
        needs.layers -= 1;
        Ok(())
    }

    /// Finds the searched names anywhere in a text.
    fn names(&self, text: &str, needs: &mut Needs) {
        self.requested.find_in(text, |name| {
            if !needs.ids.contains(name) {
                needs.ids.insert(name.to_owned());
            }
        });
    }
}

/// Whether it is a machine or bastion without an image.
fn leaves_image_open(member: &str, members: &Map<String, Value>) -> bool {
    let names = |image: &str| {
        let name = members.get(image).and_then(|image| image["name"].as_str());
        name.is_some_and(|name| !name.is_empty())
    };
    match member {
        "machine" => members.contains_key("type") && !names("image"),
        "bastion" => !names("machineImage"),
        _ => false,
    }
}
