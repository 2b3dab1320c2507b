//! Release metadata of Garden Linux: one document for each platform, build and architecture, with the images in all
//! regions.

use serde::Deserialize;
use serde_json::Value;

use super::{Format, Listing, SourceError, member, time};
use crate::images::record::{ImageRecord, PUBLIC, Release, fact, text};
use crate::images::reference::ImageReference;
use wire::api::gotext::json::decode_value;

pub(super) const FORMAT: Format = Format { fits: |document| document.get("gardenlinux_epoch").is_some(), read };

/// Name of the image in CloudProfiles.
const IMAGE: &str = "gardenlinux";

/// Platforms with images for CloudProfiles, and their provider types.
const PLATFORMS: [(&str, &str); 6] = [
    ("ali", "alicloud"),
    ("aws", "aws"),
    ("azure", "azure"),
    ("gcp", "gcp"),
    ("openstack", "openstack"),
    (BARE_METAL_PLATFORM, "openstack"),
];

/// Platform of OpenStack images for physical machines.
const BARE_METAL_PLATFORM: &str = "openstackbaremetal";

#[derive(Deserialize)]
struct Metadata {
    architecture: String,
    platform: String,
    version: String,
    build_timestamp: Option<String>,
    #[serde(default)]
    require_uefi: Option<bool>,
    #[serde(default)]
    secureboot: Option<bool>,
    #[serde(default)]
    s3_key: String,
    published_image_metadata: Option<Published>,
}

/// The images: a list, or a single name for clouds with the same name in all regions.
#[derive(Deserialize)]
struct Published {
    #[serde(
        default,
        alias = "published_alicloud_images",
        alias = "published_aws_images",
        alias = "published_openstack_images"
    )]
    regional: Vec<RegionalImage>,
    #[serde(default)]
    published_gallery_images: Vec<GalleryImage>,
    #[serde(default)]
    gcp_image_name: String,
    #[serde(default)]
    gcp_project_name: String,
}

#[derive(Deserialize)]
struct RegionalImage {
    #[serde(alias = "ami_id", alias = "image_id")]
    id: String,
    #[serde(alias = "aws_region_id", alias = "region_id", alias = "region_name")]
    region: String,
    #[serde(default)]
    image_name: String,
}

#[derive(Deserialize)]
struct GalleryImage {
    azure_cloud: String,
    #[serde(default)]
    community_gallery_image_id: Option<String>,
    #[serde(default)]
    hyper_v_generation: String,
}

fn read(document: &Value, _region: Option<&str>) -> Result<Listing, SourceError> {
    let metadata: Metadata = decode_value(document).map_err(|error| SourceError::new(error.path, error.message))?;
    let provider = PLATFORMS.iter().find(|(platform, _)| *platform == metadata.platform).map(|(_, provider)| *provider);
    let Some(published) = &metadata.published_image_metadata else { return Ok(Listing::default()) };
    let Some(provider) = provider else {
        let unknown = format!("images of the platform {:?} are left out", text(&metadata.platform));
        return Ok(Listing { left_out: vec![unknown], ..Listing::default() });
    };
    let mut images = Vec::new();
    for image in &published.regional {
        let of_cloud = ImageReference::members(provider).next().unwrap_or_default();
        let reference = member("published_image_metadata", ImageReference::new(provider, of_cloud, &image.id))?;
        let record = metadata.record(provider, reference, &image.image_name)?;
        images.push(ImageRecord { region: Some(text(&image.region)), ..record });
    }
    for image in &published.published_gallery_images {
        let Some(id) = &image.community_gallery_image_id else { continue };
        let path = "published_image_metadata.published_gallery_images.community_gallery_image_id";
        let reference = member(path, ImageReference::new(provider, "communityGalleryImageID", id))?;
        let record = metadata.record(provider, reference, id.split('/').nth(4).unwrap_or_default())?;
        let boot_mode = if image.hyper_v_generation == "V1" { "legacy-bios" } else { "uefi" };
        let record =
            record.with_fact(fact::GENERATION, &[&image.hyper_v_generation]).with_fact(fact::BOOT_MODE, &[boot_mode]);
        let owner = text(id.split('/').nth(2).unwrap_or_default());
        images.push(ImageRecord { realm: text(&image.azure_cloud), owner, ..record });
    }
    if !published.gcp_image_name.is_empty() {
        let path = format!("projects/{}/global/images/{}", published.gcp_project_name, published.gcp_image_name);
        let reference =
            member("published_image_metadata.gcp_image_name", ImageReference::new(provider, "image", &path))?;
        let record = metadata.record(provider, reference, &published.gcp_image_name)?;
        images.push(ImageRecord { owner: text(&published.gcp_project_name), ..record });
    }
    Ok(Listing { images, ..Listing::default() })
}

impl Metadata {
    /// Data common to all images of the document.
    fn record(
        &self,
        provider: &'static str,
        reference: ImageReference,
        name: &str,
    ) -> Result<ImageRecord, SourceError> {
        let boot_modes: &[&str] = if self.require_uefi == Some(true) || self.architecture == "arm64" {
            &["uefi"]
        } else {
            &["uefi", "legacy-bios"]
        };
        let hypervisor: &[&str] = if self.platform == BARE_METAL_PLATFORM { &[fact::BARE_METAL] } else { &[] };
        let secure_boot = self.secureboot.map(|secure| secure.to_string()).unwrap_or_default();
        let record = ImageRecord::new(provider, reference, name)
            .with_fact(fact::ARCHITECTURE, &[&self.architecture])
            .with_fact(fact::BOOT_MODE, boot_modes)
            .with_fact(fact::SECURE_BOOT, &[&secure_boot])
            .with_fact(fact::HYPERVISOR, hypervisor)
            .with_fact(fact::VARIANT, &[self.variant()]);
        Ok(ImageRecord {
            realm: PUBLIC.to_owned(),
            created: time("build_timestamp", self.build_timestamp.as_deref())?,
            release: Some(Release { image: IMAGE.to_owned(), version: three_numbers(&self.version) }.into()),
            ..record
        })
    }

    /// Extracts `gardener_prod` from `meta/singles/aws-gardener_prod-amd64-1877.3-75df9f40`.
    fn variant(&self) -> &str {
        let name = self.s3_key.rsplit('/').next().unwrap_or_default();
        let rest = name.strip_prefix(&self.platform).and_then(|rest| rest.strip_prefix('-')).unwrap_or_default();
        rest.split_once(&format!("-{}", self.architecture)).map_or("", |(variant, _)| variant)
    }
}

/// Extends a version to the three numbers that Gardener requires: `1877.3` becomes `1877.3.0`.
fn three_numbers(version: &str) -> String {
    let missing = 3_usize.saturating_sub(version.split('.').count());
    format!("{}{}", text(version), ".0".repeat(missing))
}
