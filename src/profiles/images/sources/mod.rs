//! Listings of images in files: output of the clouds' own tools, release metadata of Garden Linux, and a format of
//! our own. The format is detected from the content.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::coverage::Coverage;
use super::record::{ImageRecord, text};
use wire::api::gotext::json::decode_value;

mod alicloud;
mod azure;
mod ec2;
pub mod ec2_attributes;
mod garden_linux;
mod gcloud;
mod openstack;
mod own;

pub use ec2::{Ec2Image, ec2_listing};
pub use own::ImageList;

/// The largest listing that is read: every image of a large public cloud fits.
pub const MAX_BYTES: u64 = 256 << 20;

/// Content of a file.
#[derive(Debug, Default)]
pub struct Listing {
    /// The images.
    pub images: Vec<ImageRecord>,
    /// Data of galleries that apply to all versions of an image.
    pub galleries: Vec<GalleryImage>,
    /// Entries that are malformed, and are left out.
    pub refused: Vec<SourceError>,
    /// Images that no CloudProfile can have, with the reason.
    pub left_out: Vec<String>,
    /// The parts of clouds that it covers completely.
    pub coverage: Vec<Coverage>,
}

/// An image of a gallery, which has the architecture and generation of its versions.
#[derive(Debug)]
pub struct GalleryImage {
    /// Its path in lower case, which is a prefix of the paths of its versions.
    pub path: String,
    /// Its data, as facts of an image.
    pub facts: Vec<(&'static str, String)>,
}

/// The file is not a listing, or has an invalid field.
#[derive(Debug, thiserror::Error)]
#[error("{path}{}{problem}", if .path.is_empty() { "" } else { ": " })]
pub struct SourceError {
    /// Path of the field, such as `Images[3].CreationDate`; empty for the document itself.
    pub path: String,
    /// The problem.
    pub problem: String,
}

impl SourceError {
    fn new(path: impl Into<String>, problem: impl ToString) -> Self {
        Self { path: path.into(), problem: problem.to_string() }
    }
}

/// A format of listings: how to detect and how to decode it. `region` is the user's input for the file.
struct Format {
    fits: fn(&Value) -> bool,
    read: fn(&Value, Option<&str>) -> Result<Listing, SourceError>,
}

const FORMATS: [Format; 7] = [
    own::FORMAT,
    garden_linux::FORMAT,
    ec2::FORMAT,
    alicloud::FORMAT,
    azure::FORMAT,
    gcloud::FORMAT,
    openstack::FORMAT,
];

/// Decodes a document. `region` is the region of its images, for tools that do not print it.
///
/// # Errors
/// If the format is unknown or a field is invalid.
pub fn read(document: &Value, region: Option<&str>) -> Result<Listing, SourceError> {
    if document.as_array().is_some_and(Vec::is_empty) {
        return Ok(Listing::default());
    }
    if let Some(format) = format_of(document) {
        return (format.read)(document, region);
    }
    // One image for itself, as `jq '.Images[]'` prints them.
    let list = Value::Array(vec![document.clone()]);
    match format_of(&list) {
        Some(format) if document.is_object() => (format.read)(&list, region),
        _ => Err(SourceError::new("", "no listing of images in a known form (docs/images.md#sources)")),
    }
}

fn format_of(document: &Value) -> Option<&'static Format> {
    FORMATS.iter().find(|format| (format.fits)(document))
}

/// Whether the first entry of a list has a field.
fn first_has(list: &Value, member: &str) -> bool {
    list.get(0).is_some_and(|first| first.get(member).is_some())
}

/// The images of a list, and the errors of its malformed entries.
struct Entries<Made> {
    made: Vec<Made>,
    refused: Vec<SourceError>,
}

/// Converts every entry of a list to images. `path` is that of the list. Malformed entries are left out.
///
/// # Errors
/// If it is not a list, or all of its entries are malformed.
fn each<T: DeserializeOwned, Made>(
    list: &Value,
    path: &str,
    mut make: impl FnMut(T) -> Result<Made, SourceError>,
) -> Result<Entries<Made>, SourceError> {
    let items = list.as_array().ok_or_else(|| SourceError::new(path, "a list is expected"))?;
    let one = |(index, item): (usize, &Value)| {
        let within = |error| within(path, index, error);
        // Tools print missing values as null or omit them.
        let decoded = decode_value(item).or_else(|_| decode_value(&without_nulls(item)));
        make(decoded.map_err(|error| within(SourceError::new(error.path, error.message)))?).map_err(within)
    };
    let mut entries = Entries { made: Vec::new(), refused: Vec::new() };
    for item in items.iter().enumerate().map(one) {
        match item {
            Ok(made) => entries.made.push(made),
            Err(error) => entries.refused.push(error),
        }
    }
    if entries.made.is_empty() && !entries.refused.is_empty() {
        return Err(entries.refused.swap_remove(0));
    }
    Ok(entries)
}

impl From<Entries<ImageRecord>> for Listing {
    fn from(Entries { made, refused }: Entries<ImageRecord>) -> Self {
        Self { images: made, refused, ..Self::default() }
    }
}

/// The images of a list: the document itself, where a query left only that, else a member.
fn images_of<'a>(document: &'a Value, member: &'a Value) -> &'a Value {
    if document.is_array() { document } else { member }
}

/// Adds the path of a list entry to an error.
fn within(path: &str, index: usize, error: SourceError) -> SourceError {
    let separator = if error.path.is_empty() { "" } else { "." };
    SourceError::new(format!("{path}[{index}]{separator}{}", error.path), error.problem)
}

/// Removes null values from a document.
fn without_nulls(document: &Value) -> Value {
    match document {
        Value::Object(members) => {
            let there = members.iter().filter(|(_, value)| !value.is_null());
            there.map(|(name, value)| (name.clone(), without_nulls(value))).collect()
        }
        Value::Array(items) => items.iter().filter(|item| !item.is_null()).map(without_nulls).collect(),
        other => other.clone(),
    }
}

/// Adds the path of a field to an error.
fn member<T, E: ToString>(path: &str, read: Result<T, E>) -> Result<T, SourceError> {
    read.map_err(|problem| SourceError::new(path, problem))
}

/// Parses an optional time.
fn time(path: &str, text: Option<&str>) -> Result<Option<jiff::Timestamp>, SourceError> {
    member(path, text.filter(|text| !text.is_empty()).map(super::record::time).transpose())
}

/// A tag in the format of AWS and AliCloud.
#[derive(Debug, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(serde::Serialize))]
#[serde(rename_all(serialize = "PascalCase"))]
struct Tag {
    #[serde(alias = "Key", alias = "TagKey", default)]
    key: String,
    #[serde(alias = "Value", alias = "TagValue", default)]
    value: String,
}

fn tags(tags: Vec<Tag>) -> Arc<BTreeMap<String, String>> {
    Arc::new(tags.into_iter().map(|tag| (text(&tag.key), text(&tag.value))).collect())
}

/// Boot modes for the terms of AWS and AliCloud.
fn boot_modes(word: &str, architecture: &str) -> &'static [&'static str] {
    match word.to_ascii_lowercase().as_str() {
        "uefi" => &["uefi"],
        "uefi-preferred" => &["uefi", "legacy-bios"],
        "bios" | "legacy-bios" => &["legacy-bios"],
        // Machines of this architecture have no other firmware.
        _ if super::record::spelled(architecture) == "arm64" => &["uefi"],
        _ => &[],
    }
}
