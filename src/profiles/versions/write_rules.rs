//! The API server's errors for the versions of a Shoot that a user writes (docs/preview.md#refusals). The texts are
//! close to Gardener's.

use jiff::Timestamp;

use super::catalog::{ListedVersion, VersionCatalog};
use super::update_rules::{self, kubelet, listed, misfit};
use wire::api::gardener::{VersionedPool, VersionedShoot, VersionedShootSpec};
use wire::api::gotext::version::Version;
use wire::capabilities::Classification;

/// Errors for a Shoot that is created, or that replaces `before`.
#[must_use]
pub fn refusals(
    before: Option<&VersionedShoot>,
    after: &VersionedShoot,
    catalog: &VersionCatalog<'_>,
    now: Timestamp,
) -> Vec<String> {
    let rules = WriteRules { before: before.map(|before| &before.spec), after: &after.spec, catalog, now };
    let mut refused = rules.control_plane();
    for (index, pool) in after.spec.provider.workers.iter().enumerate() {
        let path = format!("spec.provider.workers[{index}]");
        refused.extend(rules.kubernetes_of_pool(pool, &path));
        refused.extend(rules.image(pool, &path));
    }
    refused.extend(update_rules::refused(&with_pools_of(before, after), after));
    refused
}

/// The old Shoot with its pools in the order of the new one. A new pool is copied from the new Shoot, so that it has no
/// change.
fn with_pools_of(before: Option<&VersionedShoot>, after: &VersionedShoot) -> VersionedShoot {
    let mut aligned = before.unwrap_or(after).clone();
    let pools = after.spec.provider.workers.iter();
    let old = |pool: &VersionedPool| pool_named(before.map(|before| &before.spec), &pool.name).unwrap_or(pool).clone();
    aligned.spec.provider.workers = pools.map(old).collect();
    aligned
}

fn pool_named<'a>(spec: Option<&'a VersionedShootSpec>, name: &str) -> Option<&'a VersionedPool> {
    spec?.provider.workers.iter().find(|pool| pool.name == name)
}

/// Both Shoots, and the inputs of the rules for the new one.
struct WriteRules<'a> {
    before: Option<&'a VersionedShootSpec>,
    after: &'a VersionedShootSpec,
    catalog: &'a VersionCatalog<'a>,
    now: Timestamp,
}

impl<'a> WriteRules<'a> {
    fn control_plane(&self) -> Vec<String> {
        let Some(requested) = self.after.kubernetes.version.as_deref() else { return Vec::new() };
        let old = self.before.and_then(|before| before.kubernetes.version.as_deref());
        let mut refused: Vec<String> = self.kubernetes(requested, old, "spec.kubernetes.version").into_iter().collect();
        if let (Ok(requested), Some(Ok(old))) = (Version::parse(requested), old.map(Version::parse)) {
            refused.extend(
                changed_version(&requested, &old, false).map(|text| format!("spec.kubernetes.version: {text}")),
            );
        }
        refused
    }

    /// A new version of a Shoot or pool must be listed. A new Shoot or pool can't have an expired one.
    fn kubernetes(&self, requested: &str, old: Option<&str>, path: &str) -> Option<String> {
        if old == Some(requested) || self.catalog.kubernetes.is_empty() {
            return None;
        }
        let found = self.catalog.kubernetes.iter().find(|listed| listed.text == requested);
        let why = match found.map(|listed| (listed.at(self.now), old)) {
            None => "the CloudProfile does not list it",
            Some((Classification::Expired, None)) => "it has expired",
            Some((Classification::Unavailable, None)) => "its first stage has not begun",
            Some(_) => return None,
        };
        Some(format!("{path}: Unsupported value: {requested:?}: {why}"))
    }

    fn kubernetes_of_pool(&self, pool: &VersionedPool, path: &str) -> Vec<String> {
        let old = pool_named(self.before, &pool.name);
        let own = pool.kubernetes.version.as_deref();
        let path = format!("{path}.kubernetes.version");
        let mut refused = Vec::new();
        if let Some(requested) = own {
            // `control_plane` checks the version of the control plane.
            if self.after.kubernetes.version.as_deref() != Some(requested) {
                let of_control_plane = self.before.and_then(|before| before.kubernetes.version.as_deref());
                let effective = |old: &'a VersionedPool| old.kubernetes.version.as_deref().or(of_control_plane);
                refused.extend(self.kubernetes(requested, old.and_then(effective), &path));
            }
        }
        let Some((old, before)) = old.zip(self.before) else { return refused };
        let has_own = own.is_some() || old.kubernetes.version.is_some();
        if let (true, Some(requested), Some(old)) = (has_own, kubelet(self.after, pool), kubelet(before, old)) {
            let skips = !pool.is_updated_in_place();
            refused.extend(changed_version(&requested, &old, skips).map(|text| format!("{path}: {text}")));
        }
        refused
    }

    fn image(&self, pool: &VersionedPool, path: &str) -> Option<String> {
        let old = pool_named(self.before, &pool.name);
        let image = pool.machine.image.as_ref()?;
        let path = format!("{path}.machine.image");
        let entry = listed(pool, self.catalog);
        let old_image = old.and_then(|old| old.machine.image.as_ref());
        if old_image != Some(image) && !self.catalog.images.is_empty() {
            let is_lower = old_image
                .is_some_and(|old| old.name == image.name && is_lower(&image.version, &old.version) == Some(true));
            let is_kept_name = old_image.is_some_and(|old| old.name == image.name);
            if pool.is_updated_in_place() && old_image.is_some() && !is_kept_name {
                return Some(format!("{path}.name: Forbidden: an update in place keeps the name of the image"));
            }
            if pool.is_updated_in_place() && is_lower {
                return Some(format!("{path}.version: Forbidden: an update in place does not lower the version"));
            }
            if let Some(why) = self.unusable(entry.map(|entry| &entry.listed), is_kept_name && !is_lower) {
                return Some(format!("{path}.version: Invalid value: {:?}: {why}", image.version));
            }
        }
        let has_changed = old.zip(self.before).is_none_or(|(old, before)| {
            old.machine != pool.machine || kubelet(before, old) != kubelet(self.after, pool)
        });
        if !has_changed {
            return None;
        }
        misfit(pool, kubelet(self.after, pool), entry, self.catalog).map(|text| format!("{path}{text}"))
    }

    /// Why a pool can't have a version of an image. An expired version is allowed if it is not lower than the previous
    /// one.
    fn unusable(&self, listed: Option<&ListedVersion<'_>>, may_have_expired: bool) -> Option<&'static str> {
        match listed.map(|listed| listed.at(self.now)) {
            None => Some("the CloudProfile does not list it"),
            Some(Classification::Expired) if !may_have_expired => Some("it has expired"),
            Some(Classification::Unavailable) => Some("its first stage has not begun"),
            Some(_) => None,
        }
    }
}

fn is_lower(requested: &str, old: &str) -> Option<bool> {
    Some(Version::parse(requested).ok()? < Version::parse(old).ok()?)
}

/// The error for a change of a Kubernetes version.
fn changed_version(requested: &Version, old: &Version, may_skip_minors: bool) -> Option<&'static str> {
    if requested < old {
        return Some("Forbidden: kubernetes version downgrade is not supported");
    }
    let skips = requested.major == old.major && requested.minor > old.minor.saturating_add(1);
    (skips && !may_skip_minors).then_some("Forbidden: kubernetes version upgrade cannot skip a minor version")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use wire::api::gardener::ProfileSpec;

    fn profile() -> ProfileSpec {
        let profile = json!({
            "kubernetes": {"versions": [{"version": "1.35.0", "classification": "preview"}, {"version": "1.34.2"},
                {"version": "1.33.2", "expirationDate": "2026-01-01T00:00:00Z"}, {"version": "1.32.9"}]},
            "machineImages": [{"name": "os", "versions": [{"version": "3.0.0", "classification": "preview"}, {"version": "2.0.0"},
                {"version": "2.1.0", "expirationDate": "2026-01-01T00:00:00Z"},
                {"version": "1.0.0", "expirationDate": "2026-01-01T00:00:00Z"}]}],
            "machineTypes": [{"name": "t"}],
        });
        serde_json::from_value(profile).unwrap()
    }

    fn shoot(kubernetes: &str, pool: Option<&str>, image: &str, strategy: &str) -> VersionedShoot {
        let own = pool.map_or(Value::Null, |version| json!({ "version": version }));
        let pool = json!({"name": "a", "kubernetes": own, "updateStrategy": strategy,
            "machine": {"type": "t", "image": {"name": "os", "version": image}}});
        let spec = json!({"kubernetes": {"version": kubernetes}, "provider": {"workers": [pool]}});
        serde_json::from_str(&json!({ "spec": spec }).to_string()).unwrap()
    }

    fn refused(before: Option<&VersionedShoot>, after: &VersionedShoot) -> String {
        let profile = profile();
        let now = "2026-06-01T00:00:00Z".parse().unwrap();
        refusals(before, after, &VersionCatalog::new("p", &profile), now).join("; ")
    }

    #[test]
    fn new_shoots_get_no_expired_version() {
        assert_eq!(refused(None, &shoot("1.34.2", None, "2.0.0", "")), "");
        assert_eq!(refused(None, &shoot("1.35.0", None, "3.0.0", "")), "", "previews are chosen explicitly");
        let expired = refused(None, &shoot("1.33.2", None, "1.0.0", ""));
        assert!(
            expired.contains("spec.kubernetes.version: Unsupported value: \"1.33.2\": it has expired"),
            "{expired}"
        );
        assert!(
            expired.contains("workers[0].machine.image.version: Invalid value: \"1.0.0\": it has expired"),
            "{expired}"
        );
        let unknown = refused(None, &shoot("1.34.9", None, "9.0.0", ""));
        assert_eq!(unknown.matches("does not list it").count(), 2, "{unknown}");
    }

    #[test]
    fn versions_that_stay_are_kept() {
        let old = shoot("1.33.2", None, "1.0.0", "");
        assert_eq!(refused(Some(&old), &old), "");
        assert_eq!(refused(Some(&old), &shoot("1.34.2", None, "2.1.0", "")), "", "expired, but not lower");
    }

    #[test]
    fn kubernetes_neither_downgrades_nor_skips_a_minor() {
        let of = |old: &str, new: &str| refused(Some(&shoot(old, None, "2.0.0", "")), &shoot(new, None, "2.0.0", ""));
        assert_eq!(
            of("1.34.2", "1.33.2"),
            "spec.kubernetes.version: Forbidden: kubernetes version downgrade is not supported"
        );
        assert!(of("1.32.9", "1.34.2").contains("cannot skip a minor version"));
        assert_eq!(of("1.32.9", "1.33.2"), "", "an expired one may be set explicitly");
        let pools = |old: &str, new: &str, strategy: &str| {
            let of = |version| shoot("1.34.2", Some(version), "2.0.0", strategy);
            refused(Some(&of(old)), &of(new))
        };
        assert_eq!(pools("1.32.9", "1.34.2", ""), "", "pools may skip minors");
        assert!(pools("1.32.9", "1.34.2", "AutoInPlaceUpdate").contains("cannot skip a minor version"));
        assert!(pools("1.34.2", "1.33.2", "").contains("workers[0].kubernetes.version: Forbidden"));
    }

    #[test]
    fn images_go_down_only_to_current_versions() {
        let of = |old: &str, new: &str, strategy: &str| {
            refused(Some(&shoot("1.34.2", None, old, strategy)), &shoot("1.34.2", None, new, strategy))
        };
        assert!(of("2.0.0", "1.0.0", "").contains("it has expired"));
        assert_eq!(of("3.0.0", "2.0.0", ""), "");
        assert!(of("3.0.0", "2.0.0", "ManualInPlaceUpdate").contains("does not lower the version"));
    }
}
