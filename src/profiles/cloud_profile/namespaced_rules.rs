//! Gardener's admission rules for a NamespacedCloudProfile: what it silently removes before storing, and what it
//! rejects (docs/contract.md#namespacedcloudprofiles). [`validation`](super::validation) has the general rules for
//! profiles.

use std::fmt;

use jiff::Timestamp;

use super::namespaced::{merge, to_format_of_parent};
use super::validation::{
    FeatureGates, ImageRules, validate_image, validate_image_version, validate_limits, validate_profile,
};
use wire::api::gardener::{
    KubernetesSettings, NamespacedProfileSpec, ParentReference, ProfileImage, ProfileImageVersion, ProfileSpec,
};
use wire::api::gotext::field::{FieldErrors, FieldPath};
use wire::capabilities::Life;

/// The NamespacedCloudProfile before a change.
#[derive(Clone, Copy, Debug)]
pub struct Before<'a> {
    /// Previous `spec`.
    pub spec: &'a NamespacedProfileSpec,
    /// Previous `status.cloudProfileSpec`: the parent merged with the previous changes.
    pub merged: &'a ProfileSpec,
}

/// The errors of a NamespacedCloudProfile.
#[derive(Debug, Default)]
pub struct Refusals {
    /// Errors of the NamespacedCloudProfile itself.
    pub own: FieldErrors,
    /// Errors after merging it with its parent; determined only if it has no errors itself.
    pub merged: FieldErrors,
}

impl Refusals {
    /// Whether there are no errors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.own.is_empty() && self.merged.is_empty()
    }
}

impl fmt::Display for Refusals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = |errors: &FieldErrors| errors.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        formatter.write_str(&texts(&self.own))?;
        if !self.merged.is_empty() {
            write!(formatter, "error while validating merged NamespacedCloudProfile: {}", texts(&self.merged))?;
        }
        Ok(())
    }
}

/// Removes new versions that are expired or not yet available. Also removes images that lose all their versions and set
/// no update strategy. Previously stored versions stay.
pub fn leave_out_inactive(spec: &mut NamespacedProfileSpec, before: Option<&NamespacedProfileSpec>, now: Timestamp) {
    if let Some(kubernetes) = &mut spec.kubernetes {
        let old = before.and_then(|before| before.kubernetes.as_ref());
        let was_there =
            |version: &str| old.is_some_and(|old| old.versions.iter().any(|known| known.version == version));
        kubernetes.versions.retain(|version| was_there(&version.version) || Life::from(version).at(now).is_active());
    }
    let is_left = |image: &mut ProfileImage| {
        let had_versions = !image.versions.is_empty();
        let old = before.and_then(|before| image_named(&before.machine_images, &image.name));
        image.versions.retain(|version| {
            let was_there = old.is_some_and(|old| version_named(old, &version.version).is_some());
            was_there || Life::from(version).at(now).is_active()
        });
        !had_versions || !image.versions.is_empty() || image.update_strategy.is_some()
    };
    spec.machine_images.retain_mut(is_left);
}

/// Validates a NamespacedCloudProfile that extends `parent`. Versions are first converted to the format of the parent,
/// so architectures of the old format become flavors if the parent defines capabilities.
#[must_use]
pub fn validate_namespaced(
    mut spec: NamespacedProfileSpec,
    parent: ProfileSpec,
    before: Option<Before<'_>>,
    gates: FeatureGates,
    now: Timestamp,
) -> Refusals {
    let definitions = &parent.machine_capabilities;
    to_format_of_parent(&mut spec, definitions);
    let mut old_spec = before.map(|before| before.spec.clone());
    if let Some(old_spec) = &mut old_spec {
        to_format_of_parent(old_spec, definitions);
    }
    let mut refusals = Refusals::default();
    let path = FieldPath::new("spec");
    let errors = &mut refusals.own;
    validate_parent(&spec.parent, before.map(|before| &before.spec.parent), path.child("parent"), errors);
    validate_limits(spec.limits.as_ref(), path.child("limits"), errors);
    if let Some(kubernetes) = &spec.kubernetes {
        let merged = before.map(|before| &before.merged.kubernetes);
        validate_kubernetes(kubernetes, &parent.kubernetes, merged, now, path.child("kubernetes"), errors);
    }
    let rules = ImageRules { definitions, versions_required: false, gates, now };
    for (index, image) in spec.machine_images.iter().enumerate() {
        let path = path.child("machineImages");
        let path = path.index(index);
        let old = old_spec.as_ref().and_then(|old| image_named(&old.machine_images, &image.name));
        match image_named(&parent.machine_images, &image.name) {
            Some(extended) => {
                let merged = before.and_then(|before| image_named(&before.merged.machine_images, &image.name));
                validate_extended(image, extended, (old, merged), &rules, path, errors);
            }
            None => validate_new(image, &rules, path, errors),
        }
    }
    if refusals.own.is_empty() {
        refusals.merged = validate_profile(&merge(parent, spec), gates, now);
    }
    refusals
}

fn validate_parent(
    parent: &ParentReference,
    before: Option<&ParentReference>,
    path: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if parent.kind != "CloudProfile" {
        errors.not_supported(path.child("kind"), &parent.kind, ["CloudProfile"]);
    }
    if parent.name.is_empty() {
        errors.required(path.child("name"), "must name the CloudProfile to extend");
    }
    if before.is_some_and(|before| before != parent) {
        errors.invalid(path, parent, "field is immutable");
    }
}

/// Kubernetes versions may only change the expiration of the parent's versions.
fn validate_kubernetes(
    kubernetes: &KubernetesSettings,
    parent: &KubernetesSettings,
    merged: Option<&KubernetesSettings>,
    now: Timestamp,
    path: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let path = path.child("versions");
    for (index, version) in kubernetes.versions.iter().enumerate() {
        let path = path.index(index);
        let of = |settings: &KubernetesSettings| {
            settings.versions.iter().find(|known| known.version == version.version).cloned()
        };
        if version.classification.is_some() {
            errors.forbidden(path.child("classification"), "must not provide a classification to a Kubernetes version");
        }
        if of(parent).is_none() {
            let detail = "must be a version of the parent CloudProfile, whose expiration is extended";
            errors.invalid(path.child("version"), &version.version, detail);
        }
        match &version.expiration_date {
            None => errors.invalid(path.child("expirationDate"), (), "must provide the expiration that is extended"),
            date => {
                let before = merged.map(|merged| of(merged).and_then(|before| before.expiration_date));
                validate_date(date.as_deref(), before, (&version.version, now), path, errors);
            }
        }
    }
}

/// An expiration can't be changed to a time in the past, but an existing one can stay.
fn validate_date(
    date: Option<&str>,
    before: Option<Option<String>>,
    (version, now): (&str, Timestamp),
    path: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let moment = |date: Option<&str>| date.and_then(|date| date.parse::<Timestamp>().ok());
    let has_passed = moment(date).is_some_and(|moment| moment < now);
    if let Some(before) = before
        && has_passed
        && moment(before.as_deref()) != moment(date)
    {
        let detail = format!("expiration date for version {version:?} is in the past");
        errors.invalid(path.child("expirationDate"), date, detail);
    }
}

/// Validates an image that the parent has: later expirations of its versions, and additional versions.
fn validate_extended(
    image: &ProfileImage,
    parent: &ProfileImage,
    (old, merged): (Option<&ProfileImage>, Option<&ProfileImage>),
    rules: &ImageRules<'_>,
    path: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if old.is_some_and(|old| old.update_strategy != image.update_strategy) {
        let detail = "cannot update the machine image update strategy of an extended machine image";
        errors.forbidden(path.child("updateStrategy"), detail);
    }
    let path = path.child("versions");
    for (index, version) in image.versions.iter().enumerate() {
        let path = path.index(index);
        if version_named(parent, &version.version).is_none() {
            validate_image_version(version, rules, path, errors);
            continue;
        }
        match old.and_then(|old| version_named(old, &version.version)) {
            Some(old) if but_for_expiration(old) != but_for_expiration(version) => {
                errors.forbidden(path, "cannot change an extended machine image version but for its expiration date");
            }
            Some(_) => {}
            None => validate_first_extension(version, path, errors),
        }
        let before = merged
            .map(|merged| version_named(merged, &version.version).and_then(|before| before.expiration_date.clone()));
        let date = version.expiration_date.as_deref();
        validate_date(date, before, (&version.version, rules.now), path, errors);
    }
}

fn validate_first_extension(version: &ProfileImageVersion, path: FieldPath<'_>, errors: &mut FieldErrors) {
    let given = [
        ("classification", "a classification", version.classification.is_some()),
        ("cri", "container runtimes", !version.cri.is_empty()),
        ("architectures", "architectures", !version.architectures.is_empty()),
        ("capabilityFlavors", "capability flavors", !version.capability_flavors.is_empty()),
        ("kubeletVersionConstraint", "a kubelet version constraint", version.kubelet_version_constraint.is_some()),
        ("inPlaceUpdates", "in-place updates", version.in_place_updates.is_some()),
    ];
    for (member, words, _) in given.into_iter().filter(|(.., is_given)| *is_given) {
        let detail = format!("must not provide {words} to an extended machine image in NamespacedCloudProfile");
        errors.forbidden(path.child(member), detail);
    }
    if version.expiration_date.is_none() {
        errors.invalid(path.child("expirationDate"), (), "must provide the expiration that is extended");
    }
}

fn but_for_expiration(version: &ProfileImageVersion) -> ProfileImageVersion {
    ProfileImageVersion { expiration_date: None, ..version.clone() }
}

/// Validates an image that the parent does not have.
fn validate_new(image: &ProfileImage, rules: &ImageRules<'_>, path: FieldPath<'_>, errors: &mut FieldErrors) {
    validate_image(image, rules, path, errors);
    let versions = path.child("versions");
    if image.versions.is_empty() {
        let detail = format!("must provide at least one version for the machine image '{}'", image.name);
        errors.required(versions, detail);
    }
    for (index, version) in image.versions.iter().enumerate() {
        validate_image_version(version, rules, versions.index(index), errors);
    }
}

fn image_named<'a>(images: &'a [ProfileImage], name: &str) -> Option<&'a ProfileImage> {
    images.iter().find(|image| image.name == name)
}

fn version_named<'a>(image: &'a ProfileImage, version: &str) -> Option<&'a ProfileImageVersion> {
    image.versions.iter().find(|known| known.version == version)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;
    use crate::cloud_profile::difference;
    use wire::api::gotext::json::{decode_lenient, to_go_json};
    use wire::api::gotext::yaml;

    /// A row of `test/profiles/namespaced-rules.yaml`.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Row {
        rule: String,
        #[serde(default)]
        definitions: Value,
        spec: Value,
        before: Option<Value>,
        merged: Option<Value>,
        #[serde(default)]
        errors: Vec<String>,
        left: Option<Value>,
    }

    fn now() -> Timestamp {
        "2026-06-01T00:00:00Z".parse().unwrap()
    }

    fn decoded<T: serde::de::DeserializeOwned>(value: &Value) -> T {
        decode_lenient(&to_go_json(value)).unwrap()
    }

    fn namespaced(spec: &Value) -> NamespacedProfileSpec {
        let mut whole = json!({"parent": {"kind": "CloudProfile", "name": "p"}});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        decoded(&whole)
    }

    fn parent(definitions: &Value) -> Value {
        let has_definitions = definitions.as_array().is_some_and(|list| !list.is_empty());
        let version = |version: &str| match has_definitions {
            true => json!({"version": version, "cri": [{"name": "containerd"}],
                "capabilityFlavors": [{"architecture": ["amd64"]}], "expirationDate": "2026-12-01T00:00:00Z"}),
            false => json!({"version": version, "cri": [{"name": "containerd"}], "architectures": ["amd64"],
                "expirationDate": "2026-12-01T00:00:00Z"}),
        };
        let machine_type = match has_definitions {
            true => json!({"name": "t", "capabilities": {"architecture": ["amd64"]}}),
            false => json!({"name": "t", "architecture": "amd64"}),
        };
        json!({
            "type": "x",
            "kubernetes": {"versions": [{"version": "1.34.0"}, {"version": "1.33.0", "expirationDate": "2026-12-01T00:00:00Z"}]},
            "machineCapabilities": definitions,
            "machineImages": [{"name": "linux", "updateStrategy": "major", "versions": [version("1.0.0"), version("2.0.0")]}],
            "machineTypes": [machine_type],
            "regions": [{"name": "r"}],
        })
    }

    #[test]
    fn every_rule_of_admission() {
        let table = include_str!("../../../test/profiles/namespaced-rules.yaml");
        let rows: Vec<Row> = serde_json::from_value(yaml::documents(table).unwrap().remove(0)).unwrap();
        assert!(rows.len() > 20, "{}", rows.len());
        let mut wrong = Vec::new();
        for row in rows {
            let parent = parent(&row.definitions);
            let mut spec = namespaced(&row.spec);
            let old = row.before.as_ref().map(namespaced);
            leave_out_inactive(&mut spec, old.as_ref(), now());
            if let Some(left) = &row.left {
                let images = serde_json::to_value(&spec.machine_images).unwrap();
                let names = |images: &Value| {
                    let of = |image: &Value| {
                        let versions = image["versions"].as_array().into_iter().flatten();
                        json!({"name": image["name"], "versions": versions.map(|version| version["version"].clone()).collect::<Value>()})
                    };
                    images.as_array().into_iter().flatten().map(of).collect::<Value>()
                };
                if names(&images) != *left {
                    wrong.push(format!("{}: left is {}", row.rule, names(&images)));
                }
            }
            let merged = old.clone().map(|old| match &row.merged {
                Some(merged) => decoded(merged),
                None => merge(decoded(&parent), old),
            });
            let before = old.as_ref().zip(merged.as_ref()).map(|(spec, merged)| Before { spec, merged });
            let refusals = validate_namespaced(spec, decoded(&parent), before, FeatureGates::default(), now());
            let (merged, own): (Vec<String>, Vec<String>) =
                row.errors.iter().cloned().partition(|error| error.starts_with("merged "));
            let merged: Vec<String> = merged.iter().map(|error| error.replacen("merged ", "", 1)).collect();
            let differences = [difference(&refusals.own, &own), difference(&refusals.merged, &merged)];
            wrong.extend(differences.into_iter().flatten().map(|difference| format!("{}: {difference}", row.rule)));
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
