//! `ImageList`: a form of our own, for clouds without a tool and for what a person knows better.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{Format, Listing, SourceError, each, member, time};
use crate::api::gardener::Capabilities;
use crate::images::record::{ImageRecord, ImageState, PUBLIC, Release, text};
use crate::images::reference::ImageReference;

pub(super) const FORMAT: Format = Format { fits: |document| document["kind"] == "ImageList", read };

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Image {
    provider: String,
    realm: Option<String>,
    region: Option<String>,
    reference: BTreeMap<String, String>,
    #[serde(default)]
    name: String,
    #[serde(default)]
    owner: String,
    created: Option<String>,
    deprecated: Option<String>,
    state: Option<String>,
    #[serde(default)]
    encrypted: bool,
    #[serde(default)]
    facts: Capabilities,
    #[serde(default)]
    tags: BTreeMap<String, String>,
    image: Option<String>,
    version: Option<String>,
}

fn read(document: &Value, region: Option<&str>) -> Result<Listing, SourceError> {
    let image = |image: Image| {
        let known = ImageReference::provider(&image.provider);
        let provider = member("provider", known.ok_or("no images of this provider are known here"))?;
        let Some((of_cloud, value)) = image.reference.first_key_value().filter(|_| image.reference.len() == 1) else {
            return Err(SourceError::new("reference", "one member is expected, such as ami"));
        };
        let reference = member("reference", ImageReference::new(provider, of_cloud, value))?;
        let mut record = ImageRecord::new(provider, reference, &image.name);
        for (name, values) in &image.facts.0 {
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            record = record.with_fact(&text(name), &values);
        }
        let release = image.image.zip(image.version);
        Ok(ImageRecord {
            realm: image.realm.map_or_else(|| PUBLIC.to_owned(), |realm| text(&realm)),
            region: image.region.as_deref().or(region).map(text),
            owner: text(&image.owner),
            created: time("created", image.created.as_deref())?,
            deprecated: time("deprecated", image.deprecated.as_deref())?,
            state: image.state.map_or(ImageState::Available, |state| ImageState::of(&state, "available")),
            encrypted: image.encrypted,
            tags: image.tags.iter().map(|(name, value)| (text(name), text(value))).collect(),
            release: release.map(|(image, version)| Release { image: text(&image), version: text(&version) }),
            ..record
        })
    };
    Ok(Listing { images: each(&document["images"], "images", image)?, ..Listing::default() })
}
