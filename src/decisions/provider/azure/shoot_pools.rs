//! Validates Shoot pools on Azure.

use super::documents::{DataVolumeImage, WorkerConfig};
use super::resource_id::ResourceId;
use crate::provider::shoot_pools::{
    self, InfrastructureConfig, infrastructure_config, is_word, validate_node_template, validate_volumes,
    validate_zones, validate_zones_once,
};
use wire::api::gardener::{ShootPool, ShootPools};
use wire::api::gotext::field::{FieldErrors, FieldPath};

/// Maximum number of data volumes of a machine.
const MAX_DATA_VOLUMES: usize = 64;
/// Supported caching modes of the root volume.
const CACHING: [&str; 3] = ["None", "ReadOnly", "ReadWrite"];
/// Maximum lengths of a marketplace URN and of a gallery image id.
const MAX_URN_LENGTH: usize = 256;
const LONGEST_GALLERY_IMAGE: usize = 512;

/// Validates the pools and their changes from `old`.
pub(super) fn validate(pools: &ShootPools, old: Option<&ShootPools>) -> FieldErrors {
    let infrastructure = infrastructure_config(pools);
    let of_pool = |pool: &ShootPool, path: FieldPath<'_>, errors: &mut FieldErrors| {
        validate_volumes(pool, MAX_DATA_VOLUMES, path, errors);
        refuse_encryption(pool, path, errors);
        match &infrastructure {
            Some(infrastructure) => validate_pool_zones(pool, infrastructure, path, errors),
            None => validate_zones_once(pool, path, errors),
        }
    };
    shoot_pools::validate(pools, old, of_pool, validate_config)
}

/// Azure always encrypts volumes.
fn refuse_encryption(pool: &ShootPool, path: FieldPath<'_>, errors: &mut FieldErrors) {
    if let Some(encrypted) = pool.volume.as_ref().and_then(|volume| volume.encrypted) {
        errors.not_supported(path.child("volume").child("encrypted"), encrypted, []);
    }
    let path = path.child("dataVolumes");
    for (index, volume) in pool.data_volumes.iter().enumerate() {
        if let Some(encrypted) = volume.encrypted {
            errors.not_supported(path.index(index).child("encrypted"), encrypted, []);
        }
    }
}

fn validate_pool_zones(
    pool: &ShootPool,
    infrastructure: &InfrastructureConfig<i32>,
    path: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if infrastructure.zoned && pool.zones.is_empty() {
        errors.required(path.child("zones"), "at least one zone must be configured for zoned clusters");
    }
    if !infrastructure.zoned {
        if !pool.zones.is_empty() {
            errors.required(path.child("zones"), "zones must not be specified for non zoned clusters");
        }
        validate_zones_once(pool, path, errors);
        return;
    }
    let configured: Vec<String> = infrastructure.zones().map(ToString::to_string).collect();
    validate_zones(pool, (!configured.is_empty()).then_some(&configured), path, errors);
}

fn validate_config(config: &WorkerConfig, pool: &ShootPool, path: FieldPath<'_>, errors: &mut FieldErrors) {
    let WorkerConfig {
        _api_version: _,
        _kind: _,
        node_template,
        diagnostics_profile,
        volume,
        data_volumes,
        capacity_reservation,
    } = config;
    validate_node_template(node_template.as_ref(), path, errors);
    if let Some(uri) = diagnostics_profile.as_ref().and_then(|profile| profile.storage_uri.as_deref()) {
        validate_storage_uri(uri, path.child("diagnosticsProfile").child("storageURI"), errors);
    }
    let volumes = path.child("dataVolumes");
    for (index, volume) in data_volumes.iter().enumerate() {
        let Some(image) = &volume.image_ref else { continue };
        let path = volumes.index(index);
        if !pool.data_volumes.iter().any(|known| known.name == volume.name) {
            errors.invalid(path.child("name"), &volume.name, "no dataVolume with this name exists");
        }
        if !validate_image(image, path.child("imageRef"), errors) {
            break;
        }
    }
    if let Some(caching) = volume.as_ref().and_then(|volume| volume.caching.as_deref())
        && !CACHING.contains(&caching)
    {
        errors.not_supported(path.child("volume").child("caching"), caching, CACHING);
    }
    let reservation = capacity_reservation.as_ref();
    if let Some(id) = reservation.and_then(|reservation| reservation.capacity_reservation_group_id.as_deref()) {
        let reservation = path.child("capacityReservation");
        validate_reservation(id, reservation.child("capacityReservationGroupID"), errors);
    }
}

/// Requires the form `https://<account>.blob.core<…>/<…>`, without white space.
fn validate_storage_uri(uri: &str, path: FieldPath<'_>, errors: &mut FieldErrors) {
    if uri.is_empty() {
        errors.required(path, "must not be empty");
        return;
    }
    let fits = || {
        let (account, rest) = uri.strip_prefix("https://")?.split_once(".blob.core")?;
        let is_account = (3..=24).contains(&account.len())
            && account.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        // The slash must have characters on both sides.
        let has_path = rest.char_indices().skip(1).any(|(at, character)| character == '/' && at + 1 < rest.len());
        (is_account && has_path && !rest.contains(char::is_whitespace)).then_some(())
    };
    if fits().is_none() {
        errors.invalid(
            path,
            uri,
            "must be the URI of a blob storage account: https://<account>.blob.core.<domain>/<path>",
        );
    }
}

/// Validates the image of a data volume. Returns `false` if the remaining images must be skipped.
fn validate_image(image: &DataVolumeImage, path: FieldPath<'_>, errors: &mut FieldErrors) -> bool {
    let references = image.references();
    if references.preferred().is_none() {
        errors.invalid(path, (), "imageRef is defined but empty");
        return true;
    }
    if let Some(urn) = references.urn {
        let parts: Vec<&str> = urn.split(':').collect();
        let is_urn = matches!(parts[..], [a, b, c, d] if is_word(a, "-") && is_word(b, "-") && is_word(c, ".-") && is_word(d, ".-"));
        let form = r"does not match expected regex ^[\w-]+:[\w-]+:[\w.-]+:[\w.-]+$";
        validate_text(urn, is_urn, MAX_URN_LENGTH, form, path.child("urn"), errors);
    }
    let galleries = [
        (references.community_gallery, "CommunityGalleries", "communityGalleryImageID"),
        (references.shared_gallery, "SharedGalleries", "sharedGalleryImageID"),
    ];
    for (id, gallery, member) in galleries {
        let Some(id) = id else { continue };
        let parts: Vec<&str> = id.split('/').collect();
        let is_image = matches!(parts[..], ["", kind, name, "Images", image, "Versions", version]
            if kind == gallery && is_word(name, "-") && is_word(image, "-") && is_word(version, ".-"));
        let form = format!(r"does not match expected regex ^/{gallery}/[\w-]+/Images/[\w-]+/Versions/[\w.-]+$");
        validate_text(id, is_image, LONGEST_GALLERY_IMAGE, &form, path.child(member), errors);
    }
    references.id.is_none_or(|id| validate_image_id(id, path, errors))
}

fn validate_text(text: &str, fits: bool, most: usize, form: &str, path: FieldPath<'_>, errors: &mut FieldErrors) {
    if text.is_empty() {
        errors.required(path, "must not be empty");
    } else if text.len() > most {
        errors.too_long(path, most);
    } else if !fits {
        errors.invalid(path, text, form);
    }
}

/// Returns `false` if the text is not a resource id.
fn validate_image_id(id: &str, path: FieldPath<'_>, errors: &mut FieldErrors) -> bool {
    let resource = match ResourceId::parse(id) {
        Ok(resource) => resource,
        Err(error) => {
            errors.invalid(path.child("id"), id, format!("invalid image ID: {error}"));
            return false;
        }
    };
    let path = path.child("images");
    if let Some(subscription) = resource.subscription.filter(|subscription| !is_uuid(subscription)) {
        errors.invalid(path, subscription, "must be a valid Azure subscription ID, a UUID");
    }
    if let Some(group) = resource.resource_group.filter(|group| !is_resource_group(group)) {
        errors.invalid(path, group, "must be the name of a resource group");
    }
    true
}

fn is_uuid(text: &str) -> bool {
    let lengths = text.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

fn is_resource_group(name: &str) -> bool {
    name.len() <= 90 && is_word(name, "-.()") && !name.ends_with('.')
}

fn validate_reservation(id: &str, path: FieldPath<'_>, errors: &mut FieldErrors) {
    match ResourceId::parse(id) {
        Err(error) => errors.invalid(path, id, format!("invalid Azure resource ID: {error}")),
        Ok(resource) if !resource.resource_type.eq_ignore_ascii_case("capacityReservationGroups") => {
            errors.invalid(path, id, "must be the ID of a resource of type CapacityReservationGroups");
        }
        Ok(_) => {}
    }
}
