//! Rules for changes of a CloudProfile, in addition to the validation of the new one: versions must not become
//! unavailable again, and used versions must not be removed (docs/versions.md#profiles).

use std::collections::HashSet;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::validation::{FeatureGates, validate_profile};
use wire::api::gardener::{NamespacedCloudProfile, ProfileImage, ProfileSpec, VersionedShoot};
use wire::api::gotext::field::{FieldErrors, FieldPath};
use wire::capabilities::{Classification, Life};

/// Validates the new `spec` of a CloudProfile and its changes from the old one.
#[must_use]
pub fn validate_change(new: &ProfileSpec, old: &ProfileSpec, gates: FeatureGates, now: Timestamp) -> FieldErrors {
    let mut errors = validate_profile(new, gates, now);
    let path = FieldPath::new("spec");
    let most = |spec: &ProfileSpec| spec.limits.as_ref().and_then(|limits| limits.max_nodes_total);
    if let (Some(new), Some(old)) = (most(new), most(old))
        && new < old
    {
        errors.invalid(path.child("limits").child("maxNodesTotal"), new, "maxNodesTotal cannot be decreased");
    }
    fn lives<'a, V>(versions: &'a [V], name: fn(&V) -> &str) -> Vec<(&'a str, Life<'a>)>
    where
        Life<'a>: From<&'a V>,
    {
        versions.iter().map(|version| (name(version), Life::from(version))).collect()
    }
    let [of_new, of_old] = [new, old].map(|spec| lives(&spec.kubernetes.versions, |version| &version.version));
    refuse_unavailable(&of_new, &of_old, now, path.child("kubernetes").child("versions"), &mut errors);
    let images = path.child("machineImages");
    for (index, image) in new.machine_images.iter().enumerate() {
        let Some(before) = old.machine_images.iter().rfind(|before| before.name == image.name) else { continue };
        let [of_new, of_old] = [image, before].map(|image| lives(&image.versions, |version| &version.version));
        refuse_unavailable(&of_new, &of_old, now, images.index(index).child("versions"), &mut errors);
    }
    errors
}

fn refuse_unavailable(
    new: &[(&str, Life<'_>)],
    old: &[(&str, Life<'_>)],
    now: Timestamp,
    path: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    for (index, (version, life)) in new.iter().enumerate() {
        let before = old.iter().rfind(|(known, _)| known == version);
        let was_available = before.is_some_and(|(_, life)| life.at(now) != Classification::Unavailable);
        if was_available && life.at(now) == Classification::Unavailable {
            let detail = "a version cannot be turned unavailable if it was already moved into a later lifecycle stage";
            errors.forbidden(path.index(index), detail);
        }
    }
}

/// Objects of a garden that use versions of a profile.
#[derive(Clone, Copy, Debug, Default)]
pub struct Users<'a> {
    /// Shoots of the garden.
    pub shoots: &'a [VersionedShoot],
    /// NamespacedCloudProfiles of the garden.
    pub namespaced: &'a [NamespacedCloudProfile],
}

/// Reasons why a profile can't be changed from `old` to `new`, because removed versions are still used. The messages
/// are those of Gardener, sorted. As in Gardener, Kubernetes versions of pools are ignored, and image names are
/// case-sensitive.
#[must_use]
pub fn still_used(name: &str, new: &ProfileSpec, old: &ProfileSpec, users: Users<'_>) -> Vec<String> {
    let kubernetes = |spec: &ProfileSpec| -> HashSet<String> {
        spec.kubernetes.versions.iter().map(|version| version.version.clone()).collect()
    };
    let kept = kubernetes(new);
    let deleted: HashSet<String> = kubernetes(old).difference(&kept).cloned().collect();
    let is_deleted = |image: &str, version: &str| {
        has(&old.machine_images, image, Some(version)) && !has(&new.machine_images, image, Some(version))
    };
    let mut problems = Vec::new();
    let children = children(name, users.namespaced);
    for child in &children {
        let by = format!(
            "from CloudProfile \"{name}\" - version is still in use by NamespacedCloudProfile '{}'",
            title(&child.metadata)
        );
        for version in child.spec.kubernetes.iter().flat_map(|kubernetes| &kubernetes.versions) {
            if deleted.contains(&version.version) {
                problems.push(format!("unable to delete Kubernetes version \"{}\" {by}", version.version));
            }
        }
        for image in &child.spec.machine_images {
            let [was, is] = [old, new].map(|spec| has(&spec.machine_images, &image.name, None));
            let title = title(&child.metadata);
            if was && !is {
                problems.push(format!("unable to delete MachineImage \"{}\" from CloudProfile \"{name}\" - MachineImage is still in use by NamespacedCloudProfile \"{title}\"", image.name));
            } else if is && !was {
                problems.push(format!("unable to add MachineImage \"{}\" to CloudProfile \"{name}\" - MachineImage is already defined by NamespacedCloudProfile \"{title}\"", image.name));
            }
            for version in image.versions.iter().filter(|version| is_deleted(&image.name, &version.version)) {
                problems
                    .push(format!("unable to delete MachineImage version '{}/{}' {by}", image.name, version.version));
            }
        }
    }
    for shoot in users.shoots.iter().filter(|shoot| uses(shoot, name, &children)) {
        let by = format!("from CloudProfile \"{name}\" - version is still in use by shoot '{}'", shoot.title());
        let version = shoot.spec.kubernetes.version.as_deref().unwrap_or_default();
        if deleted.contains(version) {
            problems.push(format!("unable to delete Kubernetes version \"{version}\" {by}"));
        }
        for pool in &shoot.spec.provider.workers {
            let image = pool.machine.image.iter();
            problems.extend(image.filter(|image| is_deleted(&image.name, &image.version)).map(|image| {
                format!(
                    "unable to delete Machine image version '{}/{}' {by} by worker \"{}\"",
                    image.name, image.version, pool.name
                )
            }));
        }
    }
    problems.sort();
    problems
}

/// Whether a shoot that is not being deleted uses a CloudProfile, directly or through a NamespacedCloudProfile.
#[must_use]
pub fn uses(shoot: &VersionedShoot, profile: &str, children: &[&NamespacedCloudProfile]) -> bool {
    let namespace = &shoot.metadata.namespace;
    let is_child = |name: &str| {
        children
            .iter()
            .any(|child| child.metadata.name.as_deref() == Some(name) && child.metadata.namespace == *namespace)
    };
    shoot.metadata.deletion_timestamp.is_none()
        && match (&shoot.spec.cloud_profile, &shoot.spec.cloud_profile_name) {
            (Some(reference), _) if reference.kind == "NamespacedCloudProfile" => is_child(&reference.name),
            (Some(reference), _) => reference.name == profile,
            (None, older) => older.as_deref() == Some(profile),
        }
}

/// The NamespacedCloudProfiles that extend a profile and are not being deleted.
#[must_use]
pub fn children<'a>(profile: &str, namespaced: &'a [NamespacedCloudProfile]) -> Vec<&'a NamespacedCloudProfile> {
    let extends = |child: &&NamespacedCloudProfile| {
        let parent = &child.spec.parent;
        child.metadata.deletion_timestamp.is_none() && parent.kind == "CloudProfile" && parent.name == profile
    };
    namespaced.iter().filter(extends).collect()
}

fn has(images: &[ProfileImage], name: &str, version: Option<&str>) -> bool {
    let has_version =
        |image: &ProfileImage, required: &str| image.versions.iter().any(|version| version.version == required);
    images.iter().any(|image| image.name == name && version.is_none_or(|version| has_version(image, version)))
}

fn title(metadata: &ObjectMeta) -> String {
    let [namespace, name] = [&metadata.namespace, &metadata.name].map(|text| text.as_deref().unwrap_or_default());
    format!("{namespace}/{name}")
}
