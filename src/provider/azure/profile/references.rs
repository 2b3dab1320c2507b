//! How a CloudProfile may name images of Azure.

use crate::api::gotext::field::{FieldErrors, FieldPath};
use crate::provider::azure::documents::{ImageReference, ImageReferences};

/// A gallery, with the word that its image ids begin with and the words of messages.
struct Gallery {
    prefix: &'static str,
    name: &'static str,
    format: &'static str,
}

const COMMUNITY: Gallery = Gallery {
    prefix: "CommunityGalleries",
    name: "communityGalleryImageID",
    format: "/CommunityGalleries/<communityGalleryName>/Images/<communityGalleryImageName>/Versions/<communityGalleryImageVersionName>",
};

const SHARED: Gallery = Gallery {
    prefix: "SharedGalleries",
    name: "SharedGalleryImageID",
    format: "/SharedGalleries/<sharedGalleryName>/Images/<sharedGalleryImageName>/Versions/<sharedGalleryImageVersionName>",
};

/// What is wrong with the references at `path`: there must be one, well-formed.
pub(super) fn validate_references(references: ImageReferences<'_>, path: FieldPath<'_>, errors: &mut FieldErrors) {
    let ImageReferences { urn, community_gallery, shared_gallery, id } = references;
    let given = [urn, community_gallery, shared_gallery, id].into_iter().flatten().count();
    let (Some(reference), 1) = (references.preferred(), given) else {
        errors.required(path, "must provide either urn, id, sharedGalleryImageID or communityGalleryImageID");
        return;
    };
    let path = path.child(reference.member());
    match reference {
        ImageReference::Urn("") => errors.required(path, "urn cannot be empty when defined"),
        ImageReference::Urn(urn) if urn.split(':').count() != 4 => {
            errors.invalid(path, urn, "please use the format `Publisher:Offer:Sku:Version` for the urn");
        }
        ImageReference::Id("") => errors.required(path, "id cannot be empty when defined"),
        ImageReference::Urn(_) | ImageReference::Id(_) => {}
        ImageReference::CommunityGallery(id) => validate_gallery(id, &COMMUNITY, path, errors),
        ImageReference::SharedGallery(id) => validate_gallery(id, &SHARED, path, errors),
    }
}

fn validate_gallery(id: &str, gallery: &Gallery, path: FieldPath<'_>, errors: &mut FieldErrors) {
    let Gallery { prefix, name, format } = gallery;
    let parts: Vec<&str> = id.split('/').collect();
    if id.is_empty() {
        errors.required(path, format!("{name} cannot be empty when defined"));
    } else if parts.len() != 7 {
        errors.invalid(path, id, format!("please use the format `{format}` for the {name}"));
    } else if !parts.get(1).is_some_and(|part| part.eq_ignore_ascii_case(prefix)) {
        errors.invalid(path, id, format!("{name} must start with '/{prefix}/' prefix"));
    }
}
