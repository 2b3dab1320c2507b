//! Validates Shoot pools on AliCloud. Their `providerConfig` is ignored.

use crate::provider::shoot_pools::{infrastructure_config, validate_pools, validate_volumes, validate_zones};
use wire::api::gardener::{ShootPool, ShootPools};
use wire::api::gotext::field::{FieldErrors, FieldPath};

/// Maximum number of data volumes of a machine.
const MAX_DATA_VOLUMES: usize = 64;
/// Maximum length of a data volume name.
const LONGEST_NAME: usize = 64;

/// Validates the pools and their changes from `old`.
pub(super) fn validate(pools: &ShootPools, old: Option<&ShootPools>) -> FieldErrors {
    let configured: Option<Vec<String>> = infrastructure_config(pools).map(|config| config.zones().cloned().collect());
    validate_pools(pools, old, |pool: &ShootPool, path: FieldPath<'_>, errors: &mut FieldErrors| {
        validate_volumes(pool, MAX_DATA_VOLUMES, path, errors);
        let volumes = path.child("dataVolumes");
        for (index, volume) in pool.data_volumes.iter().enumerate() {
            validate_name(&volume.name, volumes.index(index), errors);
        }
        if pool.zones.is_empty() {
            errors.required(path.child("zones"), "at least one zone must be configured");
        }
        validate_zones(pool, configured.as_deref(), path, errors);
    })
}

fn validate_name(name: &str, path: FieldPath<'_>, errors: &mut FieldErrors) {
    let length = name.chars().count();
    if length > LONGEST_NAME {
        errors.invalid(
            path.child("name"),
            name,
            format!("must not be more than {LONGEST_NAME} characters, got {length}"),
        );
    }
    let mut characters = name.chars();
    let begins = characters.next().is_some_and(|first| first.is_ascii_alphabetic());
    let is_allowed = |character: char| character.is_ascii_alphanumeric() || ".-_:".contains(character);
    if !begins || length < 2 || !characters.all(is_allowed) {
        errors.invalid(path.child("name"), name, r"does not match expected regex ^[a-zA-Z][a-zA-Z0-9\.\-_:]+$");
    }
}
