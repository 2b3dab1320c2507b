//! Output of `aliyun ecs DescribeImages`.

use serde::Deserialize;
use serde_json::Value;

use super::{Format, Listing, SourceError, Tag, boot_modes, each, first_has, images_of, member, tags, time};
use crate::images::record::{ImageRecord, ImageState, fact, text};
use crate::images::reference::ImageReference;

pub(super) const FORMAT: Format = Format {
    fits: |document| {
        document["Images"]["Image"].is_array() || (first_has(document, "ImageId") && first_has(document, "ImageName"))
    },
    read,
};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Image {
    image_id: String,
    #[serde(default)]
    image_name: String,
    #[serde(default)]
    image_owner_alias: String,
    #[serde(default)]
    image_owner_id: Value,
    #[serde(default)]
    status: String,
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    boot_mode: String,
    creation_time: Option<String>,
    #[serde(default)]
    tags: Tags,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Tags {
    #[serde(default)]
    tag: Vec<Tag>,
}

fn read(document: &Value, region: Option<&str>) -> Result<Listing, SourceError> {
    let region = region.or(document["RegionId"].as_str());
    let region =
        region.ok_or_else(|| SourceError::new("RegionId", "the region is missing; write --source REGION=FILE"))?;
    let image = |image: Image| {
        let reference = member("ImageId", ImageReference::new("alicloud", "id", &image.image_id))?;
        let record = ImageRecord::new("alicloud", reference, &image.image_name)
            .with_fact(fact::ARCHITECTURE, &[&image.architecture])
            .with_fact(fact::BOOT_MODE, boot_modes(&image.boot_mode, &image.architecture));
        // An account number is too large for some tools, which print it as text.
        let owner = match image.image_owner_id {
            Value::Number(number) => number.to_string(),
            Value::String(account) => text(&account),
            _ => text(&image.image_owner_alias),
        };
        Ok(ImageRecord {
            region: Some(text(region)),
            owner,
            created: time("CreationTime", image.creation_time.as_deref())?,
            state: ImageState::of(&image.status, "Available"),
            tags: tags(image.tags.tag),
            ..record
        })
    };
    Ok(each(images_of(document, &document["Images"]["Image"]), "Images.Image", image)?.into())
}
