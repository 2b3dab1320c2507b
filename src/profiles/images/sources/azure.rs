//! Output for Azure's galleries: `az sig image-version list`, `list-community` and `list-shared`. The same
//! subcommands of `az sig image-definition` add architecture and generation.

use serde::Deserialize;
use serde_json::Value;

use super::{Entries, Format, GalleryImage, Listing, SourceError, each, first_has, member, time};
use crate::images::record::{ImageRecord, ImageState, fact, spelled, text};
use crate::images::reference::ImageReference;
use decisions::provider::azure::cloud::AzureCloud;

pub(super) const FORMAT: Format = Format {
    fits: |document| {
        let path = document[0]["uniqueId"].as_str().or(document[0]["id"].as_str()).unwrap_or_default().to_lowercase();
        first_has(document, "uniqueId") || path.contains("/galleries/")
    },
    read,
};

/// A version of an image, or an image definition.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    id: Option<String>,
    unique_id: Option<String>,
    #[serde(default)]
    architecture: Option<String>,
    #[serde(alias = "hyperVgeneration")]
    hyper_v_generation: Option<String>,
    #[serde(default)]
    provisioning_state: Option<String>,
    published_date: Option<String>,
    end_of_life_date: Option<String>,
    #[serde(default)]
    publishing_profile: PublishingProfile,
    /// For a version shared by others, the requested region; otherwise the region of the version resource.
    location: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PublishingProfile {
    published_date: Option<String>,
    end_of_life_date: Option<String>,
    #[serde(default)]
    target_regions: Vec<TargetRegion>,
}

/// A region to which the owner replicates a version.
#[derive(Deserialize)]
struct TargetRegion {
    #[serde(default)]
    name: String,
}

/// The field for an image by the prefix of its path.
const MEMBERS: [(&str, &str); 3] = [
    ("/communitygalleries/", "communityGalleryImageID"),
    ("/sharedgalleries/", "sharedGalleryImageID"),
    ("/subscriptions/", "id"),
];

fn read(document: &Value, _region: Option<&str>) -> Result<Listing, SourceError> {
    let mut listing = Listing::default();
    let Entries { made, refused } = each(document, "", |entry: Entry| parsed(&entry))?;
    listing.refused = refused;
    for entry in made {
        match entry {
            Parsed::Version(record) => listing.images.push(*record),
            Parsed::Image(image) => listing.galleries.push(image),
        }
    }
    Ok(listing)
}

/// Converts `West Europe` to `westeurope`.
fn region_name(name: &str) -> String {
    text(&name.to_lowercase().replace(' ', ""))
}

enum Parsed {
    Version(Box<ImageRecord>),
    Image(GalleryImage),
}

fn parsed(entry: &Entry) -> Result<Parsed, SourceError> {
    let path = entry.unique_id.as_deref().or(entry.id.as_deref()).unwrap_or_default();
    let lower = path.to_lowercase();
    let Some((_, of_kind)) = MEMBERS.iter().find(|(beginning, _)| lower.starts_with(beginning)) else {
        return Err(SourceError::new("uniqueId", "the path of a gallery is expected"));
    };
    let steps: Vec<&str> = path.split('/').collect();
    let step = |name: &str| {
        let position = steps.iter().position(|step| step.eq_ignore_ascii_case(name))?;
        steps.get(position + 1).copied()
    };
    let facts = [(fact::ARCHITECTURE, &entry.architecture), (fact::GENERATION, &entry.hyper_v_generation)];
    if step("Versions").is_none() {
        let facts = facts.into_iter().filter_map(|(name, value)| Some((name, spelled(value.as_deref()?))));
        return Ok(Parsed::Image(GalleryImage { path: lower, facts: facts.collect() }));
    }
    let reference = member("uniqueId", ImageReference::new("azure", of_kind, path))?;
    let gallery = ["CommunityGalleries", "SharedGalleries", "galleries"].into_iter().find_map(step);
    let name = step("Images").unwrap_or_default();
    let mut record = ImageRecord::new("azure", reference, &format!("{name}/{}", step("Versions").unwrap_or_default()));
    for (name, value) in facts {
        record = record.with_fact(name, &[value.as_deref().unwrap_or_default()]);
    }
    let profile = &entry.publishing_profile;
    // The owner's listing has the target regions. Listings of others are requested for one region.
    let requested = if *of_kind != "id" { entry.location.as_deref() } else { None };
    let regions = profile.target_regions.iter().map(|region| region.name.as_str()).chain(requested);
    let record = record.with_regions(regions.clone().map(region_name));
    // Each of Azure's clouds has regions of its own.
    let region = entry.location.as_deref().into_iter().chain(regions).map(region_name).find(|name| !name.is_empty());
    let cloud = region.map_or(AzureCloud::Public, |region| AzureCloud::of_region(&region));
    let published = entry.published_date.as_deref().or(profile.published_date.as_deref());
    let end = entry.end_of_life_date.as_deref().or(profile.end_of_life_date.as_deref());
    Ok(Parsed::Version(Box::new(ImageRecord {
        realm: cloud.realm().to_owned(),
        owner: text(gallery.unwrap_or_default()),
        created: time("publishedDate", published)?,
        deprecated: time("endOfLifeDate", end)?,
        state: ImageState::of(entry.provisioning_state.as_deref().unwrap_or("Succeeded"), "Succeeded"),
        ..record
    })))
}
