//! Output of `gcloud compute images list --format json`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::{Format, Listing, SourceError, each, member, time};
use crate::images::record::{ImageRecord, ImageState, fact, text};
use crate::images::reference::ImageReference;

pub(super) const FORMAT: Format = Format {
    fits: |document| document[0]["selfLink"].as_str().is_some_and(|link| link.contains("/global/images/")),
    read,
};

/// Architecture of an image whose owner has not set it.
const UNSPECIFIED: &str = "ARCHITECTURE_UNSPECIFIED";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Image {
    name: String,
    self_link: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    architecture: String,
    creation_timestamp: Option<String>,
    #[serde(default)]
    deprecated: Deprecated,
    #[serde(default)]
    guest_os_features: Vec<Feature>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
struct Deprecated {
    state: Option<String>,
    deprecated: Option<String>,
}

#[derive(Deserialize)]
struct Feature {
    #[serde(rename = "type", default)]
    name: String,
}

fn read(document: &Value, _region: Option<&str>) -> Result<Listing, SourceError> {
    Ok(each(document, "", image)?.into())
}

fn image(image: Image) -> Result<ImageRecord, SourceError> {
    let path = image.self_link.find("projects/").and_then(|start| image.self_link.get(start..)).unwrap_or_default();
    let reference = member("selfLink", ImageReference::new("gcp", "image", path))?;
    let has = |feature: &str| image.guest_os_features.iter().any(|known| known.name == feature);
    let boot_modes: &[&str] = if has("UEFI_COMPATIBLE") { &["uefi", "legacy-bios"] } else { &["legacy-bios"] };
    let architecture = if image.architecture == UNSPECIFIED { "" } else { &image.architecture };
    let record = ImageRecord::new("gcp", reference, &image.name)
        .with_fact(fact::ARCHITECTURE, &[architecture])
        .with_fact(fact::BOOT_MODE, if image.architecture == "ARM64" { &["uefi"] } else { boot_modes })
        .with_fact(fact::NETWORK, if has("GVNIC") { &["gvnic", "virtio"] } else { &["virtio"] });
    // The state marks an image as deprecated. The optional time is that of the past or announced change.
    let since = time("deprecated.deprecated", image.deprecated.deprecated.as_deref())?;
    let deprecated = match image.deprecated.state.as_deref() {
        None | Some("ACTIVE") => since,
        Some(_) => since.or(Some(jiff::Timestamp::UNIX_EPOCH)),
    };
    let gone = image.deprecated.state.as_deref().is_some_and(|state| ["OBSOLETE", "DELETED"].contains(&state));
    Ok(ImageRecord {
        owner: text(path.split('/').nth(1).unwrap_or_default()),
        created: time("creationTimestamp", image.creation_timestamp.as_deref())?,
        deprecated,
        state: if gone {
            ImageState::Unavailable("obsolete".to_owned())
        } else {
            ImageState::of(&image.status, "READY")
        },
        tags: Arc::new(image.labels.iter().map(|(name, value)| (text(name), text(value))).collect()),
        ..record
    })
}
