//! Output of `openstack image list -f json`, also with `--long`. It has no dates; `openstack image show` adds
//! `created_at`.

use serde::Deserialize;
use serde_json::Value;

use super::{Format, Listing, SourceError, each, first_has, member, time};
use crate::images::record::{ImageRecord, ImageState, fact, text};
use crate::images::reference::ImageReference;

pub(super) const FORMAT: Format = Format {
    fits: |document| {
        first_has(document, "Status") && first_has(document, "ID")
            || first_has(document, "status") && first_has(document, "id")
    },
    read,
};

#[derive(Deserialize)]
struct Image {
    #[serde(alias = "ID")]
    id: String,
    #[serde(alias = "Name", default)]
    name: String,
    #[serde(alias = "Status", default)]
    status: String,
    #[serde(alias = "Project", alias = "project_id", default)]
    owner: String,
    created_at: Option<String>,
    #[serde(default, alias = "Properties")]
    properties: Properties,
}

#[derive(Default, Deserialize)]
struct Properties {
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    hw_firmware_type: String,
}

fn read(document: &Value, region: Option<&str>) -> Result<Listing, SourceError> {
    let region = region
        .ok_or_else(|| SourceError::new("", "the listing does not name its region; write --source REGION=FILE"))?;
    let image = |image: Image| {
        let reference = member("ID", ImageReference::new("openstack", "id", &image.id))?;
        let record = ImageRecord::new("openstack", reference, &image.name)
            .with_fact(fact::ARCHITECTURE, &[&image.properties.architecture])
            .with_fact(fact::BOOT_MODE, &[&image.properties.hw_firmware_type]);
        Ok(ImageRecord {
            region: Some(region.to_owned()),
            owner: text(&image.owner),
            created: time("created_at", image.created_at.as_deref())?,
            state: ImageState::of(&image.status, "active"),
            ..record
        })
    };
    Ok(each(document, "", image)?.into())
}
