//! `ImageList`: our own format. Used for clouds without a tool, for manual corrections, and by `images fetch`.

use std::collections::BTreeMap;
use std::ops::Not;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Format, Listing, SourceError, each, member, time};
use crate::images::API_VERSION;
use crate::images::attributes::Attributes;
use crate::images::coverage::Coverage;
use crate::images::record::{ImageRecord, ImageState, PUBLIC, Release, text};
use crate::images::reference::ImageReference;
use wire::api::gardener::Capabilities;

const KIND: &str = "ImageList";

pub(super) const FORMAT: Format = Format { fits: |document| document["kind"] == KIND, read };

/// The document to write.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageList {
    api_version: &'static str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    covers: Vec<Coverage>,
    images: Vec<Image>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Image {
    provider: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    realm: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    regions: Vec<String>,
    reference: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    owner: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deprecated: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    #[serde(default, skip_serializing_if = "Not::not")]
    encrypted: bool,
    #[serde(default, skip_serializing_if = "Capabilities::is_empty")]
    facts: Capabilities,
    #[serde(default, skip_serializing_if = "Capabilities::is_empty")]
    attributes: Capabilities,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    tags: BTreeMap<String, String>,
}

impl ImageList {
    /// Sorts the images, so that the result does not depend on the order of the sources.
    #[must_use]
    pub fn new(images: &[ImageRecord]) -> Self {
        let mut sorted: Vec<&ImageRecord> = images.iter().collect();
        let location =
            |image: &&ImageRecord| (image.provider, image.realm.clone(), image.region.clone(), image.reference.clone());
        sorted.sort_by_cached_key(location);
        let images = sorted.into_iter().map(Image::from).collect();
        Self { api_version: API_VERSION, kind: KIND, covers: Vec::new(), images }
    }

    /// The same list, with what it covers completely.
    #[must_use]
    pub fn covering(self, coverage: &[Coverage]) -> Self {
        Self { covers: coverage.to_vec(), ..self }
    }
}

impl From<&ImageRecord> for Image {
    fn from(record: &ImageRecord) -> Self {
        let time = |time: Option<jiff::Timestamp>| time.map(|time| time.to_string());
        let (image, version) =
            record.release.as_deref().map(|release| (release.image.clone(), release.version.clone())).unzip();
        Self {
            provider: record.provider.to_owned(),
            realm: Some(record.realm.clone()).filter(|realm| realm != PUBLIC),
            region: record.region.clone(),
            regions: record.replicated_to.iter().flat_map(|regions| regions.iter().cloned()).collect(),
            reference: BTreeMap::from([(record.reference.member.to_owned(), record.reference.value.clone())]),
            name: record.name.clone(),
            image,
            version,
            owner: record.owner.clone(),
            created: time(record.created),
            deprecated: time(record.deprecated),
            state: match &record.state {
                ImageState::Available => None,
                ImageState::Unavailable(word) => Some(word.clone()),
            },
            encrypted: record.encrypted,
            facts: (*record.facts).clone(),
            attributes: record.attributes.all(),
            tags: (*record.tags).clone(),
        }
    }
}

fn read(document: &Value, region: Option<&str>) -> Result<Listing, SourceError> {
    let image = |image: Image| {
        let known = ImageReference::provider(&image.provider);
        let provider = member("provider", known.ok_or("no images of this provider are known here"))?;
        let mut members = image.reference.iter();
        let (Some((of_cloud, value)), None) = (members.next(), members.next()) else {
            return Err(SourceError::new("reference", "one member is expected, such as ami"));
        };
        let reference = member("reference", ImageReference::new(provider, of_cloud, value))?;
        let mut record = ImageRecord::new(provider, reference, &image.name);
        for (name, values) in &image.facts.0 {
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            record = record.with_fact(&text(name), &values);
        }
        let record = record.with_regions(image.regions.iter().map(|region| text(region)));
        let release = image.image.zip(image.version);
        Ok(ImageRecord {
            realm: image.realm.map_or_else(|| PUBLIC.to_owned(), |realm| text(&realm)),
            region: image.region.as_deref().or(region).map(text),
            owner: text(&image.owner),
            created: time("created", image.created.as_deref())?,
            deprecated: time("deprecated", image.deprecated.as_deref())?,
            state: image.state.map_or(ImageState::Available, |state| ImageState::of(&state, "available")),
            encrypted: image.encrypted,
            attributes: attributes(&image.attributes),
            tags: Arc::new(image.tags.iter().map(|(name, value)| (text(name), text(value))).collect()),
            release: release.map(|(image, version)| Arc::new(Release { image: text(&image), version: text(&version) })),
            ..record
        })
    };
    let listing: Listing = each(&document["images"], "images", image)?.into();
    let coverage = match &document["covers"] {
        Value::Null => Vec::new(),
        covers => each(covers, "covers", |coverage: Coverage| Ok(coverage))?.made,
    };
    Ok(Listing { coverage, ..listing })
}

fn attributes(listed: &Capabilities) -> Attributes {
    let escaped =
        |(name, values): (&String, &Vec<String>)| (text(name), values.iter().map(|value| text(value)).collect());
    Capabilities(listed.0.iter().map(escaped).collect()).into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_list_that_was_written_is_read_as_it_was() {
        let reference = ImageReference::new("aws", "ami", "ami-0123456789abcdef0").unwrap();
        let plain = ImageRecord::new("aws", reference.clone(), "plain");
        let full = ImageRecord {
            realm: "china".to_owned(),
            region: Some("cn-north-1".to_owned()),
            replicated_to: Some(BTreeSet::from(["a".to_owned(), "b".to_owned()]).into()),
            owner: "111111111111".to_owned(),
            created: Some("2026-11-20T08:00:00Z".parse().unwrap()),
            deprecated: Some("2027-11-20T08:00:00Z".parse().unwrap()),
            state: ImageState::Unavailable("pending".to_owned()),
            encrypted: true,
            attributes: Capabilities::from_iter([("enaSupport", ["true"])]).into(),
            tags: BTreeMap::from([("channel".to_owned(), "stable".to_owned())]).into(),
            release: Some(Release { image: "os".to_owned(), version: "1.2.0".to_owned() }.into()),
            ..plain.clone().with_fact("architecture", &["arm64"])
        };
        let written = serde_json::to_value(ImageList::new(&[plain.clone(), full.clone()])).unwrap();
        assert_eq!(read(&written, None).unwrap().images, [full, plain]);
    }
}
