//! Predicts whether the garden rejects a Shoot, by the rules of `forecast` and of the webhook for Shoots
//! (docs/preview.md#refusals). A rejected change does not affect nodes.

use std::collections::HashSet;

use serde_json::Value;

use super::inputs::Inputs;
use decisions::provider::Providers;
use profiles::shoot::is_stored;
use profiles::versions::catalog::VersionCatalog;
use profiles::versions::write_rules;
use wire::api::bounded_text::listed;
use wire::api::gardener::{OrderedShoot, ProfileSpec, ShootPool, ShootPools, VersionedShoot};
use wire::api::gotext::field::{FieldError, FieldErrors, FieldPath};
use wire::api::gotext::json::{decode_lenient, to_go_json};

/// Maximum bytes of all errors of a Shoot.
const MOST_OF_TEXT: usize = 4096;
/// Field path of pools in a Shoot.
const POOLS: FieldPath<'static> = FieldPath::new("spec.provider.workers");

/// Why the garden would reject the Shoot of `new`; `None` if it accepts it. `old` and `new` contain Shoots as they are
/// stored, `written` the Shoot as the user wrote it.
pub(super) fn refusal(old: Option<&Inputs>, new: &Inputs, written: &Inputs) -> Option<String> {
    let source = new.made_from_shoot.as_ref()?;
    let after = &new.shoot.as_ref()?.value;
    let before = old.and_then(|old| old.shoot.as_ref()).map(|shoot| &shoot.value);
    // Stored Shoots have been admitted, and maintenance writes only changes that the API server accepts.
    let is_admitted = before.is_none() && written.shoot.as_ref().is_some_and(|shoot| is_stored(&shoot.value));
    if source.is_maintenance || is_admitted || before == Some(after) {
        return None;
    }
    let profile = new.cloud_profile.as_ref()?;
    let complete = profile.complete().ok()?;
    let catalog = VersionCatalog::new(profile.name(), complete);
    let read = |shoot: &Value| decode_lenient::<VersionedShoot>(&to_go_json(shoot)).ok();
    let old = before.and_then(read);
    let mut texts = write_rules::refusals(old.as_ref(), &read(after)?, &catalog, source.now);
    texts.extend(of_pools(before, after, complete, new.providers));
    (!texts.is_empty()).then(|| listed(&texts, MOST_OF_TEXT))
}

/// Errors of the pools that they did not have before.
fn of_pools(before: Option<&Value>, after: &Value, profile: &ProfileSpec, providers: Providers) -> Vec<String> {
    let read = |shoot: &Value| decode_lenient::<OrderedShoot>(&to_go_json(shoot)).ok();
    let Some(after) = read(after) else { return Vec::new() };
    let before = before.and_then(read);
    let old = before.as_ref().map(|before| &before.spec.provider);
    let pools = &after.spec.provider;
    let mut errors = FieldErrors::default();
    if let Ok(provider) = providers.for_worker_type(&pools.provider_type) {
        errors = provider.validate_shoot_pools(pools, old);
        let standing = old.map(|old| provider.validate_shoot_pools(old, Some(old))).unwrap_or_default();
        let standing: HashSet<&FieldError> = standing.0.iter().collect();
        errors.0.retain(|error| !standing.contains(error));
    }
    errors.extend(configs(old, pools, profile, providers));
    errors.extend(zones(old, pools, profile, &after.spec.region));
    errors.0.iter().map(ToString::to_string).collect()
}

fn before<'a>(old: Option<&'a ShootPools>, pool: &ShootPool) -> Option<&'a ShootPool> {
    old?.workers.iter().find(|before| before.name == pool.name)
}

/// Errors of changed provider configs that are compared with the CloudProfile.
fn configs(old: Option<&ShootPools>, pools: &ShootPools, profile: &ProfileSpec, providers: Providers) -> FieldErrors {
    let mut errors = FieldErrors::default();
    let format = providers.profile_format(&profile.provider_type).filter(|format| format.compares_pools());
    let config = format.and_then(|format| format.open(profile.provider_config.as_deref()).ok());
    let Some(config) = config else { return errors };
    let text = |pool: &ShootPool| pool.provider_config.as_ref().map(|config| config.get().to_owned());
    let problems = |pool: &ShootPool, index: usize| {
        let mut problems = FieldErrors::default();
        config.validate_pool(pool, POOLS.index(index), &mut problems);
        problems
    };
    for (index, pool) in pools.workers.iter().enumerate() {
        let before = before(old, pool);
        if pool.provider_config.is_none() || before.and_then(text) == text(pool) {
            continue;
        }
        let mut found = problems(pool, index);
        // If the stored pool has the error as well, the CloudProfile has changed since the pool was admitted.
        let standing = before.map(|before| problems(before, index)).unwrap_or_default();
        found.0.retain(|error| standing.0.iter().all(|known| known.field != error.field));
        errors.extend(found);
    }
    errors
}

/// Errors for new zones of a pool that the CloudProfile does not list for the region.
fn zones(old: Option<&ShootPools>, pools: &ShootPools, profile: &ProfileSpec, region: &str) -> FieldErrors {
    let mut errors = FieldErrors::default();
    let Some(region) = profile.regions.iter().find(|known| known.name == region) else { return errors };
    let known: Vec<&str> = region.zones.iter().map(|zone| zone.name.as_str()).collect();
    for (index, pool) in pools.workers.iter().enumerate() {
        let kept = before(old, pool).map(|before| before.zones.as_slice()).unwrap_or_default();
        for (position, zone) in pool.zones.iter().enumerate() {
            if !known.is_empty() && !known.contains(&zone.as_str()) && !kept.contains(zone) {
                errors.not_supported(POOLS.index(index).child("zones").index(position), zone, known.iter().copied());
            }
        }
    }
    errors
}
