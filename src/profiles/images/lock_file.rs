//! The file `images.lock`. It is sorted, so that a diff only shows actual changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::API_VERSION;
use super::lock::{Lock, LockedImage};
use super::record::{PUBLIC, text, time};
use super::reference::ImageReference;
use super::resolution::FlavorKey;
use wire::api::gardener::Capabilities;
use wire::api::gotext::json::decode_value;

/// Kind of the document.
pub const KIND: &str = "ImagesLock";

/// The lock file is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct LockFileError {
    /// Path of the invalid field.
    pub path: String,
    /// The problem.
    pub problem: String,
}

/// A lock as a document.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LockDocument {
    api_version: String,
    kind: String,
    images: Vec<LockedFlavor>,
}

/// The images of a flavor.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LockedFlavor {
    provider: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    realm: Option<String>,
    image: String,
    version: String,
    flavor: BTreeMap<String, Vec<String>>,
    regions: Vec<Entry>,
}

/// The image of a region. The key that names the image depends on the provider.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
struct Entry(BTreeMap<String, String>);

/// Keys that are the same for every provider, in the order of writing.
const REGION: &str = "region";
const OTHERS: [&str; 3] = ["name", "created", "locked"];

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let reference = self.0.keys().map(String::as_str).find(|member| *member != REGION && !OTHERS.contains(member));
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for member in [REGION].into_iter().chain(reference).chain(OTHERS) {
            if let Some(value) = self.0.get(member) {
                map.serialize_entry(member, value)?;
            }
        }
        map.end()
    }
}

impl From<&Lock> for LockDocument {
    fn from(lock: &Lock) -> Self {
        let mut images: Vec<LockedFlavor> = Vec::new();
        for (key, image) in &lock.images {
            let flavor = LockedFlavor {
                provider: key.provider.to_owned(),
                realm: Some(key.realm.clone()).filter(|realm| realm != PUBLIC),
                image: key.image.clone(),
                version: key.version.clone(),
                flavor: key.flavor.0.clone(),
                regions: Vec::new(),
            };
            let same = |known: &LockedFlavor| {
                (&known.provider, &known.realm, &known.image, &known.version, &known.flavor)
                    == (&flavor.provider, &flavor.realm, &flavor.image, &flavor.version, &flavor.flavor)
            };
            // Keys are sorted, so the regions of a flavor are adjacent.
            if !images.last().is_some_and(same) {
                images.push(flavor);
            }
            let members = [
                (REGION, key.region.clone()),
                (image.reference.member, Some(image.reference.value.clone())),
                ("name", Some(image.name.clone()).filter(|name| !name.is_empty())),
                ("created", image.created.map(|created| created.to_string())),
                ("locked", Some(image.locked.to_string())),
            ];
            let members = members.into_iter().filter_map(|(member, value)| Some((member.to_owned(), value?)));
            if let Some(flavor) = images.last_mut() {
                flavor.regions.push(Entry(members.collect()));
            }
        }
        Self { api_version: API_VERSION.to_owned(), kind: KIND.to_owned(), images }
    }
}

/// Reads a lock.
///
/// # Errors
/// The error has the path of the invalid field.
pub fn read(document: &Value) -> Result<Lock, LockFileError> {
    let error = |path: String, problem: String| LockFileError { path, problem };
    let decoded: LockDocument = decode_value(document).map_err(|problem| error(problem.path, problem.message))?;
    if decoded.kind != KIND || decoded.api_version != API_VERSION {
        return Err(error("kind".to_owned(), format!("{API_VERSION} {KIND} is expected")));
    }
    let mut lock = Lock::default();
    for (position, flavor) in decoded.images.into_iter().enumerate() {
        let path = format!("images[{position}]");
        let provider = ImageReference::provider(&flavor.provider)
            .ok_or_else(|| error(format!("{path}.provider"), "no images of this provider are known here".to_owned()))?;
        for (position, entry) in flavor.regions.iter().enumerate() {
            let path = format!("{path}.regions[{position}]");
            let image = locked_image(provider, &entry.0).map_err(|problem| error(path.clone(), problem))?;
            let key = FlavorKey {
                provider,
                realm: flavor.realm.as_deref().map_or_else(|| PUBLIC.to_owned(), text),
                image: text(&flavor.image),
                version: text(&flavor.version),
                flavor: Arc::new(Capabilities(
                    flavor
                        .flavor
                        .iter()
                        .map(|(name, values)| (text(name), values.iter().map(|value| text(value)).collect()))
                        .collect(),
                )),
                region: entry.0.get(REGION).map(|region| text(region)),
            };
            if lock.images.insert(key, image).is_some() {
                return Err(error(path, "this flavor has an image in this region already".to_owned()));
            }
        }
    }
    Ok(lock)
}

fn locked_image(provider: &'static str, members: &BTreeMap<String, String>) -> Result<LockedImage, String> {
    let references = members.iter().filter(|(member, _)| *member != REGION && !OTHERS.contains(&member.as_str()));
    let mut references = references.map(|(member, value)| ImageReference::new(provider, member, value));
    let reference = references.next().ok_or("the image is missing")?.map_err(|problem| problem.to_string())?;
    if let Some(other) = references.next() {
        return Err(other.err().map_or_else(|| "only one image is expected".to_owned(), |problem| problem.to_string()));
    }
    let locked = members.get("locked").ok_or("locked: the time is missing")?;
    Ok(LockedImage {
        reference,
        name: members.get("name").map(|name| text(name)).unwrap_or_default(),
        created: members.get("created").map(|created| time(created)).transpose()?,
        locked: time(locked)?,
    })
}
