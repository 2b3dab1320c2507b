//! Output of `aws ec2 describe-images`, and responses of EC2.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::ec2_attributes::{BlockDevice, Ec2Attributes, ProductCode, StateReason, add};
use super::{
    Entries, Format, Listing, SourceError, Tag, boot_modes, each, first_has, images_of, member, tags, time, within,
};
use crate::images::attributes::Attributes;
use crate::images::record::{ImageRecord, ImageState, fact, text};
use crate::images::reference::ImageReference;
use crate::images::shared::Shared;
use wire::api::gardener::Capabilities;

pub(super) const FORMAT: Format = Format {
    fits: |document| {
        document["Images"].is_array() || (first_has(document, "ImageId") && !first_has(document, "ImageName"))
    },
    read,
};

/// An image in the output of the command-line tool, or in EC2's XML, which has other names and wraps list entries in
/// `item`.
#[derive(Debug, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(serde::Serialize))]
#[serde(rename_all = "PascalCase")]
pub struct Ec2Image {
    #[serde(alias = "imageId")]
    image_id: String,
    #[serde(default, alias = "name")]
    name: String,
    #[serde(default, alias = "imageOwnerId")]
    owner_id: String,
    #[serde(default, alias = "imageType")]
    image_type: String,
    #[serde(default, alias = "imageState")]
    state: String,
    #[serde(default, alias = "architecture")]
    architecture: String,
    #[serde(default, alias = "bootMode")]
    boot_mode: String,
    #[serde(alias = "creationDate")]
    creation_date: Option<String>,
    #[serde(alias = "deprecationTime")]
    deprecation_time: Option<String>,
    #[serde(default, alias = "tagSet", deserialize_with = "entries")]
    tags: Vec<Tag>,
    #[serde(default, alias = "blockDeviceMapping", deserialize_with = "entries")]
    block_device_mappings: Vec<BlockDevice>,
    #[serde(default, alias = "productCodes", deserialize_with = "entries")]
    #[cfg_attr(any(test, feature = "testing"), serde(skip_serializing_if = "Vec::is_empty"))]
    product_codes: Vec<ProductCode>,
    #[serde(alias = "stateReason")]
    #[cfg_attr(any(test, feature = "testing"), serde(skip_serializing_if = "Option::is_none"))]
    state_reason: Option<StateReason>,
    #[serde(flatten)]
    attributes: Ec2Attributes,
}

/// Images in EC2's response for a region.
///
/// # Errors
/// The error has the path of the invalid image.
pub fn ec2_listing(images: Vec<Ec2Image>, region: &str) -> Result<Listing, SourceError> {
    let mut shared = Shared::default();
    let mut records = Vec::new();
    for (index, image) in images.into_iter().enumerate() {
        let mut record = image.record(region).map_err(|error| within("Images", index, error))?;
        record.iter_mut().for_each(|record| shared.share(record));
        records.extend(record);
    }
    Ok(Listing { images: records, ..Listing::default() })
}

fn read(document: &Value, region: Option<&str>) -> Result<Listing, SourceError> {
    let region = region
        .ok_or_else(|| SourceError::new("", "the listing does not name its region; write --source REGION=FILE"))?;
    let list = images_of(document, &document["Images"]);
    // A file of a hundred thousand images is decoded as a whole.
    let mut shared = Shared::default();
    let Entries { made, refused } = each(list, "Images", |image: Ec2Image| {
        let mut record = image.record(region)?;
        record.iter_mut().for_each(|record| shared.share(record));
        Ok(record)
    })?;
    Ok(Listing { images: made.into_iter().flatten().collect(), refused, ..Listing::default() })
}

impl Ec2Image {
    /// Converts the image; `None` for kernels and ramdisks, because machines don't start from them.
    fn record(self, region: &str) -> Result<Option<ImageRecord>, SourceError> {
        if ["kernel", "ramdisk"].contains(&self.image_type.as_str()) {
            return Ok(None);
        }
        let reference = member("ImageId", ImageReference::new("aws", "ami", &self.image_id))?;
        let record = ImageRecord::new("aws", reference, &self.name)
            .with_fact(fact::ARCHITECTURE, &[&self.architecture])
            .with_fact(fact::BOOT_MODE, boot_modes(&self.boot_mode, &self.architecture));
        let attributes = Attributes::from(self.attributes());
        Ok(Some(ImageRecord {
            region: Some(region.to_owned()),
            owner: text(&self.owner_id),
            created: time("CreationDate", self.creation_date.as_deref())?,
            deprecated: time("DeprecationTime", self.deprecation_time.as_deref())?,
            state: ImageState::of(&self.state, "available"),
            encrypted: self.block_device_mappings.iter().any(BlockDevice::is_encrypted),
            attributes,
            tags: tags(self.tags),
            ..record
        }))
    }
}

impl Ec2Image {
    /// The attributes that filters use, in the spelling of EC2.
    fn attributes(&self) -> Capabilities {
        let mut attributes = Capabilities::default();
        self.attributes.add_to(&mut attributes);
        for (name, value) in
            [("architecture", &self.architecture), ("bootMode", &self.boot_mode), ("imageType", &self.image_type)]
        {
            add(&mut attributes, name, Some(value));
        }
        self.block_device_mappings.iter().for_each(|device| device.add_to(&mut attributes));
        self.product_codes.iter().for_each(|product| product.add_to(&mut attributes));
        if let Some(reason) = &self.state_reason {
            reason.add_to(&mut attributes);
        }
        attributes
    }
}

/// Decodes the entries of a list in JSON or XML.
fn entries<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    struct Entries<T>(PhantomData<T>);

    #[derive(Deserialize)]
    struct Items<T> {
        #[serde(default = "Vec::new")]
        item: Vec<T>,
    }

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
        type Value = Vec<T>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut entries = Vec::new();
            while let Some(entry) = list.next_element()? {
                entries.push(entry);
            }
            Ok(entries)
        }

        fn visit_map<A: MapAccess<'de>>(self, element: A) -> Result<Self::Value, A::Error> {
            Items::deserialize(MapAccessDeserializer::new(element)).map(|items| items.item)
        }
    }

    deserializer.deserialize_any(Entries(PhantomData))
}
