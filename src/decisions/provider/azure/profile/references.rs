//! Validates image references in Azure CloudProfiles.

use crate::provider::azure::documents::ImageReferences;
use wire::api::gotext::field::{FieldErrors, FieldPath};

/// A gallery: the member for its images, its name in messages, and the prefix and format of its ids.
struct Gallery {
    member: &'static str,
    name: &'static str,
    prefix: &'static str,
    format: &'static str,
}

const GALLERIES: [Gallery; 2] = [
    Gallery {
        member: "communityGalleryImageID",
        name: "communityGalleryImageID",
        prefix: "CommunityGalleries",
        format: "/CommunityGalleries/<communityGalleryName>/Images/<communityGalleryImageName>/Versions/<communityGalleryImageVersionName>",
    },
    Gallery {
        member: "sharedGalleryImageID",
        name: "SharedGalleryImageID",
        prefix: "SharedGalleries",
        format: "/SharedGalleries/<sharedGalleryName>/Images/<sharedGalleryImageName>/Versions/<sharedGalleryImageVersionName>",
    },
];

/// Requires exactly one well-formed reference at `path`.
pub(super) fn validate_references(references: ImageReferences<'_>, path: FieldPath<'_>, errors: &mut FieldErrors) {
    let mut given = references.given();
    let (Some((member, value)), None) = (given.next(), given.next()) else {
        errors.required(path, "must provide either urn, id, sharedGalleryImageID or communityGalleryImageID");
        return;
    };
    let path = path.child(member);
    let gallery = GALLERIES.iter().find(|gallery| gallery.member == member);
    let name = gallery.map_or(member, |gallery| gallery.name);
    if value.is_empty() {
        errors.required(path, format!("{name} cannot be empty when defined"));
    } else if let Some(gallery) = gallery {
        validate_gallery(value, gallery, path, errors);
    } else if member == "urn" && value.split(':').count() != 4 {
        errors.invalid(path, value, "please use the format `Publisher:Offer:Sku:Version` for the urn");
    }
}

fn validate_gallery(id: &str, gallery: &Gallery, path: FieldPath<'_>, errors: &mut FieldErrors) {
    let Gallery { member: _, name, prefix, format } = gallery;
    let parts: Vec<&str> = id.split('/').collect();
    if parts.len() != 7 {
        errors.invalid(path, id, format!("please use the format `{format}` for the {name}"));
    } else if !parts.get(1).is_some_and(|part| part.eq_ignore_ascii_case(prefix)) {
        errors.invalid(path, id, format!("{name} must start with '/{prefix}/' prefix"));
    }
}
