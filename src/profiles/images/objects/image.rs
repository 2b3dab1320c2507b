//! A `MachineImage` and the image that it describes. Its fields are those of a listing, so it is decoded by the same
//! code. There are thousands of them, so only the fields needed for decisions stay unpacked.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::event::ImageEvent;
use crate::images::record::{ImageRecord, ImageState, PUBLIC, Release, fact};
use crate::images::shared::Shared;
use crate::images::sources;
use wire::api::gotext::json::decode_lenient;
use wire::api::image_objects::{ImageLookup, MachineImage, MachineImageSpec};
use wire::api::packed_text::PackedText;

/// Prefix of our labels.
pub const LABELS: &str = "images.gardener-extension-worker/";
/// Label of an image that a lookup has created: the name of the lookup, shortened to fit a label.
pub const LOOKUP_LABEL: &str = "images.gardener-extension-worker/lookup";
/// Annotation of a hand-made image: the source that was the last one to list it.
const LISTED_BY: &str = "images.gardener-extension-worker/listed-by";
/// State of an image that no source lists any more.
pub const GONE: &str = "gone";

/// Maximum length of a label value, and length of the digests that distinguish images.
const LONGEST_LABEL: usize = 63;
const DIGEST: usize = 20;

/// Identity of an image. Two objects with the same place describe the same image.
pub(super) type Location<'a> = (&'static str, &'a str, Option<&'a str>, &'a str);

pub(super) fn location(record: &ImageRecord) -> Location<'_> {
    (record.provider, &record.realm, record.region.as_deref(), &record.reference.value)
}

/// A `MachineImage` in memory.
#[derive(Clone, Debug)]
pub struct ImageObject {
    /// Its name.
    pub name: String,
    /// The described image, or the error.
    pub record: Result<ImageRecord, String>,
    /// The lookup that has created it, as in the label; `None` for a hand-made image.
    pub lookup: Option<Box<str>>,
    /// For a hand-made image, the source that was the last one to list it.
    pub(super) listed_by: Option<Box<str>>,
    pub(super) is_being_deleted: bool,
    pub(super) is_latest: bool,
    /// Whether spec and labels are equal to what would be written.
    pub(super) is_as_written: bool,
    /// The whole object.
    packed: PackedText,
}

impl ImageObject {
    /// Converts an object.
    #[must_use]
    pub fn new(image: &MachineImage, shared: &mut Shared) -> Self {
        let mut record = record(&image.spec);
        record.iter_mut().for_each(|record| shared.share(record));
        let is_latest = label(image, "latest") == Some("true");
        let is_as_written = |record: &ImageRecord| {
            let required = record.release.as_ref().map(|release| spec(record, release));
            let labels = labels(record, is_latest, made_by(image));
            let has = |(name, value): (&String, &Option<String>)| {
                image.metadata.labels.as_ref().and_then(|known| known.get(name)) == value.as_ref()
            };
            required.as_ref() == Some(&image.spec) && labels.iter().all(has)
        };
        Self {
            name: image.metadata.name.clone().unwrap_or_default(),
            lookup: made_by(image).map(Box::from),
            listed_by: listed_by(image).map(Box::from),
            is_being_deleted: image.metadata.deletion_timestamp.is_some(),
            is_latest,
            is_as_written: record.as_ref().is_ok_and(is_as_written),
            packed: PackedText::of(&json!(image).to_string()),
            record,
        }
    }

    /// Decodes an object.
    #[must_use]
    pub fn read(name: &str, text: &str, shared: &mut Shared) -> Self {
        match decode_lenient::<MachineImage>(text) {
            Ok(image) => Self::new(&image, shared),
            Err(error) => Self {
                name: name.to_owned(),
                record: Err(error.to_string()),
                lookup: None,
                listed_by: None,
                is_being_deleted: false,
                is_latest: false,
                is_as_written: false,
                packed: PackedText::of(text),
            },
        }
    }

    /// Unpacks the whole object.
    ///
    /// # Errors
    /// If it can't be decoded.
    pub fn object(&self) -> Result<MachineImage, String> {
        let text = self.packed.unpack().ok_or("its packed text is incomplete")?;
        decode_lenient(&text).map_err(|error| error.to_string())
    }
}

/// An object to write.
#[derive(Clone, Debug)]
pub struct ImageToWrite {
    pub(super) name: String,
    pub(super) record: ImageRecord,
    pub(super) is_latest: bool,
    pub(super) lookup: Option<String>,
    pub(super) listed_by: Option<String>,
    pub(super) existing: Option<Arc<ImageObject>>,
}

impl ImageToWrite {
    /// The event of this write: the sources no longer list the image.
    #[must_use]
    pub fn event(&self) -> Option<ImageEvent> {
        let gone = ImageState::Unavailable(GONE.to_owned());
        let before = self.existing.as_ref().and_then(|existing| existing.record.as_ref().ok());
        let is_news = self.record.state == gone && before.is_some_and(|before| before.state != gone);
        if is_news { Some(ImageEvent::Gone(self.name.clone())) } else { None }
    }

    /// The object to write. All other content of an existing object is kept.
    ///
    /// # Errors
    /// If the existing object can't be decoded.
    pub fn object(&self) -> Result<MachineImage, String> {
        let release = self.record.release.as_ref().ok_or("no source describes it")?;
        let mut metadata = match &self.existing {
            Some(existing) => existing.object()?.metadata,
            None => ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() },
        };
        let known = metadata.labels.get_or_insert_default();
        for (label, value) in labels(&self.record, self.is_latest, self.lookup.as_deref()) {
            match value {
                Some(value) => known.insert(label, value),
                None => known.remove(&label),
            };
        }
        if let Some(source) = &self.listed_by {
            metadata.annotations.get_or_insert_default().insert(LISTED_BY.to_owned(), source.clone());
        }
        Ok(MachineImage { metadata, spec: spec(&self.record, release) })
    }
}

/// The image that an object describes.
///
/// # Errors
/// The error has the path of the invalid field.
pub fn record(spec: &MachineImageSpec) -> Result<ImageRecord, String> {
    let listing = json!({"kind": "ImageList", "images": [spec]});
    let listing = sources::read(&listing, None)
        .map_err(|error| format!("{}: {}", error.path.replacen("images[0]", "spec", 1), error.problem))?;
    listing.images.into_iter().next().ok_or_else(|| "spec: no image".to_owned())
}

/// The spec of an object for an image.
pub(super) fn spec(record: &ImageRecord, release: &Release) -> MachineImageSpec {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    MachineImageSpec {
        provider: record.provider.to_owned(),
        realm: Some(record.realm.clone()).filter(|realm| realm != PUBLIC),
        region: record.region.clone(),
        regions: record.replicated_to.iter().flat_map(|regions| regions.iter().cloned()).collect(),
        reference: BTreeMap::from([(record.reference.member.to_owned(), record.reference.value.clone())]),
        image: release.image.clone(),
        version: release.version.clone(),
        name: text(&record.name),
        owner: text(&record.owner),
        created: record.created.map(|time| time.to_string()),
        deprecated: record.deprecated.map(|time| time.to_string()),
        state: match &record.state {
            ImageState::Available => None,
            ImageState::Unavailable(word) => Some(word.clone()),
        },
        encrypted: record.encrypted,
        facts: record.facts.0.clone(),
        attributes: record.attributes.all().0,
        tags: (*record.tags).clone(),
    }
}

/// Name of the object for an image: its ID at the cloud if that is a valid name, otherwise a digest of its place.
#[must_use]
pub fn object_name(record: &ImageRecord) -> String {
    let id = &record.reference.value;
    let is_letter = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    // An image name, as opposed to an ID, may be another image in each region.
    let is_name = ["ami", "id"].contains(&record.reference.member)
        && id.len() <= LONGEST_LABEL
        && id.starts_with(is_letter)
        && id.ends_with(is_letter)
        && id.chars().all(|letter| is_letter(letter) || letter == '-');
    if record.region.is_some() && is_name {
        return id.clone();
    }
    let location = json!([record.provider, record.realm, record.region, record.reference.member, id]);
    let digest = hex::encode(Sha256::digest(location.to_string()));
    format!("{}-{}", record.provider, digest.get(..DIGEST).unwrap_or_default())
}

/// Labels of an image; `None` for labels without a value.
pub(super) fn labels(record: &ImageRecord, is_latest: bool, lookup: Option<&str>) -> BTreeMap<String, Option<String>> {
    let fact = |name: &str| record.facts.values(name).map(|values| values.join("_"));
    let release = record.release.as_ref();
    let values = [
        ("latest", Some(is_latest.to_string())),
        ("os-name", release.map(|release| release.image.clone())),
        ("kubernetes-version", release.map(|release| release.version.clone())),
        ("architecture", fact(fact::ARCHITECTURE)),
        ("boot-mode", fact(fact::BOOT_MODE)),
        ("region", record.region.clone()),
        ("owner", Some(record.owner.clone())),
        ("lookup", lookup.map(str::to_owned)),
    ];
    let label = |(name, value): (&str, Option<String>)| {
        (format!("{LABELS}{name}"), value.and_then(|value| label_value(&value)))
    };
    values.into_iter().map(label).collect()
}

/// Converts a text to a label value. Invalid characters become dashes, and a long text ends with its digest. `None`
/// if nothing is left.
pub(super) fn label_value(text: &str) -> Option<String> {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let value: String = text.chars().map(|letter| if allowed(letter) { letter } else { '-' }).collect();
    let value = value.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
    if value.len() <= LONGEST_LABEL {
        return (!value.is_empty()).then(|| value.to_owned());
    }
    // Object names have no underscore, so this differs from all short values.
    let digest = hex::encode(Sha256::digest(text));
    let beginning = value.get(..LONGEST_LABEL - DIGEST - 1).unwrap_or_default();
    Some(format!("{beginning}_{}", digest.get(..DIGEST).unwrap_or_default()))
}

/// Whether a text is a valid label value. The name part of a label key has the same syntax.
pub(super) fn is_label(text: &str) -> bool {
    label_value(text).is_some_and(|value| value == text)
}

/// Label value with which images and templates refer to a lookup.
pub(super) fn lookup_label(lookup: &ImageLookup) -> String {
    label_value(lookup.metadata.name.as_deref().unwrap_or_default()).unwrap_or_default()
}

/// The lookup that has created an object, as in the label; `None` for a hand-made object.
#[must_use]
pub fn made_by(image: &MachineImage) -> Option<&str> {
    label(image, "lookup")
}

/// The source in the annotation of a hand-made image.
fn listed_by(image: &MachineImage) -> Option<&str> {
    if made_by(image).is_some() {
        return None;
    }
    image.metadata.annotations.as_ref()?.get(LISTED_BY).map(String::as_str)
}

fn label<'a>(image: &'a MachineImage, name: &str) -> Option<&'a str> {
    let labels = image.metadata.labels.as_ref()?.iter();
    labels.into_iter().find(|(label, _)| label.strip_prefix(LABELS) == Some(name)).map(|(_, value)| value.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn image(members: Value) -> Result<ImageRecord, String> {
        let mut spec = json!({"provider": "aws", "region": "eu-central-1", "reference": {"ami": "ami-0123456789abcdef0"},
            "image": "ubuntu-24.04", "version": "1.34.2"});
        spec.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        record(&serde_json::from_value(spec).unwrap())
    }

    #[test]
    fn an_object_has_every_member_of_the_image_that_it_was_made_of() {
        let known = image(
            json!({"name": "n", "owner": "1", "regions": ["a", "b"], "created": "2026-09-22T09:00:00Z", "state": "pending", "realm": "china",
            "facts": {"architecture": ["amd64"]}, "attributes": {"enaSupport": ["true"]}, "tags": {"channel": "stable"}, "encrypted": true}),
        );
        let known = known.unwrap();
        assert_eq!(record(&spec(&known, known.release.as_ref().unwrap())), Ok(known));
        assert_eq!(
            image(json!({"reference": {"ami": "x"}})).unwrap_err(),
            "spec.reference: this is no ami: ami-… with 8 to 17 hexadecimal digits is expected"
        );
    }

    #[test]
    fn each_image_has_a_name_that_objects_can_have() {
        let name = |members| object_name(&image(members).unwrap());
        assert_eq!(name(json!({})), "ami-0123456789abcdef0");
        let gallery = json!({"provider": "azure", "region": null, "reference": {"communityGalleryImageID": "/CommunityGalleries/G/Images/i/Versions/1.0.0"}});
        assert_eq!(name(gallery.clone()), name(gallery.clone()));
        assert!(name(gallery).starts_with("azure-"));
        assert_ne!(
            name(json!({"reference": {"ami": "ami-0123ABCD"}})),
            name(json!({"reference": {"ami": "ami-0123abcd"}}))
        );
    }

    #[test]
    fn labels_have_values_that_an_api_server_takes() {
        assert_eq!(label_value("ubuntu 24.04+x"), Some("ubuntu-24.04-x".to_owned()));
        assert_eq!(label_value("/subscriptions/s"), Some("subscriptions-s".to_owned()));
        assert_eq!(label_value("…"), None);
        assert_ne!(label_value(&"a".repeat(80)), label_value(&"a".repeat(81)));
        assert_eq!(label_value(&format!("{}é", "a".repeat(63))), Some("a".repeat(63)));
        assert_eq!(label_value(&"a".repeat(80)).unwrap().len(), 63);
    }
}
