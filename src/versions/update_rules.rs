//! What the API server refuses when maintenance changes a Shoot (docs/versions.md#refused).

use crate::api::gardener::VersionedShootSpec;
use crate::api::gotext::version::Version;

/// How many minors a pool may be behind its control plane.
const MOST_MINORS_BEHIND: u64 = 3;

/// What is wrong with the versions of a changed shoot, as the API server lists it. The texts are Gardener's.
#[must_use]
pub fn refused(spec: &VersionedShootSpec) -> Vec<String> {
    let Some(control_plane) = spec.kubernetes.version.as_deref().and_then(|version| Version::parse(version).ok())
    else {
        return Vec::new();
    };
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
        let Some(version) = pool.kubernetes.version.as_deref().and_then(|version| Version::parse(version).ok()) else {
            continue;
        };
        let path = format!(
            "spec.provider.workers[{index}].kubernetes.version: Forbidden: worker group kubernetes version must"
        );
        if version > control_plane {
            refused.push(format!("{path} not be higher than control plane version"));
        }
        if minors_behind(&version, &control_plane).is_none_or(|behind| behind > MOST_MINORS_BEHIND) {
            refused.push(format!("{path} be at most three minor versions behind control plane version"));
        }
    }
    refused
}

/// How many minors a pool is behind; `None` for another major.
fn minors_behind(pool: &Version, control_plane: &Version) -> Option<u64> {
    (control_plane.major <= pool.major).then(|| control_plane.minor.saturating_sub(pool.minor))
}
