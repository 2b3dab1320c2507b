//! The rules by which the API server rejects a Shoot that maintenance changed (docs/versions.md#refused).

use jiff::Timestamp;

use wire::api::gardener::{VersionedPool, VersionedShoot, VersionedShootSpec};
use wire::api::gotext::version::Version;
use wire::capabilities::{Classification, is_supported_by_image};

use super::catalog::{ListedImageVersion, VersionCatalog};
use super::garden::Validation;
use super::texts;

/// Annotation with which an owner requests an operation.
pub const OPERATION: &str = "gardener.cloud/operation";
/// Maximum number of minors that a pool may be behind its control plane.
const MAX_MINOR_SKEW: u64 = 3;
/// Operation that allows changes of pools during their in-place update.
const FORCED_IN_PLACE: &str = "force-in-place-update";

/// The API server's error for a changed Shoot; `None` if it is accepted.
pub(super) fn rejection(
    validation: Validation,
    [before, after]: [&VersionedShoot; 2],
    catalog: &VersionCatalog<'_>,
    now: Timestamp,
) -> Option<String> {
    let name = after.metadata.name.as_deref().unwrap_or_default();
    let of_shoot = match validation {
        Validation::Off => return None,
        Validation::OfShoot | Validation::WithProfile => refused(before, after),
    };
    if !of_shoot.is_empty() {
        return Some(texts::invalid(name, &of_shoot));
    }
    let with_profile = match validation {
        Validation::Off | Validation::OfShoot => Vec::new(),
        Validation::WithProfile => refused_with_profile(&before.spec, &after.spec, catalog, now),
    };
    (!with_profile.is_empty()).then(|| texts::forbidden(name, &with_profile))
}

/// The API server's errors for the versions of a changed shoot, without those that depend on the CloudProfile. The
/// texts are Gardener's.
pub(super) fn refused(before: &VersionedShoot, after: &VersionedShoot) -> Vec<String> {
    let spec = &after.spec;
    let Some(control_plane) = parsed(spec.kubernetes.version.as_deref()) else { return Vec::new() };
    let mut refused = Vec::new();
    let has_binding = spec.secret_binding_name.as_deref().is_some_and(|name| !name.is_empty());
    if has_binding && control_plane.at_least_including_prereleases(1, 34) {
        refused.push(
            "spec.secretBindingName: Forbidden: for Kubernetes versions >= 1.34, secretBindingName field is no longer \
             supported, use spec.credentialsBindingName instead"
                .to_owned(),
        );
    }
    for (index, pool) in spec.provider.workers.iter().enumerate() {
        let Some(version) = parsed(pool.kubernetes.version.as_deref()) else { continue };
        let path = format!(
            "spec.provider.workers[{index}].kubernetes.version: Forbidden: worker group kubernetes version must"
        );
        if version > control_plane {
            refused.push(format!("{path} not be higher than control plane version"));
        }
        if minors_behind(&version, &control_plane).is_none_or(|behind| behind > MAX_MINOR_SKEW) {
            refused.push(format!("{path} be at most three minor versions behind control plane version"));
        }
    }
    refused.extend(changed_in_place(before, after));
    refused
}

/// Rejects changes of pools with nodes that a user has yet to select for an in-place update. Gardener also rejects
/// changes of pools with automatic in-place updates until they finish; those updates are assumed to be finished.
fn changed_in_place(before: &VersionedShoot, after: &VersionedShoot) -> Vec<String> {
    let requested = after.metadata.annotations.as_ref().and_then(|annotations| annotations.get(OPERATION));
    if requested.is_some_and(|operation| operation == FORCED_IN_PLACE) {
        return Vec::new();
    }
    let pending = &after.status.in_place_updates.pending_worker_updates;
    let is_pending = |pool: &VersionedPool| {
        pool.update_strategy == "ManualInPlaceUpdate" && pending.manual_in_place_update.contains(&pool.name)
    };
    let old = &before.spec;
    let new = &after.spec;
    let pools = new.provider.workers.iter().zip(&old.provider.workers).enumerate();
    let changed = pools.filter(|(_, (pool, old_pool))| {
        is_pending(pool)
            && (pool.machine != old_pool.machine
                || pool.kubernetes != old_pool.kubernetes
                || kubelet(new, pool) != kubelet(old, old_pool))
    });
    let text = |(index, (pool, _)): (usize, (&VersionedPool, _))| {
        format!(
            "spec.provider.workers[{index}]: Forbidden: the worker pool {:?} is currently undergoing an in-place update. No \
             changes are allowed to the worker pool, the Shoot Kubernetes version, or the Shoot kubelet configuration. You \
             can force an update with annotating the Shoot with '{OPERATION}={FORCED_IN_PLACE}'",
            pool.name
        )
    };
    changed.map(text).collect()
}

/// The errors about images of a changed Shoot that contradict its profile, also for unchanged pools. The texts are
/// Gardener's, without the values.
fn refused_with_profile(
    before: &VersionedShootSpec,
    after: &VersionedShootSpec,
    catalog: &VersionCatalog<'_>,
    now: Timestamp,
) -> Vec<String> {
    let pools = after.provider.workers.iter().zip(&before.provider.workers).enumerate();
    let refused =
        pools.flat_map(|(index, (pool, old))| refused_pool(index, [old, pool], kubelet(after, pool), catalog, now));
    refused.collect()
}

/// What of the image of a pool contradicts its profile.
pub(super) fn refused_pool(
    index: usize,
    [old, pool]: [&VersionedPool; 2],
    kubelet: Option<Version>,
    catalog: &VersionCatalog<'_>,
    now: Timestamp,
) -> Vec<String> {
    let mut refused = Vec::new();
    let Some(image) = &pool.machine.image else { return refused };
    let path = format!("spec.provider.workers[{index}].machine.image");
    let listed = listed(pool, catalog);
    if pool.machine.image != old.machine.image {
        match listed.map(|listed| listed.listed.at(now)) {
            None => refused.push(format!("{path}.version: Unsupported value: {:?}", image.version)),
            Some(Classification::Unavailable) => refused.push(format!(
                "{path}: Invalid value: machine image version '{}:{}' is expired (its first stage has not begun)",
                image.name, image.version
            )),
            Some(_) => {}
        }
    }
    refused.extend(misfit(pool, kubelet, listed, catalog).map(|text| format!("{path}{text}")));
    refused
}

/// Why the image of a pool can't run on its machines, or not with its kubelet.
pub(super) fn misfit(
    pool: &VersionedPool,
    kubelet: Option<Version>,
    listed: Option<&ListedImageVersion<'_>>,
    catalog: &VersionCatalog<'_>,
) -> Option<String> {
    let listed = listed?;
    let spec = catalog.spec;
    let title = format!("{}:{}", pool.machine.image.as_ref()?.name, listed.listed.text);
    let machine_type = catalog.machine_type(&pool.machine.machine_type);
    let definitions = &spec.machine_capabilities;
    let runs = |capabilities| is_supported_by_image(capabilities, &listed.entry.capability_flavors, definitions);
    if !definitions.is_empty() && machine_type.is_some_and(|machine_type| !runs(&machine_type.capabilities)) {
        return Some(format!(
            ".version: Invalid value: machine capabilities of machine type {:?} are not supported by machine image {title}",
            pool.machine.machine_type
        ));
    }
    let (kubelet, constraint) = (kubelet?, listed.kubelet.as_ref()?);
    let is_allowed = constraint.as_ref().is_some_and(|constraint| constraint.allows(&kubelet));
    (!is_allowed).then(|| {
        let required = listed.entry.kubelet_version_constraint.as_deref().unwrap_or_default();
        format!(
            ": Invalid value: machine image '{title}' does not support kubelet version '{kubelet}', supported kubelet \
             versions by this machine image version: '{required}'"
        )
    })
}

/// The version of the image of a pool in the profile, by its exact name.
pub(super) fn listed<'c>(pool: &VersionedPool, catalog: &'c VersionCatalog<'c>) -> Option<&'c ListedImageVersion<'c>> {
    let image = pool.machine.image.as_ref()?;
    let images = catalog.images.iter().filter(|listed| listed.image.name == image.name);
    images.flat_map(|listed| &listed.versions).find(|version| version.listed.text == image.version)
}

/// The version of the kubelets of a pool.
pub(super) fn kubelet(spec: &VersionedShootSpec, pool: &VersionedPool) -> Option<Version> {
    parsed(pool.kubernetes.version.as_deref().or(spec.kubernetes.version.as_deref()))
}

fn parsed(version: Option<&str>) -> Option<Version> {
    Version::parse(version?).ok()
}

/// How many minors a pool is behind; `None` if its major is lower.
fn minors_behind(pool: &Version, control_plane: &Version) -> Option<u64> {
    (control_plane.major <= pool.major).then(|| control_plane.minor.saturating_sub(pool.minor))
}
