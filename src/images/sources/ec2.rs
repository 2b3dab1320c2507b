//! `aws ec2 describe-images`.

use serde::Deserialize;
use serde_json::Value;

use super::{Format, Listing, SourceError, Tag, boot_modes, each, member, tags, time};
use crate::images::record::{ImageRecord, ImageState, fact, text};
use crate::images::reference::ImageReference;

pub(super) const FORMAT: Format = Format { fits: |document| document["Images"].is_array(), read };

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Image {
    image_id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    owner_id: String,
    #[serde(default)]
    image_type: String,
    #[serde(default)]
    state: String,
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    boot_mode: String,
    creation_date: Option<String>,
    deprecation_time: Option<String>,
    #[serde(default)]
    tags: Vec<Tag>,
    #[serde(default)]
    block_device_mappings: Vec<BlockDevice>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct BlockDevice {
    ebs: Option<Ebs>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Ebs {
    #[serde(default)]
    encrypted: bool,
}

fn read(document: &Value, region: Option<&str>) -> Result<Listing, SourceError> {
    let region = region
        .ok_or_else(|| SourceError::new("", "the listing does not name its region; write --source REGION=FILE"))?;
    let image = |image: Image| {
        if ["kernel", "ramdisk"].contains(&image.image_type.as_str()) {
            return Ok(None);
        }
        let reference = member("ImageId", ImageReference::new("aws", "ami", &image.image_id))?;
        let record = ImageRecord::new("aws", reference, &image.name)
            .with_fact(fact::ARCHITECTURE, &[&image.architecture])
            .with_fact(fact::BOOT_MODE, boot_modes(&image.boot_mode, &image.architecture));
        Ok(Some(ImageRecord {
            region: Some(region.to_owned()),
            owner: text(&image.owner_id),
            created: time("CreationDate", image.creation_date.as_deref())?,
            deprecated: time("DeprecationTime", image.deprecation_time.as_deref())?,
            state: ImageState::of(&image.state, "available"),
            encrypted: image
                .block_device_mappings
                .iter()
                .any(|device| device.ebs.as_ref().is_some_and(|ebs| ebs.encrypted)),
            tags: tags(image.tags),
            ..record
        }))
    };
    let images = each(&document["Images"], "Images", image)?.into_iter().flatten().collect();
    Ok(Listing { images, ..Listing::default() })
}
